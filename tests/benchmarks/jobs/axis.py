"""Dimensions of random finished tables: codes and their ancestors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Axis:
    """A dimension of a table.

    Attributes
    ----------
    name : str
    codes : list of str
        The finest codes.
    parents : dict of str to str
        Map from a code to its parent; a code without a parent is a part of the total.
    levels : bool
        Whether parents have a separate column.
    """

    name: str
    codes: list[str]
    parents: dict[str, str] = field(default_factory=dict)
    levels: bool = False

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns, coarse to fine."""
        return [f"g{self.name}", self.name] if self.levels else [self.name]

    def above(self, code: str, total: str) -> list[dict[str, str]]:
        """Return the values of the columns for a code, for each of its ancestors, and for the total."""
        if self.levels:
            coarse = self.parents[code]
            return [dict(zip(self.columns, each, strict=True)) for each in
                    ((coarse, code), (coarse, total), (total, total))]  # fmt: skip
        path = [code]
        while path[-1] in self.parents:
            path.append(self.parents[path[-1]])
        return [{self.name: each} for each in [*path, total]]


def drawn_axis(random: np.random.Generator, name: str) -> Axis:
    """Draw a dimension of one to eight codes: flat, numeric, or hierarchical."""
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
    if random.random() < 0.5:  # the dimension has a leaf next to groups, and a group of groups
        parents |= {group: f"{name}T{int(group[-1]) // 2}" for group in sorted(set(parents.values()))}
        if number > 2:
            del parents[codes[0]]
    return Axis(name, codes, parents)
