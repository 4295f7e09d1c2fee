"""Corrections of guessed roles by comparing columns: codes, regions, missing values and dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from microguard.pipelines.drafting.counting import K, clusters_by_missing_pattern, counted_unit
from microguard.pipelines.drafting.dependencies import dependencies
from microguard.pipelines.drafting.evidence import max_categories
from microguard.pipelines.drafting.guess import Alternative, Guess
from microguard.pipelines.drafting.key_variables import MOST_KEY_VARIABLES
from microguard.pipelines.drafting.profile import Profile
from microguard.pipelines.drafting.shapes import is_numbering
from microguard.pipelines.drafting.table import shown
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import Dependency
from microguard.schemas.errors import InputRejected

MOST_REJECTED = 0.2
"""Maximum share of records that may be rejected because a number is missing."""
MIN_RECORDS_PER_CODE = 3
"""Minimum mean frequency of a code that has coarser levels; a rarer code, such as a name, would determine
everything."""
MIN_DISAGREEMENT = 0.05
"""Minimum probability that two records differ in a coarser level; a constant column is no level of a code."""
MOST_OTHERS = 30
"""Maximum number of other columns that are compared with the key variables, in their order."""
UNMODIFIED_ROLES = ("region", "sensitive", "weight", "other")
"""Roles of columns that vary and are published unmodified."""


def without_unusable_weights(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Exclude a file's weights if none is positive in every record.

    A weight with zeros is accepted only in addition to a weight without zeros.
    """
    weights = [each.column for each in guesses if each.role == "weight" and each.column is not None]
    if not weights or any(column.positive == profile.records for column in weights):
        return guesses
    why = "excluded, because no weight is positive in every record"
    return [
        replace(each, role="identifier", why=f"{each.why}; {why}") if each.role == "weight" else each
        for each in guesses
    ]


