"""Correct the guessed roles of columns by comparing columns: codes, regions, gaps, dependencies."""

from __future__ import annotations

from dataclasses import replace

from microguard.pipelines.drafting.counting import K, clusters_by_missing_pattern, counted_unit
from microguard.pipelines.drafting.dependencies import dependencies
from microguard.pipelines.drafting.evidence import max_categories
from microguard.pipelines.drafting.guess import Alternative, Guess
from microguard.pipelines.drafting.key_variables import MOST_KEY_VARIABLES
from microguard.pipelines.drafting.profile import Profile
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import Dependency
from microguard.schemas.errors import InputRejected

MOST_REJECTED = 0.2
"""Maximum share of records that may be rejected because a number is missing."""
MOST_OTHERS = 30
"""Maximum number of columns of no special role that are compared with the key variables, in their order."""
UNMODIFIED_ROLES = ("region", "sensitive", "weight", "other")
"""Roles of columns that vary and are published without modification."""


def without_unusable_weights(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Exclude the weights of a file if none of them is positive in every record.

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
    """Reclassify integers that determine a nominal variable as codes: activity A88 determines A21."""
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


def without_sparse_numbers(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Exclude numbers that are missing in too many records, starting with the one that is missing most."""
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
    """Choose the region: the coarsest complete column named like a region whose values all have k units."""
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
    """Make the region a quasi-identifier if one of its regions has fewer than k units after rejections."""
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
        replace(each, role="quasi_identifier", kind="nominal", why="a region too small for k")
        if each.role == "region"
        and each.column is not None
        and profile.classes([each.column], K, accepted, counted)[3] < K
        else each
        for each in guesses
    ]


def without_dependencies(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Protect unmodified columns that determine a protected variable, or leave them out, until none is left.

    A weight is never protected nor left out: its line says that it has to be accepted by name.
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
    """Return a column that determines a variable as a quasi-identifier, or as one that is left out.

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
    """Make the column with the fewest distinct values a quasi-identifier, if there is no other one.

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
