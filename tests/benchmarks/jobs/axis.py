"""Dimensions of random finished tables: their codes, and the codes above them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Axis:
    """A dimension.

    Attributes
    ----------
    name : str
    codes : list of str
        The finest ones.
    parents : dict of str to str
        Code -> the code above it; one that is not named is a part of the total.
    levels : bool
        Whether the codes above have a column of their own.
    """

    name: str
    codes: list[str]
    parents: dict[str, str] = field(default_factory=dict)
    levels: bool = False

    @property
    def columns(self) -> list[str]:
        """Columns, coarse to fine."""
        return [f"g{self.name}", self.name] if self.levels else [self.name]

    def above(self, code: str, total: str) -> list[dict[str, str]]:
        """What stands in the columns of the code, of each code above it, and of the total."""
        if self.levels:
            coarse = self.parents[code]
            return [dict(zip(self.columns, each, strict=True)) for each in
                    ((coarse, code), (coarse, total), (total, total))]  # fmt: skip
        path = [code]
        while path[-1] in self.parents:
            path.append(self.parents[path[-1]])
        return [{self.name: each} for each in [*path, total]]


def drawn_axis(random: np.random.Generator, name: str) -> Axis:
    """A dimension of one to eight codes: flat, of numbers, or with codes above them."""
    number = int(random.choice([1, 2, 4, 8]))
    kind = str(random.choice(["flat", "flat", "parents", "levels", "numbers"]))
    if kind == "numbers":
        return Axis(name, [str(10 + i) for i in range(number)])
    codes = [f"{name}é{i}" if kind == "flat" and number == 4 else f"{name}c{i}" for i in range(number)]
    if kind == "flat":
        return Axis(name, codes)
    groups = random.integers(0, max(1, number // 2), number)
    parents = {code: f"{name}G{group}" for code, group in zip(codes, groups, strict=True)}
    if kind == "levels":
        return Axis(name, codes, parents, levels=True)
    if random.random() < 0.5:  # a part of the total beside groups, and a group of groups
        parents |= {group: f"{name}T{int(group[-1]) // 2}" for group in sorted(set(parents.values()))}
        if number > 2:
            del parents[codes[0]]
    return Axis(name, codes, parents)
