"""Attack on sensitive values by a reader who knows another sensitive number: savings, a wage, a fine.

The attacker knows region and savings of a person and searches the records with both. If there is one such
record, the attacker reads its other sensitive values.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Read:
    """Numbers of persons searched, of persons with one match, and of persons whose other sensitive value was
    read.
    """

    persons: int
    alone: int
    read: int


def attack(original: pd.DataFrame, published: pd.DataFrame, known: list[str], looked_for: str) -> Read:
    """Search every original person among published records in the same order.

    Parameters
    ----------
    original, published : DataFrame
    known : list of str
        Columns published as they are, whose true values the attacker knows.
    looked_for : str
        Column that the attacker reads.
    """
    one = published.groupby(known, dropna=False)[looked_for].agg(["size", "first"])
    found = original[[*known, looked_for]].join(one, on=known)
    alone = found["size"] == 1
    right = alone & (found["first"] == found[looked_for])
    return Read(len(original), int(alone.sum()), int(right.sum()))
