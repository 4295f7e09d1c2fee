"""Columns that determine a protected variable, found by the same measure by which a run refuses them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.guess import Guess
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
    """Return the unmodified columns, or pairs of such columns, that determine a protected variable.

    Parameters
    ----------
    published, protected : sequence of Guess
    profile : Profile

    Returns
    -------
    list of Dependency
        Dependencies between names: those on one column first, then those on two.
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

    def codes_by_name(codes: pd.DataFrame) -> dict[str, np.ndarray]:
        return {
            name: codes[column.label].to_numpy(dtype=np.int64) + 1
            for name, column in columns.items()
            if column.label in codes
        }

    nominal = [each.name for each in protected if each.kind == "nominal" and each.name in columns]

    def judged(pair: Dependency) -> Guessing:
        codes = codes_by_name(profile.codes([columns[pair.column], columns[pair.determines]]))
        return guessing(codes[pair.column], codes[pair.determines], pair.determines in nominal)

    def whole(pairs: Sequence[Dependency]) -> dict[Dependency, Guessing]:
        return {pair: judged(pair) for pair in pairs}

    region = next((each.name for each in published if each.role == "region"), None)
    first_codes = codes_by_name(profile.sampled_codes(list(columns.values())))
    functional = dependencies_among(pairs, first_codes, nominal, region, whole)
    numbers = profile.sampled_numbers(list(columns.values()))
    amounts = {name: numbers[column.label] for name, column in columns.items() if column.label in numbers}

    def amounts_of(names: list[str]) -> dict[str, np.ndarray]:
        return {name: amounts[name] for name in names if name in amounts and name != region}

    unmodified = amounts_of([each.name for each in published])
    numeric = amounts_of([each.name for each in protected if each.kind == "numeric"])
    categories = {name: first_codes[name] for name in nominal}
    published_codes = {each.name: first_codes[each.name] for each in published if each.name in first_codes}
    return [*functional, *computed(unmodified, numeric, categories, functional, published_codes)]
