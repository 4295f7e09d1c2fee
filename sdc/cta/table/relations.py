"""Additive relations of n-dimensional, hierarchical and linked tables, from arrays of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, NotFinite, ShapeMismatch, UnknownVariable
from numpy.typing import ArrayLike
from scipy import sparse

#: Code of the total of every dimension.
TOTAL = "Total"


@dataclass(frozen=True, eq=False)
class Dimension:
    """A variable of a table with its hierarchy, as a tree whose node 0 is the total.

    Attributes
    ----------
    name : str
    codes : (nodes,) tuple
        Code of each node; codes are distinct within a dimension.
    parents : (nodes,) int array
        Parent of each node; -1 for the total.
    """

    name: str
    codes: tuple[str, ...]
    parents: np.ndarray

    def __post_init__(self) -> None:
        if len(set(self.codes)) != len(self.codes):
            raise InvalidParameter(f"dimension {self.name} has a code twice", variable=self.name)
        parents = np.asarray(self.parents, dtype=np.int64)
        inner = parents[1:]
        if len(parents) != len(self.codes) or parents[0] != -1 or np.any(inner >= np.arange(1, len(parents))):
            raise InvalidParameter(
                f"the hierarchy of {self.name} is no tree below its total", variable=self.name
            )
        object.__setattr__(self, "parents", parents)

    @classmethod
    def of_levels(cls, name: str, *levels: ArrayLike) -> Dimension:
        """Read the hierarchy off arrays of codes, coarsest level first, one entry per record.

        A code that also stands on a coarser level is labelled ``level:code`` (see `labels`).

        Raises
        ------
        InvalidParameter
            Where a code lies under two codes of the coarser level.
        """
        codes: list[str] = [TOTAL]
        parents: list[int] = [-1]
        above: dict[str, int] = {}
        coarser: np.ndarray | None = None
        for depth, level in enumerate(levels):
            texts = np.asarray(level).astype(str)
            if coarser is not None and len(texts) != len(coarser):
                raise ShapeMismatch(f"levels of {name} have different lengths", variable=name)
            distinct, first = np.unique(texts, return_index=True)
            if coarser is not None:
                pairs = np.unique(np.char.add(np.char.add(texts, "\x00"), coarser))
                if len(pairs) != len(distinct):
                    raise InvalidParameter(
                        f"level {depth} of {name} does not nest in the level above it: "
                        f"{len(pairs) - len(distinct)} codes lie under more than one",
                        variable=name,
                    )
            nodes: dict[str, int] = {}
            for code, where in zip(distinct, first, strict=True):
                text = str(code)
                nodes[text] = len(codes)
                parents.append(0 if coarser is None else above[str(coarser[where])])
                codes.append(text if text not in codes else f"{depth}:{text}")
            above, coarser = nodes, texts
        return cls(name, tuple(codes), np.array(parents))

    @classmethod
    def of_tree(cls, name: str, children: Mapping[str, Sequence[str]]) -> Dimension:
        """Build from each parent's children, the total being `TOTAL`.

        Raises
        ------
        InvalidParameter
            Where a code has two parents or is not below the total.
        """
        codes, parents = [TOTAL], [-1]
        position = 0
        while position < len(codes):
            for child in children.get(codes[position], ()):
                codes.append(child)
                parents.append(position)
            if len(codes) > 1 + sum(len(c) for c in children.values()):
                raise InvalidParameter(f"the hierarchy of {name} is no tree below its total", variable=name)
            position += 1
        if len(codes) != 1 + sum(len(c) for c in children.values()):
            raise InvalidParameter(f"some codes of {name} are not below its total", variable=name)
        return cls(name, tuple(codes), np.array(parents))

    @property
    def leaves(self) -> np.ndarray:
        """Nodes without children."""
        return np.setdiff1d(np.arange(len(self.codes)), self.parents)

    def labels(self, level: int, codes: ArrayLike) -> np.ndarray:
        """Codes of this dimension for codes of a level of `of_levels` (0 the coarsest)."""
        texts = np.asarray(codes).astype(str)
        distinct, place = np.unique(texts, return_inverse=True)
        known = set(self.codes)
        names = [f"{level}:{code}" if f"{level}:{code}" in known else str(code) for code in distinct]
        return np.asarray(names, dtype=object)[place]

    def nodes(self, codes: ArrayLike) -> np.ndarray:
        """Node of each code.

        Raises
        ------
        UnknownVariable
            Naming the position of the first code the dimension does not have.
        """
        texts = np.asarray(codes).astype(str)
        order = np.argsort(self.codes)
        ordered = np.asarray(self.codes)[order]
        place = np.minimum(np.searchsorted(ordered, texts), len(ordered) - 1)
        unknown = ordered[place] != texts
        if unknown.any():
            raise UnknownVariable(
                f"entry {int(np.argmax(unknown))} of {self.name} has a code the dimension does not have "
                f"({int(unknown.sum())} such entries)",
                variable=self.name,
            )
        return order[place]

    def ancestors(self, nodes: np.ndarray) -> list[np.ndarray]:
        """The nodes, their parents, their parents' parents, ...; the total repeats at the end."""
        steps = [nodes]
        while np.any(steps[-1] > 0):
            steps.append(np.maximum(self.parents[steps[-1]], 0))
        return steps


