"""What the columns of a file say about each other: repeated keys, codes of codes, regions, dependencies."""

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
"""Share of the records that missing numbers may cost together."""
UNMODIFIED_ROLES = ("region", "sensitive", "weight")
"""Roles of columns that vary and are published as they are."""


def with_repeated_keys(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """A key that repeats is the unit where nothing else is, or where each occurs once a period (a panel).

    Otherwise it is an identifier: never a number to be averaged, and never published.
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
            why = "a key that repeats, once a period" if panel else "a key that repeats"
            each = replace(each, role="unit", kind=None, why=f'{why}: method.unit = "unit" counts it')
        elif each.name in panel or each.name in repeated:
            each = replace(each, role="identifier", kind=None, why="a second key, whose values repeat")
        elif panel and each.role == "unit":
            each = replace(each, role="identifier", kind=None, why="it numbers the records of a panel")
        result.append(each)
    return result


def _may_repeat(each: Guess, column: Column, profile: Profile) -> bool:
    """Whether a column could hold a key whose values repeat, in every record."""
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
    """Of unit and household the first stands, and a later key is an identifier."""
    seen: set[str] = set()
    result = []
    for each in guesses:
        if each.role in seen:
            each = replace(each, role="identifier", why=f"a second {each.role} by name")
        elif each.role in ("unit", "household"):
            seen.add(each.role)
        result.append(each)
    return result


def without_unusable_weights(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """A weight that is 0 somewhere stands beside one that is positive everywhere; alone it cannot count."""
    weights = [each.column for each in guesses if each.role == "weight" and each.column is not None]
    if not weights or any(column.positive == profile.records for column in weights):
        return guesses
    why = "left out: the only weight must be positive"
    return [
        replace(each, role="identifier", why=f"{each.why}; {why}") if each.role == "weight" else each
        for each in guesses
    ]


def with_numeric_codes(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """A whole number that tells a category (activity A88, which tells A21) is a finer code, not an amount."""
    nominal = [each for each in guesses if each.role == "quasi_identifier" and each.kind == "nominal"]
    result = []
    for each in guesses:
        column = each.column
        if each.kind == "numeric" and column is not None and column.is_whole:
            coarse = column.distinct <= max_categories(profile.records)
            if coarse and not name_indicates(each.name, "amount") and dependencies([each], nominal, profile):
                each = replace(each, kind="nominal", why=f"a code that tells another, {each.why}")
        result.append(each)
    return result


def without_sparse_numbers(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """Numbers that together would cost too many records are left out, the one most records lack first."""
    while True:
        numeric = [each for each in guesses if each.role == "quasi_identifier" and each.kind == "numeric"]
        columns = [each.column for each in numeric if each.column is not None]
        accepted = profile.count(profile.condition_all_finite(columns))
        if accepted >= (1 - MOST_REJECTED) * profile.records or clusters_by_missing_pattern(guesses, profile):
            return guesses
        rarest = min(numeric, key=lambda each: each.column.finite if each.column else 0)
        why = "a number that too many records lack"
        guesses = [
            replace(each, role="identifier", kind=None, why=why) if each is rarest else each
            for each in guesses
        ]


def with_region(guesses: list[Guess], profile: Profile) -> list[Guess]:
    """The coarsest complete column that is a region by name and has no region below k."""
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
    """A region that rejected records leave below k is protected instead."""
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
    """A column published as it is must not tell a protected one: it is protected, too."""
    while True:
        published = [each for each in guesses if each.role in UNMODIFIED_ROLES]
        protected = [each for each in guesses if each.role == "quasi_identifier"]
        told = {each.column: each for each in reversed(dependencies(published, protected, profile))}
        if not told:
            return guesses
        most = max_categories(profile.records)
        guesses = [_protected(each, told[each.name], most) if each.name in told else each for each in guesses]


def _protected(each: Guess, dependency: Dependency, most: int) -> Guess:
    """A column that tells a variable, as a quasi-identifier; nominal with at most so many categories."""
    column = each.column
    amount = column is not None and column.numbers == column.present and column.distinct > most
    kind = "numeric" if each.role == "weight" or amount else "nominal"
    beside = " beside another column" if dependency.beside else ""
    why = f"it would be {each.role}, but it tells another variable{beside}"
    return replace(each, role="quasi_identifier", kind=kind, why=why)


def with_some_quasi_identifier(guesses: list[Guess]) -> list[Guess]:
    """A specification needs one: the column with fewest values, where nothing looked like one."""
    if any(each.role == "quasi_identifier" for each in guesses):
        return guesses
    usable = [each for each in guesses if each.column is not None and each.column.present]
    if not usable:
        raise InputRejected("The file has no column that could be a quasi-identifier.")
    chosen = min(usable, key=lambda each: each.column.distinct if each.column else 0)
    why = f"nothing else looked like a quasi-identifier; {chosen.why}"
    return [
        replace(each, role="quasi_identifier", kind="nominal", why=why) if each is chosen else each
        for each in guesses
    ]
