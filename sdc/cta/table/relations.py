"""Build the additive constraints of n-dimensional, hierarchical and linked tables from arrays of codes."""

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
    """A classification variable of a table with its hierarchy: a tree whose node 0 is the total.

    Attributes
    ----------
    name : str
    codes : (nodes,) tuple
        Code of each node, distinct within a dimension.
    parents : (nodes,) int array
        Parent of each node, which has a smaller position; -1 for the total.
    """

    name: str
    codes: tuple[str, ...]
    parents: np.ndarray

    def __post_init__(self) -> None:
        if len(set(self.codes)) != len(self.codes):
            raise InvalidParameter(
                (f"dimension {self.name}: expected distinct codes, found repeated ones"), variable=self.name
            )
        parents = np.asarray(self.parents, dtype=np.int64)
        inner = parents[1:]
        if len(parents) != len(self.codes) or parents[0] != -1 or np.any(inner >= np.arange(1, len(parents))):
            raise InvalidParameter(
                f"hierarchy of {self.name}: expected a tree whose root is the total, found another structure",
                variable=self.name,
            )
        object.__setattr__(self, "parents", parents)

    @classmethod
    def from_levels(cls, name: str, *levels: ArrayLike) -> Dimension:
        """Derive the hierarchy from arrays of codes, coarsest level first, one entry per record.

        A code that a coarser level also uses is labelled ``level:code`` (see `labels`).

        Raises
        ------
        InvalidParameter
            If a code has two parents on the coarser level.
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
                        f"level {depth} of {name}: expected codes nested in the coarser level, found "
                        f"{len(pairs) - len(distinct)} codes with more than one parent",
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
    def from_tree(cls, name: str, children: Mapping[str, Sequence[str]]) -> Dimension:
        """Build the hierarchy from the children of each code; the root is `TOTAL`.

        Raises
        ------
        InvalidParameter
            If a code has two parents or no path to the root.
        """
        codes, parents = [TOTAL], [-1]
        position = 0
        while position < len(codes):
            for child in children.get(codes[position], ()):
                codes.append(child)
                parents.append(position)
            if len(codes) > 1 + sum(len(c) for c in children.values()):
                raise InvalidParameter(
                    f"hierarchy of {name}: expected a tree whose root is the total, found another structure",
                    variable=name,
                )
            position += 1
        if len(codes) != 1 + sum(len(c) for c in children.values()):
            raise InvalidParameter(
                (
                    f"hierarchy of {name}: expected a path from each code to the total, found "
                    "codes without one"
                ),
                variable=name,
            )
        return cls(name, tuple(codes), np.array(parents))

    @property
    def leaves(self) -> np.ndarray:
        """Return the positions of the nodes without children."""
        return np.setdiff1d(np.arange(len(self.codes)), self.parents)

    def labels(self, level: int, codes: ArrayLike) -> np.ndarray:
        """Convert the codes of one level of `from_levels` (0 the coarsest) to codes of this dimension."""
        texts = np.asarray(codes).astype(str)
        distinct, place = np.unique(texts, return_inverse=True)
        known = set(self.codes)
        names = [f"{level}:{code}" if f"{level}:{code}" in known else str(code) for code in distinct]
        return np.asarray(names, dtype=object)[place]

    def nodes(self, codes: ArrayLike) -> np.ndarray:
        """Return the node of each code.

        Raises
        ------
        UnknownVariable
            If the dimension lacks a code; the message names the position of the first unknown code.
        """
        texts = np.asarray(codes).astype(str)
        order = np.argsort(self.codes)
        ordered = np.asarray(self.codes)[order]
        place = np.minimum(np.searchsorted(ordered, texts), len(ordered) - 1)
        unknown = ordered[place] != texts
        if unknown.any():
            raise UnknownVariable(
                f"{self.name}: expected codes of the dimension, found {int(unknown.sum())} others, the "
                f"first at position {int(np.argmax(unknown))}. Correct them, or add them to the dimension",
                variable=self.name,
            )
        return order[place]

    def ancestors(self, nodes: np.ndarray) -> list[np.ndarray]:
        """Return the nodes, their parents and so on up to the root; shorter branches are padded with the
        root.
        """
        steps = [nodes]
        while np.any(steps[-1] > 0):
            steps.append(np.maximum(self.parents[steps[-1]], 0))
        return steps


@dataclass(frozen=True, eq=False)
class Tabulation:
    """Cells of a table, identified by their node in each dimension, and their additive constraints.

    Attributes
    ----------
    dimensions : tuple of Dimension
    nodes : (cells, dimensions) int array, sorted
    relations : sparse (constraints, cells)
    """

    dimensions: tuple[Dimension, ...]
    nodes: np.ndarray
    relations: sparse.csr_matrix

    @property
    def cells(self) -> int:
        """Return the number of cells."""
        return len(self.nodes)

    def codes(self, dimension: int) -> np.ndarray:
        """Return the code of each cell in one dimension, (cells,)."""
        return np.asarray(self.dimensions[dimension].codes, dtype=object)[self.nodes[:, dimension]]

    def identities(self) -> list[str]:
        """Return a name for each cell: its joined codes, which do not depend on other cells."""
        columns = [self.codes(d) for d in range(len(self.dimensions))]
        return ["\x1f".join(map(str, codes)) for codes in zip(*columns, strict=True)]

    def pairs(self, codes: Sequence[ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs of a cell and a record that contributes to it, as two arrays (pairs,)."""
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
        """Sum the amounts of the records of each cell, (cells,); the records are given by their codes."""
        numbers = np.asarray(amounts, dtype=float)
        if not np.all(np.isfinite(numbers)):
            raise NotFinite(
                "amounts: expected finite numbers, found another one at position "
                f"{int(np.argmax(~np.isfinite(numbers)))}. Correct it, or exclude the record"
            )
        cells, records = self.pairs(codes)
        return np.bincount(cells, weights=numbers[records], minlength=self.cells)


