"""Sets of units that were summed over, and their atoms: units that are in the same sets everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.audit.differencing.histories import mix_bits
from microguard.pipelines.audit.joint.differences import Differences, is_among, single_differences
from microguard.pipelines.audit.joint.partitions import Partition
from microguard.pipelines.audit.joint.system import MIXED, STRUCTURE
from scipy import sparse

#: Memberships of units in published sets up to which all sets of units are part of the system.
MEMBERSHIPS = 20_000
#: Largest set of units in a larger system; larger sets are compared by their differences only.
SMALL_SET = 64


@dataclass(frozen=True)
class UnitSets:
    """Distinct sets of units, one row a set, and the intervals that releases state of their sums."""

    hashes: np.ndarray
    sizes: np.ndarray
    cells: np.ndarray
    k: np.ndarray
    tied_by: np.ndarray
    stated: np.ndarray
    low: np.ndarray
    high: np.ndarray
    release: np.ndarray


def entities_of(partition: Partition) -> np.ndarray:
    return mix_bits(partition.units ^ partition.epochs, 12)


def set_hashes(partition: Partition) -> np.ndarray:
    """Return a hash of each set: the sum over its entities and their weights."""
    entities = mix_bits(entities_of(partition) + partition.weights.view(np.uint64), 13)
    hashes = np.zeros(len(partition.cells), np.uint64)
    np.add.at(hashes, partition.part_of, entities)
    return hashes


def distinct_sets(
    partitions: Sequence[Partition], hashes: Sequence[np.ndarray], cells_of_table: Mapping[int, np.ndarray]
) -> tuple[UnitSets, list[np.ndarray]]:
    """Merge equal sets of all partitions; return them, and the set of each part of each partition.

    Parameters
    ----------
    partitions : sequence of Partition
    hashes : sequence of arrays
        Their `set_hashes`.
    cells_of_table : mapping of int to array
        Position of a table -> the unknown of each of its cells.
    """
    cells = []
    for each in partitions:
        found = np.full(len(each.cells), -1, np.int64)
        if each.release in cells_of_table and len(each.cells) and each.cells[0] >= 0:
            found = cells_of_table[each.release][each.cells]
        cells.append(found)
    sizes = [np.bincount(each.part_of, minlength=len(each.cells)) for each in partitions]
    joined = np.concatenate(hashes) if hashes else np.zeros(0, np.uint64)
    distinct, first, of = np.unique(joined, return_index=True, return_inverse=True)
    of = of.reshape(-1)
    cell, k = np.full(len(distinct), -1, np.int64), np.zeros(len(distinct), np.int64)
    if len(partitions):
        np.maximum.at(cell, of, np.concatenate(cells))
        np.maximum.at(k, of, np.concatenate([np.full(len(p.cells), p.k) for p in partitions]))
    size = np.concatenate(sizes or [np.zeros(0, np.int64)])
    release = np.concatenate([np.full(len(p.cells), p.release) for p in partitions] or [size])
    tied_by = np.full(len(distinct), MIXED, np.int64)
    of_cell = np.flatnonzero(np.concatenate(cells) >= 0)[::-1] if cells else size
    tied_by[of[of_cell]] = release[of_cell]  # the first release of each
    said = pd.DataFrame(
        {
            "set": of,
            "low": np.concatenate([p.lower for p in partitions] or [np.zeros(0)]),
            "high": np.concatenate([p.upper for p in partitions] or [np.zeros(0)]),
            "release": release,
        }
    )
    said = said[np.isfinite(said["low"]) | np.isfinite(said["high"])].drop_duplicates(["set", "low", "high"])
    stated = (said[name].to_numpy() for name in ("set", "low", "high", "release"))
    sets = UnitSets(distinct, size[first], cell, k, tied_by, *stated)
    ends = np.cumsum([len(each) for each in hashes])[:-1]
    return sets, list(np.split(of, ends)) if len(partitions) else []


@dataclass(frozen=True)
class Atoms:
    key: np.ndarray
    units: np.ndarray
    k: np.ndarray
    singled: np.ndarray


def used_sets(sets: UnitSets) -> tuple[np.ndarray, int]:
    """Return the sets that are part of the system, and how many are left out because they are large."""
    used = sets.sizes > 0
    if int(sets.sizes.sum()) <= MEMBERSHIPS:
        return used, 0
    return used & (sets.sizes <= SMALL_SET), int((sets.sizes > SMALL_SET).sum())


def large_differences(
    partitions: Sequence[Partition], sets: UnitSets, used: np.ndarray
) -> Differences | None:
    """Return the pairs of cells left out that differ by one unit; None if none is left out."""
    large = ~used & (sets.sizes > 0) & (sets.cells >= 0)
    if not large.any():
        return None
    units = [mix_bits(entities_of(each) + np.float64(1).view(np.uint64), 13) for each in partitions]
    return single_differences(sets.hashes, sets.sizes, large, units)


def with_differences(
    matrix: sparse.csr_matrix,
    low: np.ndarray,
    high: np.ndarray,
    releases: np.ndarray,
    sets: UnitSets,
    apart: Differences | None,
    atoms: Atoms,
    cells: int,
) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
    """Add a row "one cell minus the other minus the unit", 0, for each pair of cells that differ by one."""
    if apart is None or not len(apart.units):
        return matrix, low, high, releases
    count = len(apart.units)
    place = np.arange(count)
    columns = [sets.cells[apart.more], sets.cells[apart.less], cells + atoms.singled]
    entries = np.repeat([1.0, -1.0, -1.0], count)
    rows = sparse.csr_matrix(
        (entries, (np.tile(place, 3), np.concatenate(columns))), (count, matrix.shape[1])
    )
    zeros = np.zeros(count)
    return (
        sparse.vstack([matrix, rows]).tocsr(),
        np.concatenate([low, zeros]),
        np.concatenate([high, zeros]),
        np.concatenate([releases, np.full(count, STRUCTURE)]),
    )


def atoms_of(
    partitions: Sequence[Partition],
    row_of: Sequence[np.ndarray],
    sets: UnitSets,
    used: np.ndarray,
    apart: Differences | None,
) -> tuple[Atoms, sparse.csr_matrix]:
    """Group entities that are in the same sets; return them, and the incidence by set."""
    taken = np.zeros(len(sets.hashes), bool)
    entities, rows, weights = [], [], []
    for partition, row in zip(partitions, row_of, strict=True):
        fresh = used[row] & ~taken[row]
        taken[row] = True
        inside = fresh[partition.part_of]
        entities.append(entities_of(partition)[inside])
        rows.append(row[partition.part_of[inside]])
        weights.append(partition.weights[inside])
    empty = np.zeros(0, np.int64)
    members = np.concatenate([*entities, empty.astype(np.uint64)])
    alone = _entities_apart(partitions, apart)
    entity, of = np.unique(np.concatenate([members, alone]), return_inverse=True)
    of, single = np.split(of.reshape(-1), [len(members)])
    row, weight = np.concatenate(rows or [empty]), np.concatenate(weights or [empty.astype(float)])
    history = np.zeros(len(entity), np.uint64)
    np.add.at(history, of, mix_bits(mix_bits(sets.hashes[row], 16) + weight.view(np.uint64), 17))
    history[single] = mix_bits(entity[single], 18)
    key, first, atom = np.unique(history, return_index=True, return_inverse=True)
    atom = atom.reshape(-1)
    representative = np.zeros(len(entity), bool)
    representative[first] = True
    chosen = representative[of]
    k = np.zeros(len(key), np.int64)
    np.maximum.at(k, atom[of], sets.k[row])
    shape = (len(sets.hashes), len(key))
    incidence = sparse.csr_matrix((weight[chosen], (row[chosen], atom[of[chosen]])), shape)
    return Atoms(key, np.bincount(atom, minlength=len(key)), k, atom[single]), incidence


def _entities_apart(partitions: Sequence[Partition], apart: Differences | None) -> np.ndarray:
    """Return the entity of each difference."""
    if apart is None or not len(apart.units):
        return np.zeros(0, np.uint64)
    found = np.zeros(len(apart.units), np.uint64)
    order = np.argsort(apart.units)
    for partition in partitions:
        entities = entities_of(partition)
        hashes = mix_bits(entities + np.float64(1).view(np.uint64), 13)
        inside = is_among(hashes, apart.units)
        for hashed, entity in zip(hashes[inside], entities[inside], strict=True):
            ends = np.searchsorted(apart.units[order], (hashed, hashed + np.uint64(1)))
            found[order[ends[0] : ends[1]]] = entity
    return found


def set_rows(
    sets: UnitSets, used: np.ndarray, incidence: sparse.csr_matrix, cells: int
) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows "atoms of a set minus its cell", 0, and "atoms of a set" in the interval stated."""
    tied = np.flatnonzero(used & (sets.cells >= 0))
    stated = np.flatnonzero(used[sets.stated])
    place = np.arange(len(tied))
    of_cell = sparse.csr_matrix((np.full(len(tied), -1.0), (place, sets.cells[tied])), (len(tied), cells))
    of_class = sparse.csr_matrix((len(stated), cells))
    matrix = sparse.bmat(
        [[of_cell, incidence[tied]], [of_class, incidence[sets.stated[stated]]]], format="csr"
    )
    zero = np.zeros(len(tied))
    return (
        matrix,
        np.concatenate([zero, sets.low[stated]]),
        np.concatenate([zero, sets.high[stated]]),
        np.concatenate([sets.tied_by[tied], sets.release[stated]]),
    )
