"""Keys whose values repeat: of households, units of a panel, and clusters such as employers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.profile import Profile

MIN_ENTITIES = 10
MIN_TIES = 20
AGREEING = 0.98
"""Minimum share of an entity's records that agree on its attributes; the rest may be typing errors."""
MIN_DISAGREEMENT = 0.2
"""Minimum probability that two records differ in a column; below it, agreement within a key is no evidence.
"""
MAX_COMPARED = 24
"""Maximum number of columns whose agreement within a key is counted."""
MAX_HOUSEHOLD = 10.0
"""Maximum mean number of persons in a household; employers and schools have more members."""
MOST_ZEROS = 0.1
"""Maximum share of records in which a key is 0; amounts, which some units do not have, are 0 more often."""
MOST_WORDS = 2.0
"""Maximum mean number of words of a key that its name does not show; comments have more."""
MIN_PERIODS = 1.3
"""Minimum mean number of periods per unit of a panel."""


@dataclass(frozen=True)
class Entity:
    """A key whose values repeat, and the columns in which its records agree.

    Attributes
    ----------
    column : Column
    kind : str
        "panel" (each value occurs once in each period), "household", "cluster" or "repeated" (any other key).
    shared : frozenset of str
        Labels of columns that are constant within each value of the key.
    why : str
    """

    column: Column
    kind: str
    shared: frozenset[str]
    why: str


def find_entities(
    profile: Profile, codes: Mapping[str, np.ndarray], most_categories: int
) -> dict[str, Entity]:
    """Return the keys whose values repeat, by column label.

    Parameters
    ----------
    codes : mapping of label to (n,) int array
        Values of the sampled records.
    most_categories : int
        Maximum number of categories of a nominal variable.
    """
    periods = [
        column
        for column in profile.columns
        if 1 < column.distinct <= column.present / 2
        and (column.named("period") or column.dates or _is_years(column))
    ]
    found = {}
    for column in profile.columns:
        if not _may_repeat(column, profile.records, most_categories):
            continue
        repeats, changes = profile.breaks(column, _compared_columns(column, profile.columns, codes))
        if repeats < MIN_TIES and not column.named("household"):
            continue
        shared = {label for label, changed in changes.items() if changed <= (1.0 - AGREEING) * repeats}
        entity = _entity(column, periods, shared, changes.keys() - shared, profile)
        if entity is not None:
            found[column.label] = entity
    return found


def _entity(
    column: Column, periods: Sequence[Column], shared: set[str], varying: set[str], profile: Profile
) -> Entity | None:
    by_label = {each.label: each for each in profile.columns}
    size = column.present / column.distinct
    named = column.named("key", "household", "entity")

    def is_(kind: str, why: str) -> Entity:
        return Entity(column, kind, frozenset(shared), f"{why}, {size:.1f} records each")

    if _once_a_period(column, periods, profile):
        return is_("panel", "a key whose values occur once per period")
    if column.named("household"):
        return is_("household", "a household by name")
    if column.named("entity"):
        return is_("cluster", "a cluster of units by name")
    evidence = {label for label in shared if not is_binning_of(column, by_label[label], profile)}
    if not evidence and not named:
        return None
    differ = any(by_label[label].named("visible", "line") for label in varying)
    if evidence and differ and size <= MAX_HOUSEHOLD:
        return is_("household", f"its records share {len(evidence)} column(s) and differ in those of persons")
    if evidence and size > MAX_HOUSEHOLD:
        return is_("cluster", f"its records share {len(evidence)} column(s)")
    return is_("repeated", "a key whose values repeat")


def _may_repeat(column: Column, records: int, most_categories: int) -> bool:
    """Return whether a column may be a key: present in every record, with values that repeat."""
    if column.present != records or not column.is_key_type or column.dates:
        return False
    if not MIN_ENTITIES <= column.distinct < records or column.ties < 1:
        return False
    if column.words > MOST_WORDS and not column.named("household", "key", "entity"):
        return False  # comments, some of which are equal
    zeros = column.present - column.positive
    if column.numbers == column.present and column.range[0] == 0 and zeros > MOST_ZEROS * column.present:
        return False
    if column.named("household"):
        return not column.named("amount", "code") and column.distinct > 0.05 * records
    if column.named("amount", "period", "line", "weight", "code", "age", "name"):
        return False
    if column.named("key", "entity"):
        return column.distinct > min(most_categories, 20)
    return column.distinct > most_categories and not column.named("place", "visible", "sensitive")


def _is_years(column: Column) -> bool:
    """Return whether whole numbers are consecutive years."""
    first, last = column.range
    return column.is_whole and first >= 1900 and last <= 2100 and column.distinct == last - first + 1


def _once_a_period(column: Column, periods: Sequence[Column], profile: Profile) -> bool:
    if column.distinct * MIN_PERIODS > profile.records:
        return False
    return any(
        profile.classes([column, period], 1)[0] == profile.records
        for period in periods
        if period is not column and column.distinct * period.distinct >= profile.records
    )


def _compared_columns(
    column: Column, columns: Sequence[Column], codes: Mapping[str, np.ndarray]
) -> list[Column]:
    """Return the columns that are compared within a key: those in which two records often differ."""
    able = []
    for other in columns:
        if other is column or other.label not in codes or other.distinct > 0.9 * other.present:
            continue
        shares = np.unique(codes[other.label], return_counts=True)[1] / len(codes[other.label])
        if 1.0 - float(np.sum(shares**2)) >= MIN_DISAGREEMENT:
            able.append(other)
    able.sort(key=lambda other: (not other.named("visible", "line"), -other.distinct, other.label))
    return able[:MAX_COMPARED]


def is_binning_of(column: Column, other: Column, profile: Profile) -> bool:
    """Return whether `other` is a binning of `column`: in the order of `column`, its value rarely changes."""
    ordered = profile.codes_in_order(column, other)
    changes = int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1
    return changes <= 2 * pd.unique(ordered).size
