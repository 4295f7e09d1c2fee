"""Guess the roles and kinds of all columns from a profile, erring on the side of protection.

A column that may identify a unit becomes an identifier until a person changes its role. No column that may
identify a unit is published without modification.
"""

from __future__ import annotations

from microguard.pipelines.drafting.classify_column import Guess, classify_column
from microguard.pipelines.drafting.corrections import (
    with_numeric_codes,
    with_one_key_per_role,
    with_region,
    with_repeated_keys,
    with_some_quasi_identifier,
    without_dependencies,
    without_small_region,
    without_sparse_numbers,
    without_unusable_weights,
)
from microguard.pipelines.drafting.names import name_indicates
from microguard.pipelines.drafting.profile import Profile


def guess_roles(profile: Profile) -> list[Guess]:
    """Return a guess for every column that a specification can name."""
    known = {column.name: column for column in profile.columns}
    names = [name for name in profile.source.schema.names if is_nameable(name)]
    body = any(name_indicates(name, "body") for name in names)
    guesses = [
        classify_column(known[name], profile, body)
        if name in known
        else Guess(name, "identifier", None, "nested or binary values")
        for name in names
    ]
    guesses = with_one_key_per_role(with_repeated_keys(guesses, profile))
    guesses = with_region(with_numeric_codes(guesses, profile), profile)
    guesses = without_small_region(without_sparse_numbers(guesses, profile), profile)
    guesses = without_unusable_weights(without_dependencies(guesses, profile), profile)
    return with_some_quasi_identifier(guesses)


def is_nameable(name: str) -> bool:
    """Return whether a specification can name the column."""
    return bool(name.strip()) and not name.startswith("__")
