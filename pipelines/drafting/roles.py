"""Guess roles and kinds from a profile, on the safe side: what might identify is an identifier until a person
says otherwise, and nothing that could is ever published as it is."""

from __future__ import annotations

from microguard.pipelines.drafting.corrections import (
    one_each,
    with_codes,
    with_region,
    with_repeated_keys,
    with_some_quasi_identifier,
    with_weights_that_count,
    without_dependencies,
    without_rare_numbers,
    without_small_region,
)
from microguard.pipelines.drafting.first_guess import Guess, first_guess
from microguard.pipelines.drafting.names import says
from microguard.pipelines.drafting.profile import Profile


def guess(profile: Profile) -> list[Guess]:
    """A guess for every column of the file that a specification can name."""
    known = {column.name: column for column in profile.columns}
    names = [name for name in profile.source.schema.names if is_nameable(name)]
    body = any(says(name, "body") for name in names)
    guesses = [
        first_guess(known[name], profile, body)
        if name in known
        else Guess(name, "identifier", None, "not a single value")
        for name in names
    ]
    guesses = one_each(with_repeated_keys(guesses, profile))
    guesses = with_region(with_codes(guesses, profile), profile)
    guesses = without_small_region(without_rare_numbers(guesses, profile), profile)
    guesses = with_weights_that_count(without_dependencies(guesses, profile), profile)
    return with_some_quasi_identifier(guesses)


def is_nameable(name: str) -> bool:
    """Whether a specification can name the column."""
    return bool(name.strip()) and not name.startswith("__")
