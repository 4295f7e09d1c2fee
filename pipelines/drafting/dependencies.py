"""Columns that tell a protected variable, by the measure that a run refuses them by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.classify_column import Guess
from microguard.pipelines.drafting.profile import Profile
from microguard.pipelines.measures.attribute_disclosure.arithmetic import computed
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import (
    Dependency,
    Guessing,
    dependencies_among,
    guessing,
)


def dependencies(
    published: Sequence[Guess], protected: Sequence[Guess], profile: Profile
) -> list[Dependency]:
    """Published columns, alone or two together, that tell a protected variable.

    Parameters
    ----------
    published, protected : sequence of Guess
    profile : Profile

    Returns
    -------
    list of Dependency
        Of names; those of two columns come after those of one.
    """
    columns = {each.name: each.column for each in (*published, *protected) if each.column is not None}
    pairs = [
        Dependency(one.name, other.name)
        for one in published
        for other in protected
        if one.name != other.name and {one.name, other.name} <= columns.keys()
    ]
    if not pairs:
        return []

    def numbered(codes: pd.DataFrame) -> dict[str, np.ndarray]:
        return {
            name: codes[column.label].to_numpy(dtype=np.int64) + 1
            for name, column in columns.items()
            if column.label in codes
        }

    nominal = [each.name for each in protected if each.kind == "nominal" and each.name in columns]

    def whole(pair: Dependency) -> Guessing:
        codes = numbered(profile.codes([columns[pair.column], columns[pair.determines]]))
        return guessing(codes[pair.column], codes[pair.determines], pair.determines in nominal)

    region = next((each.name for each in published if each.role == "region"), None)
    first_codes = numbered(profile.first_codes(list(columns.values())))
    found = dependencies_among(pairs, first_codes, nominal, region, whole)
    sizes = profile.first_numbers(list(columns.values()))
    amounts = {name: sizes[column.label] for name, column in columns.items() if column.label in sizes}

    def those(names: list[str]) -> dict[str, np.ndarray]:
        return {name: amounts[name] for name in names if name in amounts and name != region}

    as_they_are = those([each.name for each in published])
    numeric = those([each.name for each in protected if each.kind == "numeric"])
    among = {each.name: first_codes[each.name] for each in published if each.name in first_codes}
    return [
        *found,
        *computed(as_they_are, numeric, {name: first_codes[name] for name in nominal}, found, among),
    ]
