"""Generate hierarchical tables with lognormal cells, of which small ones are more often sensitive."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.table.relations import TOTAL, Dimension, tabulate

#: Numbers of children by level and dimension, and share of combinations with records.
HIERARCHIES: dict[str, tuple[tuple[tuple[int, ...], ...], float]] = {
    "8.6 x 5.9": (((8, 6), (5, 9)), 0.6),
    "8.10 x 10.10": (((8, 10), (10, 10)), 0.6),
    "8.10 x 15.20": (((8, 10), (15, 20)), 0.6),
    "10.10.5 x 20.24": (((10, 10, 5), (20, 24)), 0.9),
    "4.5 x 3.3 x 4.2": (((4, 5), (3, 3), (4, 2)), 0.35),
    "6.6 x 4.4 x 5.3": (((6, 6), (4, 4), (5, 3)), 0.35),
    "3.3 x 3 x 3.3 x 3": (((3, 3), (3,), (3, 3), (3,)), 0.35),
}
#: Protection of a sensitive cell, and minimum capacity of any cell, as shares of its value.
_LEVEL, _ROOM = 0.2, 0.3


def hierarchical_table(
    branchings: Iterable[tuple[int, ...]], seed: int, *, occupied: float, sensitive: float = 0.05
) -> CellTable:
    """Draw lognormal cells in a share of the combinations; small cells are more often sensitive.

    A sensitive cell has a protection of 20 % and a capacity of 30 % of its value.

    Parameters
    ----------
    branchings : numbers of children of the nodes, by level, for each dimension
    seed : int
    occupied : share of the combinations that have records
    """
    rng = np.random.default_rng(seed)
    trees = [tree(f"d{number}.", branching) for number, branching in enumerate(branchings)]
    shape = tuple(len(dimension.leaves) for dimension in trees)
    there = np.flatnonzero(rng.random(int(np.prod(shape))) < occupied)
    codes = [
        np.array(dimension.codes)[dimension.leaves[place]]
        for dimension, place in zip(trees, np.unravel_index(there, shape), strict=True)
    ]
    tabulation = tabulate(trees, codes)
    values = tabulation.totals(codes, np.rint(10 * rng.lognormal(5.0, 1.5, len(there))) + 20)
    order = np.argsort(rng.exponential(size=len(values)) * np.sqrt(values))
    flags = np.zeros(len(values), dtype=bool)
    flags[order[: round(sensitive * len(values))]] = True
    level = np.where(flags, np.ceil(_LEVEL * values), 0.0)
    room = np.maximum(np.ceil(_ROOM * values), level)
    return CellTable(values, tabulation.relations, flags, level, level, room, room)


def tree(name: str, branching: tuple[int, ...]) -> Dimension:
    children: dict[str, list[str]] = {}
    level = [TOTAL]
    for count in branching:
        for parent in level:
            children[parent] = [f"{name}{parent}.{number}" for number in range(count)]
        level = [child for parent in level for child in children[parent]]
    return Dimension.from_tree(name, children)