def tabulate(
    dimensions: Sequence[Dimension],
    codes: Sequence[ArrayLike],
    tables: Sequence[Sequence[str]] | None = None,
) -> Tabulation:
    """Build the cells and constraints of a table, or of linked tables, from the codes of its records.

    Parameters
    ----------
    dimensions : sequence of Dimension
    codes : one array of codes per dimension, one entry per record (or per occupied combination)
        Codes of inner nodes are allowed too.
    tables : sequence of tuples of dimension names, optional
        Linked tables, each over some of the dimensions; shared cells exist once. Default: one table over all
        dimensions.

    Returns
    -------
    Tabulation
        Has a cell for each combination of nodes to which a record contributes. To include an empty
        combination, give a record with amount zero.

    Raises
    ------
    UnknownVariable
        If a linked table or a code is not in the dimensions.
    """
    nodes = _checked_nodes(dimensions, codes)
    radix = _radix(dimensions)
    names = [d.name for d in dimensions]
    keys = []
    for table in tables if tables is not None else [names]:
        for name in table:
            if name not in names:
                raise UnknownVariable(
                    "linked table: expected names of dimensions, found another name", variable=name
                )
        summed_nodes = [
            n if d.name in table else np.zeros_like(n) for d, n in zip(dimensions, nodes, strict=True)
        ]
        keys += [np.unique(k) for k in _ancestor_keys(dimensions, summed_nodes, radix)]
    return _tabulation(tuple(dimensions), np.unique(np.concatenate(keys)), radix)


def from_cells(dimensions: Sequence[Dimension], codes: Sequence[ArrayLike]) -> tuple[Tabulation, np.ndarray]:
    """Build the constraints of a given list of cells that includes margins.

    A constraint contains a cell and its listed children; children that are not listed are treated as
    structural zeros.

    Returns
    -------
    tabulation : Tabulation
    places : (entries,) position of each entry among the cells of the tabulation

    Raises
    ------
    InvalidParameter
        If two entries are the same cell.
    UnknownVariable
        If a code is not in its dimension.
    """
    nodes = _checked_nodes(dimensions, codes)
    radix = _radix(dimensions)
    keys = _keys(np.stack(nodes, axis=1), radix)
    unique, first, places = np.unique(keys, return_index=True, return_inverse=True)
    if len(unique) != len(keys):
        repeated = np.setdiff1d(np.arange(len(keys)), first)
        raise InvalidParameter(
            f"entry {int(repeated[0])}: expected each cell only once, found the same cell in an earlier "
            f"entry ({len(repeated)} such entries)",
            variable=int(repeated[0]),
        )
    return _tabulation(tuple(dimensions), unique, radix), places


def _checked_nodes(dimensions: Sequence[Dimension], codes: Sequence[ArrayLike]) -> list[np.ndarray]:
    if len(dimensions) == 0 or len(dimensions) != len(codes):
        raise ShapeMismatch(
            f"arrays of codes: found {len(codes)}, expected one for each of the {len(dimensions)} dimensions"
        )
    nodes = [d.nodes(c) for d, c in zip(dimensions, codes, strict=True)]
    if len({len(n) for n in nodes}) != 1 or len(nodes[0]) == 0:
        raise ShapeMismatch("arrays of codes: expected one common length of at least 1")
    return nodes


def _tabulation(dimensions: tuple[Dimension, ...], keys: np.ndarray, radix: np.ndarray) -> Tabulation:
    """Build one constraint for each cell and each dimension in which the cell has children; keys are sorted
    and distinct.
    """
    nodes = (keys[:, None] // radix[None, :]) % np.array([len(d.codes) for d in dimensions])
    rows, columns, entries = [], [], []
    count = 0
    for d, dimension in enumerate(dimensions):
        node = nodes[:, d]
        below = np.flatnonzero(node > 0)
        above = keys[below] + (dimension.parents[node[below]] - node[below]) * radix[d]
        place = np.minimum(np.searchsorted(keys, above), len(keys) - 1)
        exists = keys[place] == above
        totals, constraint = np.unique(place[exists], return_inverse=True)
        rows += [count + constraint, count + np.arange(len(totals))]
        columns += [below[exists], totals]
        entries += [np.ones(int(exists.sum())), -np.ones(len(totals))]
        count += len(totals)
    matrix = sparse.csr_matrix(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=(count, len(keys))
    )
    return Tabulation(dimensions, nodes, matrix)


def _radix(dimensions: Sequence[Dimension]) -> np.ndarray:
    """Return the weights (dimensions,) that encode the nodes of a cell as one integer, its key."""
    sizes = [len(d.codes) for d in dimensions]
    if float(np.prod(np.array(sizes, dtype=float))) >= 2.0**62:
        raise InvalidParameter(
            "dimensions: expected at most 2^62 combinations of codes, found more; use fewer or coarser "
            "dimensions"
        )
    return np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]]).astype(np.int64)


def _keys(nodes: np.ndarray, radix: np.ndarray) -> np.ndarray:
    return nodes @ radix


def _ancestor_keys(
    dimensions: Sequence[Dimension], nodes: Sequence[np.ndarray], radix: np.ndarray
) -> list[np.ndarray]:
    """Return the keys of all combinations of a record's ancestors, one array per combination of tree
    levels.
    """
    keys = [np.zeros(len(nodes[0]), dtype=np.int64)]
    for d, (dimension, finest) in enumerate(zip(dimensions, nodes, strict=True)):
        keys = [key + step * radix[d] for key in keys for step in dimension.ancestors(finest)]
    return keys