def with_numeric_codes(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Classify integers that determine a nominal variable as codes, for example activity A88, which
    determines A21.
    """
    nominal = [each for each in guesses if each.role == "quasi_identifier" and each.kind == "nominal"]
    result = []
    for each in guesses:
        column = each.column
        if each.kind == "numeric" and column is not None and column.is_whole:
            coarse = column.distinct <= max_categories(profile.records)
            if coarse and not column.named("amount") and dependencies([each], nominal, profile):
                each = replace(each, kind="nominal", why=f"a code that determines another, {each.why}")
        result.append(each)
    return result


def without_coarser_levels(
    guesses: Sequence[Guess], codes: Mapping[str, np.ndarray], numbers: Mapping[str, np.ndarray]
) -> list[Guess]:
    """Leave out categories that are coarser levels of another code, for example isco1 of isco4.

    If a coarser level is published unchanged, it discloses how protection changed the code. If it is
    protected separately, it contradicts the code. A column that is determined by a numbering, such as that of
    sampling units, does not count as a level.

    Parameters
    ----------
    guesses : sequence of Guess
    codes : mapping of label to (n,) int array
        Values of the sampled records.
    numbers : mapping of label to (n,) float array
        Their numbers.
    """
    categories = [
        each
        for each in guesses
        if each.role == "quasi_identifier" and each.kind == "nominal" and each.column is not None
    ]
    finer = {
        coarse.name: fine.name
        for fine in sorted(categories, key=lambda each: each.column.distinct if each.column else 0)
        for coarse in categories
        if fine.column is not None
        and not is_numbering(fine.column, numbers.get(fine.column.label, np.array([])))
        and _is_level_of(coarse, fine, codes)
    }
    alternative = Alternative(
        "quasi_identifier",
        "nominal",
        "to protect it separately, although both may then contradict each other",
    )
    return [
        replace(
            each,
            role="identifier",
            kind=None,
            why=f"a coarser level of {shown(finer[each.name])}: left out, recode it from the published codes",
            reading="derived",
            alternative=alternative,
        )
        if each.name in finer
        else each
        for each in guesses
    ]


def _is_level_of(coarse: Guess, fine: Guess, codes: Mapping[str, np.ndarray]) -> bool:
    one, other = coarse.column, fine.column
    if one is None or other is None or not 2 <= one.distinct < other.distinct:
        return False
    if other.present < MIN_RECORDS_PER_CODE * other.distinct:
        return False
    level, code = codes[one.label], codes[other.label]
    shares = np.unique(level, return_counts=True)[1] / len(level)
    if 1.0 - float(np.sum(shares**2)) < MIN_DISAGREEMENT:
        return False
    pairs = np.unique(code.astype(np.int64) * (int(level.max()) + 2) + level)
    return len(pairs) == len(np.unique(code))


def without_sparse_numbers(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Exclude numeric variables with too many missing values, the worst first."""
    while True:
        numeric = [each for each in guesses if each.role == "quasi_identifier" and each.kind == "numeric"]
        columns = [each.column for each in numeric if each.column is not None]
        accepted = profile.count(profile.condition_all_finite(columns))
        if accepted >= (1 - MOST_REJECTED) * profile.records or clusters_by_missing_pattern(guesses, profile):
            return guesses
        rarest = min(numeric, key=lambda each: each.column.finite if each.column else 0)
        why = f"{rarest.why}; missing in too many records to be a key variable"
        alternative = Alternative("other", "numeric", "to publish it as it is")
        guesses = [
            replace(each, role="identifier", kind=None, why=why, alternative=alternative)
            if each is rarest
            else each
            for each in guesses
        ]


def with_region(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Choose the region: the coarsest complete column with a region's name in which every value has at least
    k units.
    """
    counted = counted_unit(guesses, profile)
    candidates = [
        each
        for each in guesses
        if each.column is not None
        and each.role == "quasi_identifier"
        and each.kind == "nominal"
        and each.column.present == profile.records
        and each.column.named("place")
        and profile.classes([each.column], K, counted=counted)[3] >= K
    ]
    if not candidates:
        return guesses
    region = min(candidates, key=lambda each: each.column.distinct if each.column else 0)
    alternative = Alternative("quasi_identifier", "nominal", "to protect it as a key variable")
    chosen = replace(region, role="region", kind=None, alternative=alternative)
    return [chosen if each is region else each for each in guesses]


def without_small_region(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Make the region a quasi-identifier if rejections leave fewer than k units in one of its values."""
    if clusters_by_missing_pattern(guesses, profile):
        return guesses
    accepted = profile.condition_all_finite(
        [
            each.column
            for each in guesses
            if each.role == "quasi_identifier" and each.kind == "numeric" and each.column is not None
        ]
    )
    counted = counted_unit(guesses, profile)
    return [
        replace(each, role="quasi_identifier", kind="nominal", why="a region with fewer than k records")
        if each.role == "region"
        and each.column is not None
        and profile.classes([each.column], K, accepted, counted)[3] < K
        else each
        for each in guesses
    ]


def without_dependencies(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Protect or leave out unmodified columns that determine a protected variable, until no such column
    remains.

    A weight is neither protected nor left out: its line states that it must be accepted by name.
    """
    reported: set[str] = set()
    while True:
        published = [each for each in guesses if each.role in UNMODIFIED_ROLES and each.name not in reported]
        others = [each for each in published if each.role == "other"][MOST_OTHERS:]
        published = [each for each in published if each not in others]
        protected = [each for each in guesses if each.role == "quasi_identifier"]
        determining = {each.column: each for each in reversed(dependencies(published, protected, profile))}
        if not determining:
            return guesses
        room = MOST_KEY_VARIABLES - len(protected)
        result = []
        for each in guesses:
            dependency = determining.get(each.name)
            if dependency is None:
                result.append(each)
            elif each.role == "weight":
                reported.add(each.name)
                result.append(replace(each, why=f"{each.why}; {_reason(dependency)}", dependent=True))
            else:
                keep = room > 0
                room -= keep
                result.append(_changed(each, dependency, max_categories(profile.records), keep))
        guesses = result


def _reason(dependency: Dependency) -> str:
    together = " together with another column" if dependency.beside else ""
    return f"it determines another variable{together}"


def _changed(each: Guess, dependency: Dependency, most: int, protect: bool) -> Guess:
    """Return the new guess for a column that determines a variable: it becomes a quasi-identifier or is left
    out.

    A protected column is nominal, unless it is an amount: numbers with more than `most` distinct values.
    """
    column = each.column
    instead = Alternative(each.role, each.kind, "with its name in publish.accept_dependencies")
    if not protect:
        why = f"left out, because {_reason(dependency)}; {each.why}"
        return replace(each, role="identifier", kind=None, why=why, alternative=instead)
    amount = column is not None and column.numbers == column.present and column.distinct > most
    kind = "numeric" if amount and each.kind != "nominal" else "nominal"
    why = f"protected instead of {each.role}, because {_reason(dependency)}"
    return replace(each, role="quasi_identifier", kind=kind, why=why, alternative=instead)


def with_some_quasi_identifier(guesses: list[Guess]) -> list[Guess]:
    """Make the column with the fewest distinct values a quasi-identifier, if there is no quasi-identifier
    yet.

    Raises
    ------
    InputRejected
        If no column has values.
    """
    if any(each.role == "quasi_identifier" for each in guesses):
        return guesses
    usable = [each for each in guesses if each.column is not None and each.column.present]
    if not usable:
        raise InputRejected(
            "The file: expected a column that can be a quasi-identifier, found none with values. Check that "
            "the file has the columns to protect."
        )
    chosen = min(usable, key=lambda each: each.column.distinct if each.column else 0)
    why = f"no other column qualifies as a quasi-identifier; {chosen.why}"
    return [
        replace(each, role="quasi_identifier", kind="nominal", why=why) if each is chosen else each
        for each in guesses
    ]