@dataclass(frozen=True, eq=False)
class Tabulation:
    """Cells of a table by their node in each dimension, and the lines that tie them.

    Attributes
    ----------
    dimensions : tuple of Dimension
    nodes : (cells, dimensions) int array, sorted
    relations : sparse (lines, cells)
    """

    dimensions: tuple[Dimension, ...]
    nodes: np.ndarray
    relations: sparse.csr_matrix

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.nodes)

    def codes(self, dimension: int) -> np.ndarray:
        """(cells,) codes of one dimension."""
        return np.asarray(self.dimensions[dimension].codes, dtype=object)[self.nodes[:, dimension]]

    def identities(self) -> list[str]:
        """A name per cell that does not change when other cells come or go: its codes."""
        columns = [self.codes(d) for d in range(len(self.dimensions))]
        return ["\x1f".join(map(str, codes)) for codes in zip(*columns, strict=True)]

    def pairs(self, codes: Sequence[ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
        """(pairs,) cells and (pairs,) records: every cell of the table that a record counts in."""
        nodes = [d.nodes(c) for d, c in zip(self.dimensions, codes, strict=True)]
        radix = _radix(self.dimensions)
        known = _keys(self.nodes, radix)
        cells, records = [], []
        for combination in _ancestor_keys(self.dimensions, nodes, radix):
            place = np.minimum(np.searchsorted(known, combination), len(known) - 1)
            counting = np.flatnonzero(known[place] == combination)
            cells.append(place[counting])
            records.append(counting)
        unique = np.unique(np.stack([np.concatenate(cells), np.concatenate(records)]), axis=1)
        return unique[0], unique[1]

    def totals(self, codes: Sequence[ArrayLike], amounts: ArrayLike) -> np.ndarray:
        """(cells,) sums of amounts given per record with its codes."""
        numbers = np.asarray(amounts, dtype=float)
        if not np.all(np.isfinite(numbers)):
            raise NotFinite(f"amount {int(np.argmax(~np.isfinite(numbers)))} is not a finite number")
        cells, records = self.pairs(codes)
        return np.bincount(cells, weights=numbers[records], minlength=self.cells)


def tabulate(
    dimensions: Sequence[Dimension],
    codes: Sequence[ArrayLike],
    tables: Sequence[Sequence[str]] | None = None,
) -> Tabulation:
    """Cells and lines of the table or linked tables that records with these codes make.

    Parameters
    ----------
    dimensions : sequence of Dimension
    codes : one array of codes per dimension, one entry per record (or per occupied combination)
        Any node may be named, not only leaves.
    tables : sequence of tuples of dimension names, optional
        Linked tables over some of the dimensions each; cells they share exist once. All dimensions
        together in one table where not given.

    Returns
    -------
    Tabulation
        A cell exists where a record lies in or below it; a combination that must be there although it is
        empty needs a record with amount zero.
    """
    nodes = _checked_nodes(dimensions, codes)
    radix = _radix(dimensions)
    names = [d.name for d in dimensions]
    keys = []
    for table in tables if tables is not None else [names]:
        for name in table:
            if name not in names:
                raise UnknownVariable("a linked table names a dimension that is not there", variable=name)
        summed_nodes = [
            n if d.name in table else np.zeros_like(n) for d, n in zip(dimensions, nodes, strict=True)
        ]
        keys += [np.unique(k) for k in _ancestor_keys(dimensions, summed_nodes, radix)]
    return _tabulation(tuple(dimensions), np.unique(np.concatenate(keys)), radix)


def from_cells(dimensions: Sequence[Dimension], codes: Sequence[ArrayLike]) -> tuple[Tabulation, np.ndarray]:
    """Cells given one by one, margins included; returns the tabulation and each given cell's place in it.

    A line ties a cell to those of its children that are given; children that are not count as structural
    zeros.

    Raises
    ------
    InvalidParameter
        Where two entries name the same cell.
    UnknownVariable
        Where a code is not in its dimension.
    """
    nodes = _checked_nodes(dimensions, codes)
    radix = _radix(dimensions)
    keys = _keys(np.stack(nodes, axis=1), radix)
    unique, first, places = np.unique(keys, return_index=True, return_inverse=True)
    if len(unique) != len(keys):
        repeated = np.setdiff1d(np.arange(len(keys)), first)
        raise InvalidParameter(
            f"entry {int(repeated[0])} names a cell that an earlier entry names too "
            f"({len(repeated)} such entries)",
            variable=int(repeated[0]),
        )
    return _tabulation(tuple(dimensions), unique, radix), places


def _checked_nodes(dimensions: Sequence[Dimension], codes: Sequence[ArrayLike]) -> list[np.ndarray]:
    if len(dimensions) == 0 or len(dimensions) != len(codes):
        raise ShapeMismatch(f"{len(codes)} arrays of codes for {len(dimensions)} dimensions")
    nodes = [d.nodes(c) for d, c in zip(dimensions, codes, strict=True)]
    if len({len(n) for n in nodes}) != 1 or len(nodes[0]) == 0:
        raise ShapeMismatch("the arrays of codes must have one common length of at least 1")
    return nodes


def _tabulation(dimensions: tuple[Dimension, ...], keys: np.ndarray, radix: np.ndarray) -> Tabulation:
    """Tie each cell to the cell one step up in each dimension; keys are sorted and distinct."""
    nodes = (keys[:, None] // radix[None, :]) % np.array([len(d.codes) for d in dimensions])
    rows, columns, entries = [], [], []
    lines = 0
    for d, dimension in enumerate(dimensions):
        node = nodes[:, d]
        below = np.flatnonzero(node > 0)
        above = keys[below] + (dimension.parents[node[below]] - node[below]) * radix[d]
        place = np.minimum(np.searchsorted(keys, above), len(keys) - 1)
        exists = keys[place] == above
        totals, line = np.unique(place[exists], return_inverse=True)
        rows += [lines + line, lines + np.arange(len(totals))]
        columns += [below[exists], totals]
        entries += [np.ones(int(exists.sum())), -np.ones(len(totals))]
        lines += len(totals)
    matrix = sparse.csr_matrix(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=(lines, len(keys))
    )
    return Tabulation(dimensions, nodes, matrix)


def _radix(dimensions: Sequence[Dimension]) -> np.ndarray:
    """(dimensions,) weights that turn the nodes of a cell into one whole number, first dimension heaviest."""
    sizes = [len(d.codes) for d in dimensions]
    if float(np.prod(np.array(sizes, dtype=float))) >= 2.0**62:
        raise InvalidParameter("the dimensions have more combinations than can be numbered")
    return np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]]).astype(np.int64)


def _keys(nodes: np.ndarray, radix: np.ndarray) -> np.ndarray:
    return nodes @ radix


def _ancestor_keys(
    dimensions: Sequence[Dimension], nodes: Sequence[np.ndarray], radix: np.ndarray
) -> list[np.ndarray]:
    """Keys of all combinations of ancestors, one array per combination of steps upwards."""
    keys = [np.zeros(len(nodes[0]), dtype=np.int64)]
    for d, (dimension, finest) in enumerate(zip(dimensions, nodes, strict=True)):
        keys = [key + step * radix[d] for key in keys for step in dimension.ancestors(finest)]
    return keys
