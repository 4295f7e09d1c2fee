"""Correct the guessed roles of columns by comparing columns: repeated keys, codes, regions, dependencies."""

from __future__ import annotations

from dataclasses import replace

from microguard.pipelines.drafting.classify_column import Guess, is_key_type, max_categories
from microguard.pipelines.drafting.counting import K, clusters_by_missing_pattern, counted_unit
from microguard.pipelines.drafting.dependencies import dependencies
from microguard.pipelines.drafting.keys import (
    MAX_WITNESSES,
    MIN_ENTITIES,
    identifies_entities,
    is_panel_key,
)
from microguard.pipelines.drafting.names import name_indicates
from microguard.pipelines.drafting.profile import Column, Profile
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import Dependency
from microguard.schemas.errors import InputRejected

MOST_REJECTED = 0.2
"""Maximum share of records that may be rejected because a number is missing."""
UNMODIFIED_ROLES = ("region", "sensitive", "weight")
"""Roles of columns that vary and are published without modification."""


def with_repeated_keys(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Give keys whose values repeat the role of unit or identifier.

    A repeated key is the unit if each of its values occurs once a period (a panel), or if there is no other
    unit. Every other repeated key is an identifier, so that it is neither averaged nor published.
    """
    columns = [each.column for each in guesses if each.column is not None]
    periods = [
        column
        for column in columns
        if 1 < column.distinct <= column.present / 2
        and (name_indicates(column.name, "period") or column.dates)
    ]
    witnesses = sorted(
        (each.column for each in guesses if each.kind == "nominal" and each.column is not None),
        key=lambda column: column.distinct,
        reverse=True,
    )[:MAX_WITNESSES]
    panel, repeated = [], []
    for each in guesses:
        column = each.column
        if column is None or not _may_repeat(each, column, profile):
            continue
        others = [other for other in witnesses if other is not column]
        if is_panel_key(column, periods, profile):
            panel.append(each.name)
        elif each.role == "household":
            continue
        elif (name_indicates(column.name, "key") and each.role == "identifier") or (
            column.distinct > max_categories(profile.records) and identifies_entities(column, others, profile)
        ):
            repeated.append(each.name)
    by_name = sorted(panel, key=lambda name: not name_indicates(name, "key"))
    unique = [each.name for each in guesses if each.role in ("unit", "household")]
    candidates = by_name or ([] if unique else repeated)
    chosen = candidates[0] if candidates else None
    result = []
    for each in guesses:
        if each.name == chosen:
            why = "a key whose values occur once a period" if panel else "a key whose values repeat"
            each = replace(each, role="unit", kind=None, why=f'{why}: k counts it with method.unit = "unit"')
        elif each.name in panel or each.name in repeated:
            each = replace(each, role="identifier", kind=None, why="a second key whose values repeat")
        elif panel and each.role == "unit":
            each = replace(each, role="identifier", kind=None, why="a number of the records of a panel")
        result.append(each)
    return result


def _may_repeat(each: Guess, column: Column, profile: Profile) -> bool:
    """Return whether a column may be a key that is present in every record and whose values repeat."""
    if each.role in ("weight", "other", "unit") or name_indicates(each.name, "period") or column.dates:
        return False
    if name_indicates(each.name, "amount") or (
        name_indicates(each.name, "region") and not name_indicates(each.name, "key")
    ):
        return False
    if column.present != profile.records or not is_key_type(column):
        return False
    return MIN_ENTITIES <= column.distinct < profile.records


def with_one_key_per_role(guesses: list[Guess]) -> list[Guess]:
    """Keep the first column with the role unit and with the role household; later ones become identifiers."""
    seen_roles: set[str] = set()
    result = []
    for each in guesses:
        if each.role in seen_roles:
            each = replace(each, role="identifier", why=f"a second {each.role} by name")
        elif each.role in ("unit", "household"):
            seen_roles.add(each.role)
        result.append(each)
    return result


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
            if coarse and not name_indicates(each.name, "amount") and dependencies([each], nominal, profile):
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
        why = "a number that is missing in too many records"
        guesses = [
            replace(each, role="identifier", kind=None, why=why) if each is rarest else each
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
        and name_indicates(each.name, "region")
        and profile.classes([each.column], K, counted=counted)[3] >= K
    ]
    if not candidates:
        return guesses
    region = min(candidates, key=lambda each: each.column.distinct if each.column else 0)
    why = f"a region by name, {region.why}"
    return [replace(each, role="region", kind=None, why=why) if each is region else each for each in guesses]


def without_small_region(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Make the region a quasi-identifier if one of its regions has fewer than k units after rejections."""
    if clusters_by_missing_pattern(guesses, profile):
        return guesses
    accepted = profile.condition_all_finite(
        [each.column for each in guesses if each.kind == "numeric" and each.column]
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
    """Protect unmodified columns that determine a protected variable, until none is left."""
    while True:
        published = [each for each in guesses if each.role in UNMODIFIED_ROLES]
        protected = [each for each in guesses if each.role == "quasi_identifier"]
        determining = {each.column: each for each in reversed(dependencies(published, protected, profile))}
        if not determining:
            return guesses
        most = max_categories(profile.records)
        guesses = [
            _protected(each, determining[each.name], most) if each.name in determining else each
            for each in guesses
        ]


def _protected(each: Guess, dependency: Dependency, most: int) -> Guess:
    """Return a column that determines a variable as a quasi-identifier: nominal, unless it is an amount.

    A column of numbers with more than `most` distinct values is an amount.
    """
    column = each.column
    amount = column is not None and column.numbers == column.present and column.distinct > most
    kind = "numeric" if each.role == "weight" or amount else "nominal"
    together = " together with another column" if dependency.beside else ""
    why = f"protected instead of {each.role}, because it determines another variable{together}"
    return replace(each, role="quasi_identifier", kind=kind, why=why)


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
