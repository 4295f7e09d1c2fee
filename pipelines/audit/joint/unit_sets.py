"""Sets of units whose sums releases publish, and atoms: groups of units that belong to the same sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.audit.differencing.histories import mix_bits
from microguard.pipelines.audit.joint.differences import (
    BUCKETS,
    MOST_APART,
    Apart,
    CellSets,
    close_pairs,
)
from microguard.pipelines.audit.joint.kept import Kept
from microguard.pipelines.audit.joint.partitions import Partition
from microguard.pipelines.audit.joint.system import MIXED, STRUCTURE
from scipy import sparse

#: Maximum number of memberships of units in published sets for which the system contains all sets.
MEMBERSHIPS = 20_000
#: Maximum size of a set of units in a larger system; larger sets are compared only through their differences.
SMALL_SET = 64


@dataclass(frozen=True)
class UnitSets:
    """Distinct sets of units, one row for each set, and the intervals that releases state for their sums."""

    hashes: np.ndarray
    sizes: np.ndarray
    cells: np.ndarray
    k: np.ndarray
    tied_by: np.ndarray
    stated: np.ndarray
    low: np.ndarray
    high: np.ndarray
    release: np.ndarray


def distinct_sets(
    partitions: Sequence[Partition], cells_of_table: Mapping[int, np.ndarray]
) -> tuple[UnitSets, list[np.ndarray]]:
    """Merge equal sets of all partitions; return the sets, and the first occurrence of each.

    Parameters
    ----------
    partitions : sequence of Partition
    cells_of_table : mapping of int to array
        Position of a table -> the unknown of each of its cells.

    Returns
    -------
    sets : UnitSets
    row_of : list of (p,) int64 arrays
        Row of each set of each partition; -1 if an earlier partition has the set.
    """
    cells = []
    for each in partitions:
        found = np.full(len(each.cells), -1, np.int64)
        if each.release in cells_of_table and len(each.cells) and each.cells[0] >= 0:
            found = cells_of_table[each.release][each.cells]
        cells.append(found)
    none = np.zeros(0, np.int64)
    joined = np.concatenate([*(each.hashes for each in partitions), none.astype(np.uint64)])
    sizes = np.concatenate([*(each.sizes for each in partitions), none])
    distinct, first, of = np.unique(joined, return_index=True, return_inverse=True)
    of = of.reshape(-1)
    cell, k = np.full(len(distinct), -1, np.int64), np.zeros(len(distinct), np.int64)
    release = np.concatenate([*(np.full(len(p.cells), p.release) for p in partitions), none])
    np.maximum.at(cell, of, np.concatenate([*cells, none]))
    np.maximum.at(k, of, np.concatenate([*(np.full(len(p.cells), p.k) for p in partitions), none]))
    tied_by = np.full(len(distinct), MIXED, np.int64)
    of_cell = np.flatnonzero(np.concatenate([*cells, none]) >= 0)[::-1]
    tied_by[of[of_cell]] = release[of_cell]  # the release in which each set occurs first
    said = pd.DataFrame(
        {
            "set": of,
            "low": np.concatenate([*(p.lower for p in partitions), none]),
            "high": np.concatenate([*(p.upper for p in partitions), none]),
            "release": release,
        }
    )
    said = said[np.isfinite(said["low"]) | np.isfinite(said["high"])].drop_duplicates(["set", "low", "high"])
    stated = (said[name].to_numpy() for name in ("set", "low", "high", "release"))
    sets = UnitSets(distinct, sizes[first], cell, k, tied_by, *stated)
    row = np.where(np.arange(len(joined)) == first[of], of, -1) if len(joined) else of
    ends = np.cumsum([len(each.cells) for each in partitions])[:-1]
    return sets, list(np.split(row, ends)) if len(partitions) else []


@dataclass(frozen=True)
class Atoms:
    """Groups of entities that belong to the same sets.

    Attributes
    ----------
    key : (n,) uint64 array
    units : (n,) int64 array
        Number of contributors: of holdings, and of entities without one.
    k : (n,) int64 array
        Largest minimum frequency of their sets.
    holder : (n,) uint64 array
        The contributor of a group with one; 0 for other groups.
    """

    key: np.ndarray
    units: np.ndarray
    k: np.ndarray
    holder: np.ndarray

    def with_sums(self) -> tuple[Atoms, sparse.csr_matrix]:
        """Return the groups followed by the sum of all groups of each contributor that has several, and the
        incidence of groups in these sums.
        """
        single = np.flatnonzero(self.units == 1)
        holder, of, count = np.unique(self.holder[single], return_inverse=True, return_counts=True)
        several = count > 1
        place = np.cumsum(several) - 1
        chosen = several[of.reshape(-1)]
        rows, columns = place[of.reshape(-1)[chosen]], single[chosen]
        number = int(several.sum())
        k = np.zeros(number, np.int64)
        np.maximum.at(k, rows, self.k[columns])
        sums = Atoms(mix_bits(holder[several], 24), np.ones(number, np.int64), k, holder[several])
        whole = Atoms(*(np.concatenate([getattr(self, name), getattr(sums, name)]) for name in vars(self)))
        return whole, sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), (number, len(self.key)))


@dataclass(frozen=True)
class Differences:
    """Pairs of cells of which the first contains units that the second does not contain, and possibly vice
    versa.

    Attributes
    ----------
    more, less : (d,) int64 arrays
        Unknown of each cell.
    key : (d,) uint64 array
    k : (d,) int64 array
    entities, of, signs : (m,) uint64, int64 and float64 arrays
        An entity, the pair of cells that differ in this entity, and 1 if the first cell has it, -1 if the
        second.
    skipped : int
        Pairs that were not compared because there are too many.
    """

    more: np.ndarray
    less: np.ndarray
    key: np.ndarray
    k: np.ndarray
    entities: np.ndarray
    of: np.ndarray
    signs: np.ndarray
    skipped: int = 0


def used_sets(sets: UnitSets) -> tuple[np.ndarray, int]:
    """Return the sets that the system contains, and the number of large sets that it omits."""
    used = sets.sizes > 0
    if int(sets.sizes.sum()) <= MEMBERSHIPS:
        return used, 0
    return used & (sets.sizes <= SMALL_SET), int((sets.sizes > SMALL_SET).sum())


def cell_differences(cells: Sequence[tuple[CellSets, Partition, np.ndarray]], kept: Kept) -> Differences:
    """Return the pairs of large cells (including margins) that differ by at most `MOST_APART` units.

    Parameters
    ----------
    cells : sequence of (CellSets, Partition, array)
        Cell sets of each table, with the unknown of each of its cells.
    kept : Kept
        Stored differences of earlier audits, keyed by the hashes of both sets.
    """
    none = np.zeros(0, np.int64)
    large = [np.flatnonzero(of.sizes > SMALL_SET - MOST_APART) for of, _, _ in cells]
    table = np.concatenate([*(np.full(len(rows), t) for t, rows in enumerate(large)), none])
    row = np.concatenate([*large, none])
    hashes = np.concatenate([*(of.hashes()[rows] for (of, _, _), rows in zip(cells, large, strict=True)),
                             none.astype(np.uint64)])  # fmt: skip
    distinct, first = np.unique(hashes, return_index=True)
    table, row = table[first], row[first]
    picked = [cells[t][0] for t in table]
    buckets = np.array([of.buckets[r] for of, r in zip(picked, row, strict=True)], np.uint64)
    sizes = np.array([of.sizes[r] for of, r in zip(picked, row, strict=True)], np.int64)

    def apart(one: int, other: int, different: np.ndarray) -> Apart:
        name = f"{distinct[one]:016x}{distinct[other]:016x}"
        listed = kept.get("differences", name)
        if listed is None:
            found = [cells[table[i]][0].units(row[i], cells[table[i]][1], different) for i in (one, other)]
            more, less = np.setdiff1d(*found), np.setdiff1d(*found[::-1])
            few = len(more) + len(less) <= MOST_APART
            listed = kept.put("differences", name, [more.tolist(), less.tolist()] if few else [])
        return (np.array(listed[0], np.uint64), np.array(listed[1], np.uint64)) if listed else None

    pairs, skipped = close_pairs(buckets.reshape(-1, BUCKETS), sizes, apart)
    unknown = np.array([cells[t][2][cells[t][0].cells[r]] for t, r in zip(table, row, strict=True)], np.int64)
    least = np.array([cells[t][1].k for t in table], np.int64)
    of = np.array(list(pairs), np.int64).reshape(-1, 2)
    sides = [side for pair in pairs.values() for side in pair]
    lengths = np.array([len(side) for side in sides], np.int64)
    return Differences(
        unknown[of[:, 0]],
        unknown[of[:, 1]],
        mix_bits(distinct[of[:, 0]] - distinct[of[:, 1]], 18),
        np.maximum(least[of[:, 0]], least[of[:, 1]]),
        np.concatenate([*sides, none.astype(np.uint64)]),
        np.repeat(np.arange(len(sides)) // 2, lengths),
        np.repeat(np.where(np.arange(len(sides)) % 2, -1.0, 1.0), lengths),
        skipped,
    )


def atoms_of(
    partitions: Sequence[Partition],
    row_of: Sequence[np.ndarray],
    sets: UnitSets,
    used: np.ndarray,
    apart: Differences,
) -> tuple[Atoms, sparse.csr_matrix]:
    """Group the entities that belong to the same sets; return the groups, and their incidence in sets and
    differences.
    """
    entities, rows, weights = [apart.entities], [len(sets.hashes) + apart.of], [apart.signs]
    for partition, row in zip(partitions, row_of, strict=True):
        members, part, weight = partition.members((row >= 0) & used[row])
        entities.append(members)
        rows.append(row[part])
        weights.append(weight)
    row, weight = np.concatenate(rows), np.concatenate(weights)
    keys, least = np.concatenate([sets.hashes, apart.key]), np.concatenate([sets.k, apart.k])
    entity, of = np.unique(np.concatenate(entities), return_inverse=True)
    of = of.reshape(-1)
    history = np.zeros(len(entity), np.uint64)
    np.add.at(history, of, mix_bits(mix_bits(keys[row], 16) + weight.view(np.uint64), 17))
    key, first, atom = np.unique(history, return_index=True, return_inverse=True)
    atom = atom.reshape(-1)
    representative = np.zeros(len(entity), bool)
    representative[first] = True
    chosen = representative[of]
    k = np.zeros(len(key), np.int64)
    np.maximum.at(k, atom[of], least[row])
    incidence = sparse.csr_matrix((weight[chosen], (row[chosen], atom[of[chosen]])), (len(keys), len(key)))
    held = pd.DataFrame({"atom": atom, "holder": _holders(entity, partitions)}).drop_duplicates()
    units = np.bincount(held["atom"], minlength=len(key))
    alone = held[units[held["atom"]] == 1]
    holder = np.zeros(len(key), np.uint64)
    holder[alone["atom"]] = alone["holder"]
    return Atoms(key, units, k, holder), incidence


def _holders(entities: np.ndarray, partitions: Sequence[Partition]) -> np.ndarray:
    """Return the holding of each entity (sorted, distinct) that a partition states, otherwise the entity."""
    holders = entities.copy()
    for each in partitions:
        if each.holders is not None:
            place = np.minimum(np.searchsorted(entities, each.entities), max(len(entities) - 1, 0))
            found = entities[place] == each.entities if len(entities) else np.zeros(len(place), bool)
            holders[place[found]] = each.holders[found]
    return holders


def set_rows(
    sets: UnitSets, used: np.ndarray, apart: Differences, incidence: sparse.csr_matrix, cells: int
) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of sets and differences over cells and atoms, their intervals and releases.

    Rows state that the atoms of a set minus its cell are 0; that the atoms of a set are in the stated
    interval; and that the units in which two cells differ, minus the first cell plus the second, are 0.
    """
    tied = np.flatnonzero(used & (sets.cells >= 0))
    stated = np.flatnonzero(used[sets.stated])
    pairs = np.arange(len(apart.more))
    of_cell = sparse.csr_matrix(
        (np.full(len(tied), -1.0), (np.arange(len(tied)), sets.cells[tied])), (len(tied), cells)
    )
    entries = np.repeat([-1.0, 1.0], len(pairs))
    of_pair = sparse.csr_matrix(
        (entries, (np.tile(pairs, 2), np.concatenate([apart.more, apart.less]))), (len(pairs), cells)
    )
    matrix = sparse.bmat([
        [of_cell, incidence[tied]],
        [sparse.csr_matrix((len(stated), cells)), incidence[sets.stated[stated]]],
        [of_pair, incidence[len(sets.hashes) :]],
    ], format="csr")  # fmt: skip
    zero, none = np.zeros(len(tied)), np.zeros(len(pairs))
    return (
        matrix,
        np.concatenate([zero, sets.low[stated], none]),
        np.concatenate([zero, sets.high[stated], none]),
        np.concatenate([sets.tied_by[tied], sets.release[stated], np.full(len(pairs), STRUCTURE)]),
    )
