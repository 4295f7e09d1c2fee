"""Guesses of the roles and kinds of all columns from a profile; in doubt, the guess protects the column.

Each column is first classified without the others (`evidence`). Its role then depends on the other columns:
which key identifies the units, which numbers are computed from others, which variables are key variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from microguard.pipelines.drafting.assignment import assigned, with_units
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.corrections import (
    with_numeric_codes,
    with_region,
    with_some_quasi_identifier,
    without_coarser_levels,
    without_dependencies,
    without_small_region,
    without_sparse_numbers,
    without_unusable_weights,
)
from microguard.pipelines.drafting.derived import Derived, find_derived
from microguard.pipelines.drafting.entities import Entity, find_entities
from microguard.pipelines.drafting.evidence import Facts, max_categories, read_column
from microguard.pipelines.drafting.guess import LIKELY, SURE, Alternative, Guess
from microguard.pipelines.drafting.key_variables import with_key_variables
from microguard.pipelines.drafting.profile import Profile
from microguard.pipelines.drafting.weights import MOST_STRATA, weight_signs


def guess_roles(profile: Profile) -> tuple[list[Guess], list[Derived]]:
    """Return a guess for every column that a specification can name, and the columns to recompute after
    protection.
    """
    names = [name for name in profile.source.schema.names if is_nameable(name)]
    known = {column.name: column for column in profile.columns}
    sampled = profile.sampled_codes(profile.columns)
    codes = {str(label): sampled[label].to_numpy(np.int64) for label in sampled.columns}
    numbers = profile.sampled_numbers(profile.columns)
    entities = find_entities(profile, codes, max_categories(profile.records))
    facts = _facts(profile, codes, numbers, entities)
    guesses = [
        _guess(known[name], facts[name])
        if name in known
        else Guess(name, "identifier", None, "values of a type that a draft does not read", confidence=SURE)
        for name in names
    ]
    guesses = with_numeric_codes(with_units(guesses, entities, profile.records), profile)
    data = [
        each.column
        for each in guesses
        if each.column is not None and each.role in ("quasi_identifier", "sensitive", "other")
    ]
    amounts = {each.column.label for each in guesses if each.column is not None and each.kind == "numeric"}
    computed = find_derived(data, codes, numbers, amounts)
    guesses = _without_computed(guesses, computed)
    guesses = without_coarser_levels(with_region(guesses, profile), codes, numbers)
    guesses = without_sparse_numbers(with_key_variables(guesses, codes, numbers), profile)
    guesses = without_small_region(guesses, profile)
    guesses = without_unusable_weights(without_dependencies(guesses, profile), profile)
    return _with_recomputed(with_some_quasi_identifier(guesses), computed)


def _facts(
    profile: Profile,
    codes: Mapping[str, np.ndarray],
    numbers: Mapping[str, np.ndarray],
    entities: Mapping[str, Entity],
) -> dict[str, Facts]:
    """Return the facts about each column, by name."""
    body = any(column.named("body") for column in profile.columns)
    strata = [column for column in profile.columns if column.distinct <= MOST_STRATA]
    return {
        column.name: Facts(
            column=column,
            records=profile.records,
            csv=profile.source.format == "csv",
            numbers=(values := _known(numbers.get(column.label))),
            entity=entities.get(column.label),
            body=body,
            weight_signs=weight_signs(column, profile.records, values, codes, strata, entities),
        )
        for column in profile.columns
    }


def _known(values: np.ndarray | None) -> np.ndarray:
    return np.array([]) if values is None else values[np.isfinite(values)]


def _guess(column: Column, facts: Facts) -> Guess:
    """Return the guess for a column based on its own facts."""
    if column.present == 0:
        return Guess(column.name, "identifier", None, "no values", column, "empty", SURE)
    if column.distinct == 1 and column.present == facts.records:
        return Guess(column.name, "other", None, "the same value in every record", column, "constant", SURE)
    return assigned(facts, read_column(facts))


def _without_computed(guesses: list[Guess], computed: list[Derived]) -> list[Guess]:
    """Leave computed columns out, because protected values would contradict the terms of their formulas."""
    by_name = {each.column.name: each for each in computed}
    result = []
    for each in guesses:
        found = by_name.get(each.name)
        if found is not None:
            alternative = Alternative(each.role, each.kind, "to publish it although it may contradict them")
            why = f"{found.what}: left out, because both would contradict each other after protection"
            each = replace(
                each,
                role="identifier",
                kind=None,
                why=why,
                confidence=LIKELY,
                reading="derived",
                alternative=alternative,
            )
        result.append(each)
    return result


def _with_recomputed(guesses: list[Guess], computed: list[Derived]) -> tuple[list[Guess], list[Derived]]:
    """Recompute columns after protection if their terms are published numbers; return also the formulas."""
    published = {each.name for each in guesses if each.role in ("quasi_identifier", "sensitive", "other")}
    able = {
        each.column.name: each
        for each in computed
        if each.expression is not None
        and all(term.name in published and term.numbers == term.present for term in each.terms)
    }
    result = []
    for each in guesses:
        found = able.get(each.name)
        if found is not None and each.reading == "derived":
            why = f"{found.what}: computed after protection, by [derived]"
            alternative = Alternative("identifier", None, "to leave it out, without its line of [derived]")
            each = replace(each, role="derived", kind="numeric", why=why, alternative=alternative)
        result.append(each)
    recomputed = {each.name for each in result if each.role == "derived"}
    return result, [each for name, each in able.items() if name in recomputed]


def is_nameable(name: str) -> bool:
    """Return whether a specification can name the column."""
    return bool(name.strip()) and not name.startswith("__")
