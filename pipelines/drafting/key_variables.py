"""Choice of the key variables of a file by their contribution to the re-identification risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from microguard.pipelines.drafting.guess import LIKELY, UNSURE, Alternative, Guess

MOST_KEY_VARIABLES = 8
"""Maximum number of key variables; an attacker rarely knows more about a unit."""
BANDS = 20
"""Number of bands of equal frequency in which amounts are compared."""


def with_key_variables(
    guesses: Sequence[Guess], codes: Mapping[str, np.ndarray], numbers: Mapping[str, np.ndarray]
) -> list[Guess]:
    """Keep at most `MOST_KEY_VARIABLES` quasi-identifiers; the others become sensitive or are published
    unmodified.

    Variables that others can see or know about a unit are chosen first, then other categories, then amounts.
    Within each of these, the next key variable is the one with which the sampled records are in the most
    classes. A variable that adds no class, such as a coarser level of a chosen code, comes last.

    Parameters
    ----------
    guesses : sequence of Guess
    codes : mapping of label to (n,) int array
        Values of the sampled records.
    numbers : mapping of label to (n,) float array
        Their numbers.
    """
    candidates = [each for each in guesses if each.role == "quasi_identifier" and each.column is not None]
    if len(candidates) <= MOST_KEY_VARIABLES:
        return list(guesses)
    tiers: list[list[Guess]] = [[], [], []]
    for each in candidates:
        tiers[_tier(each)].append(each)
    region = [codes[each.column.label] for each in guesses if each.role == "region" and each.column]
    classes = region[0].astype(np.int64) if region else np.zeros(len(next(iter(codes.values()))), np.int64)
    chosen: dict[str, str] = {}
    for tier, least in (*((tier, 1) for tier in tiers), (candidates, 0)):
        left = [each for each in tier if each.name not in chosen]
        while left and len(chosen) < MOST_KEY_VARIABLES:
            joined = {each.name: _joined(classes, _coarse(each, codes, numbers)) for each in left}
            best = max(left, key=lambda each: (int(joined[each.name].max()), _distinct(each)))
            if joined[best.name].max() < classes.max() + least:
                break  # coarser levels of a chosen code add no risk
            classes = joined[best.name]
            unique = float(np.mean(np.bincount(classes)[classes] == 1))
            number = len(chosen) + 1
            share = f"{unique:.1%} of the sampled records are unique"
            among = "by itself" if number == 1 else f"with key variables 1 to {number}"
            chosen[best.name] = f"key variable {number} by risk: {share} {among}"
            left.remove(best)
    return [_assigned(each, chosen) for each in guesses]


def _tier(each: Guess) -> int:
    assert each.column is not None
    if each.column.named("visible", "place", "age") and not each.column.named("income"):
        return 0
    return 1 if each.kind == "nominal" else 2


def _assigned(each: Guess, chosen: Mapping[str, str]) -> Guess:
    if each.role != "quasi_identifier" or each.column is None:
        return each
    if each.name in chosen:
        return replace(each, why=f"{each.why}; {chosen[each.name]}")
    alternative = Alternative("quasi_identifier", each.kind, "if an attacker may know it")
    role = "sensitive" if each.column.named("income") else "other"
    why = "an income" if role == "sensitive" else "none of the key variables by risk"
    confidence = UNSURE if each.confidence == UNSURE else LIKELY
    return replace(
        each,
        role=role,
        why=f"{each.why}; {why}",
        confidence=confidence,
        alternative=each.alternative or alternative,
    )


def _distinct(each: Guess) -> int:
    return 0 if each.column is None else each.column.distinct


def _coarse(each: Guess, codes: Mapping[str, np.ndarray], numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the codes of a category, or the band numbers of a number."""
    assert each.column is not None
    values = numbers.get(each.column.label)
    if each.kind == "nominal" or values is None:
        return codes[each.column.label]
    known = values[np.isfinite(values)]
    limits = np.unique(np.quantile(known, np.linspace(0, 1, BANDS + 1)[1:-1])) if len(known) else known
    return np.where(np.isfinite(values), np.searchsorted(limits, values, side="right"), -1)


def _joined(classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the joint classes of both codings, numbered from 0."""
    pairs = classes * (int(codes.max(initial=0)) + 2) + codes + 1
    return np.unique(pairs, return_inverse=True)[1].astype(np.int64)
