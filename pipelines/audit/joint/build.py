"""Build the system of one variable from the cells of tables, the classes of records and kept totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.audit.differencing.histories import mix_bits
from microguard.pipelines.audit.joint.cells import TableStatements
from microguard.pipelines.audit.joint.differences import Differences, single_differences
from microguard.pipelines.audit.joint.partitions import Partition, RegionTotals, text_hash
from microguard.pipelines.audit.joint.releases import Release
from microguard.pipelines.audit.joint.system import MIXED, STRUCTURE, System
from scipy import sparse
from scipy.sparse.csgraph import connected_components

#: Memberships of units in published sets up to which all sets of units are part of the system.
MEMBERSHIPS = 20_000
#: Largest set of units in a larger system; larger sets are compared by their differences only.
SMALL_SET = 64


@dataclass(frozen=True)
class Table:
    """A table with its contributors."""

    position: int
    release: Release
    cells: TableStatements
    partitions: list[Partition]


@dataclass(frozen=True)
class Records:
    """Classes of a variable in a release of records, and the totals that it keeps."""

    position: int
    release: Release
    partitions: list[Partition]
    totals: RegionTotals | None


@dataclass(frozen=True)
class Built:
    """A system, and how many sets of units were left out because they are large."""

    system: System
    left_out: int


@dataclass(frozen=True)
class _Sets:
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


def build(tables: Sequence[Table], records: Sequence[Records], values: np.ndarray, whole: bool) -> Built:
    """Build the system of one variable in one population.

    Parameters
    ----------
    tables : sequence of Table
    records : sequence of Records
    values : (v,) array
        Public list of values of a unit, or empty.
    whole : bool
        Whether the unknowns are counts.
    """
    partitions = _linked([each for t in records for each in t.partitions], tables, records)
    starts = np.cumsum([0, *(len(t.cells.labels) for t in tables)])
    part_sets = [_hashed(each) for each in partitions]
    cell_of = _unknown_cells(tables, starts, partitions, part_sets)
    n_cells = int(cell_of.max(initial=-1)) + 1
    cells = _CellColumns.collect(tables, starts, cell_of, n_cells)
    relations = _relation_rows(tables, starts, cell_of)
    sets, row_of = _distinct(partitions, part_sets, starts, cell_of, tables)
    used, left_out = _used(sets)
    apart = _differences(partitions, sets, used)
    atoms, incidence = _atoms(partitions, row_of, sets, used, apart)
    count = len(atoms.key)
    matrix, low, high, releases = _set_rows(sets, used, incidence, n_cells)
    matrix, low, high, releases = _with_differences(matrix, low, high, releases, sets, apart, atoms, n_cells)
    said = cells.said + _totals_said(records, tables, starts, cell_of)
    stated = [np.concatenate(each) for each in zip(*said, strict=True)] if said else [np.zeros(0)] * 7
    nan = np.full(count, np.nan)
    structure = sparse.csr_matrix((relations.data, relations.indices, relations.indptr),
                                  (relations.shape[0], n_cells + count))  # fmt: skip
    zeros = np.zeros(structure.shape[0])
    positive = all(bool((t.cells.truth >= 0).all()) for t in tables) and all(
        bool((each.upper >= 0).all()) for each in partitions
    )
    system = System(
        np.concatenate([cells.key, atoms.key]),
        np.concatenate([np.zeros(n_cells, np.int64), atoms.units]),
        np.concatenate([cells.secret, atoms.units == 1]),
        np.concatenate([np.zeros(n_cells, np.int64), atoms.k]),
        sparse.vstack([structure, matrix]).tocsr(),
        np.concatenate([zeros, low]),
        np.concatenate([zeros, high]),
        np.concatenate([np.full(len(zeros), STRUCTURE), releases]),
        stated[0].astype(np.int64), *stated[1:5], stated[5].astype(bool), stated[6].astype(np.int64),
        whole,
        positive,
        *(np.concatenate([each, nan]) for each in (cells.truth, cells.largest, cells.second, cells.last)),
        values,
    )  # fmt: skip
    return Built(system, left_out)


def _linked(
    of_records: list[Partition], tables: Sequence[Table], records: Sequence[Records]
) -> list[Partition]:
    """Return all partitions; in a table of a period, units have the version that records have then."""
    version: dict[str, tuple[pd.Index, np.ndarray]] = {}
    for each in records:
        for partition in each.partitions[:1]:
            units, first = np.unique(partition.units, return_index=True)
            version[each.release.period] = (pd.Index(units), partition.epochs[first])
    linked = list(of_records)
    for table in tables:
        for partition in table.partitions:
            epochs = partition.epochs
            if table.release.period in version:
                index, known = version[table.release.period]
                place = index.get_indexer(partition.units)
                epochs = np.where(place >= 0, known[np.maximum(place, 0)], epochs)
            linked.append(
                Partition(partition.release, partition.units, epochs, partition.part_of, partition.weights,
                          partition.lower, partition.upper, partition.cells, partition.k)
            )  # fmt: skip
    return linked


def _entities(partition: Partition) -> np.ndarray:
    return mix_bits(partition.units ^ partition.epochs, 12)


def _hashed(partition: Partition) -> np.ndarray:
    """Return a hash of each set: the sum over its entities and their weights."""
    entities = mix_bits(_entities(partition) + partition.weights.view(np.uint64), 13)
    hashes = np.zeros(len(partition.cells), np.uint64)
    np.add.at(hashes, partition.part_of, entities)
    return hashes


def _unknown_cells(
    tables: Sequence[Table], starts: np.ndarray, partitions: Sequence[Partition], hashes: Sequence[np.ndarray]
) -> np.ndarray:
    """Number the cells of all tables, (c,): equal codes in a period, equal contributors or equal units."""
    if not tables:
        return np.zeros(0, np.int64)
    labels = np.concatenate([_identities(t) for t in tables])
    marks = np.concatenate(
        [text_hash([f"{t.release.period}\x1e{m}\x1e{v!r}" if m and v else "" for m, v in
                    zip(t.cells.members, t.cells.truth.tolist(), strict=True)]) for t in tables]
    )  # fmt: skip
    marked = np.concatenate([(t.cells.members != "") & (t.cells.truth != 0) for t in tables])
    sets = _cell_sets(tables, starts, partitions, hashes)
    rows = np.arange(len(labels))
    names = np.concatenate([labels, marks[marked], sets[sets != 0]])
    places = np.concatenate([rows, rows[marked], rows[sets != 0]])
    _, name = np.unique(names, return_inverse=True)
    graph = sparse.csr_matrix((np.ones(len(name)), (places, len(labels) + name)),
                              (len(labels) + name.max() + 1,) * 2)  # fmt: skip
    _, component = connected_components(graph, directed=False)
    return np.unique(component[: len(labels)], return_inverse=True)[1].reshape(-1)


def _identities(table: Table) -> np.ndarray:
    """Return the hash of period, codes and true value: cells of other units are not the same."""
    cells, period = table.cells, table.release.period
    amounts = [f"{truth:.6g}" for truth in cells.truth]
    return text_hash(
        [f"{period}\x1e{label}\x1e{each}" for label, each in zip(cells.labels, amounts, strict=True)]
    )


def _cell_sets(
    tables: Sequence[Table], starts: np.ndarray, partitions: Sequence[Partition], hashes: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the hash of the units of each cell, 0 if unknown: margins have those of all their parts."""
    found = np.zeros(int(starts[-1]), np.uint64)
    known = np.zeros(len(found), bool)
    for t, table in enumerate(tables):
        mine = [i for i, each in enumerate(partitions) if each.release == table.position]
        if not mine:
            continue
        part = np.zeros(len(table.cells.labels), np.uint64)
        has = np.zeros(len(part), bool)
        for i in mine:
            part[partitions[i].cells] = hashes[i]
            has[partitions[i].cells] = True
        pairs, number = table.cells.relations, table.cells.relation
        for _ in range(len(part)):
            whole = np.zeros(int(number.max(initial=-1)) + 1, np.uint64)
            complete = np.ones(len(whole), bool)
            np.add.at(whole, number, part[pairs[:, 1]])
            np.logical_and.at(complete, number, has[pairs[:, 1]])
            new = complete[number] & ~has[pairs[:, 0]]
            if not new.any():
                break
            part[pairs[new, 0]] = whole[number[new]]
            has[pairs[new, 0]] = True
        found[starts[t] : starts[t + 1]], known[starts[t] : starts[t + 1]] = part, has
    return np.where(known, found, np.uint64(0))


@dataclass(frozen=True)
class _CellColumns:
    key: np.ndarray
    secret: np.ndarray
    truth: np.ndarray
    largest: np.ndarray
    second: np.ndarray
    last: np.ndarray
    contributors: np.ndarray
    said: list[tuple[np.ndarray, ...]]

    @classmethod
    def collect(
        cls, tables: Sequence[Table], starts: np.ndarray, cell_of: np.ndarray, count: int
    ) -> _CellColumns:
        """Merge what tables say of each unknown cell."""
        key = np.full(count, 2**64 - 1, np.uint64)
        secret = np.zeros(count, bool)
        merged = {name: np.full(count, np.nan) for name in ("truth", "largest", "second", "contributors")}
        last = np.full(count, np.nan)
        before: dict[str, pd.Series] = {}
        said = []
        for t in sorted(range(len(tables)), key=lambda t: (tables[t].release.period, t)):
            table, unknown = tables[t], cell_of[starts[t] : starts[t + 1]]
            cells, period = table.cells, table.release.period
            np.minimum.at(key, unknown, _identities(table))
            np.logical_or.at(secret, unknown, cells.sensitive)
            for name, values in merged.items():
                np.fmax.at(values, unknown, getattr(cells, name))
            for earlier in sorted(each for each in before if each < period):
                of_label = before[earlier].reindex(cells.labels).to_numpy()
                last[unknown] = np.where(np.isnan(of_label), last[unknown], of_label)
            series = pd.Series(cells.truth, index=cells.labels)
            before[period] = pd.concat([before[period], series]) if period in before else series
            before[period] = before[period][~before[period].index.duplicated()]
            release = np.full(len(unknown), table.position)
            stated = ~(np.isinf(cells.lower) & np.isinf(cells.upper)) | cells.sensitive
            columns = (unknown, cells.lower, cells.upper, cells.gap, cells.shown, cells.sensitive, release)
            said.append(tuple(each[stated] for each in columns))
        return cls(key, secret, merged["truth"], merged["largest"], merged["second"], last,
                   merged["contributors"], said)  # fmt: skip


def _relation_rows(tables: Sequence[Table], starts: np.ndarray, cell_of: np.ndarray) -> sparse.csr_matrix:
    """Return distinct rows "total minus parts", each 0."""
    blocks = []
    for t, table in enumerate(tables):
        pairs, number = table.cells.relations, table.cells.relation
        if not len(pairs):
            continue
        unknown = cell_of[starts[t] : starts[t + 1]]
        count = int(number.max()) + 1
        _, first = np.unique(number, return_index=True)
        rows = np.concatenate([number, np.arange(count)])
        columns = np.concatenate([unknown[pairs[:, 1]], unknown[pairs[first, 0]]])
        entries = np.concatenate([np.full(len(number), -1.0), np.ones(count)])
        blocks.append(sparse.csr_matrix((entries, (rows, columns)), (count, int(cell_of.max()) + 1)))
    if not blocks:
        return sparse.csr_matrix((0, int(cell_of.max(initial=-1)) + 1))
    matrix = sparse.vstack(blocks).tocsr()
    matrix.eliminate_zeros()
    salt = mix_bits(np.arange(matrix.shape[1]), 14)
    terms = mix_bits(salt[matrix.indices] + matrix.data.view(np.uint64), 15)
    hashes = np.add.reduceat(np.append(terms, np.uint64(0)), matrix.indptr[:-1])
    hashes[np.diff(matrix.indptr) == 0] = 0
    distinct = np.sort(np.unique(hashes, return_index=True)[1])
    return matrix[distinct[np.diff(matrix.indptr)[distinct] > 0]]


def _totals_said(
    records: Sequence[Records],
    tables: Sequence[Table],
    starts: np.ndarray,
    cell_of: np.ndarray,
) -> list[tuple[np.ndarray, ...]]:
    """Return what records say of cells that are the total of a region or of all of them."""
    parts = [
        pd.DataFrame(
            {
                "period": table.release.period,
                "label": table.cells.labels,
                "records": table.cells.contributors,
                "unknown": cell_of[starts[t] : starts[t + 1]],
            }
        )
        for t, table in enumerate(tables)
    ]
    listed = pd.concat(parts or [pd.DataFrame(columns=["period", "label", "records", "unknown"])])
    said = []
    for each in records:
        if each.totals is None:
            continue
        totals = pd.DataFrame({"label": each.totals.labels, "n": each.totals.records,
                               "low": each.totals.lower, "high": each.totals.upper})  # fmt: skip
        found = totals.merge(listed[listed["period"] == each.release.period], on="label")
        found = found[found["records"].isna() | (found["records"] == found["n"])].drop_duplicates("unknown")
        blank = np.zeros(len(found))
        columns = (found["unknown"].to_numpy(np.int64), found["low"].to_numpy(), found["high"].to_numpy())
        said.append((*columns, blank, blank + np.nan, blank > 0, np.full(len(blank), each.position)))
    return said


def _distinct(
    partitions: Sequence[Partition],
    hashes: Sequence[np.ndarray],
    starts: np.ndarray,
    cell_of: np.ndarray,
    tables: Sequence[Table],
) -> tuple[_Sets, list[np.ndarray]]:
    """Merge equal sets of all partitions; return them, and the set of each part of each partition."""
    table_of = {table.position: t for t, table in enumerate(tables)}
    cells = []
    for each in partitions:
        of_table = table_of.get(each.release)
        found = np.full(len(each.cells), -1, np.int64)
        if of_table is not None and len(each.cells) and each.cells[0] >= 0:
            found = cell_of[starts[of_table] : starts[of_table + 1]][each.cells]
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
    sets = _Sets(distinct, size[first], cell, k, tied_by, *stated)
    ends = np.cumsum([len(each) for each in hashes])[:-1]
    return sets, list(np.split(of, ends)) if len(partitions) else []


@dataclass(frozen=True)
class _Atoms:
    key: np.ndarray
    units: np.ndarray
    k: np.ndarray
    singled: np.ndarray


def _used(sets: _Sets) -> tuple[np.ndarray, int]:
    """Return the sets that are part of the system, and how many are left out because they are large."""
    used = sets.sizes > 0
    if int(sets.sizes.sum()) <= MEMBERSHIPS:
        return used, 0
    return used & (sets.sizes <= SMALL_SET), int((sets.sizes > SMALL_SET).sum())


def _differences(partitions: Sequence[Partition], sets: _Sets, used: np.ndarray) -> Differences | None:
    """Return the pairs of cells left out that differ by one unit; None if none is left out."""
    large = ~used & (sets.sizes > 0) & (sets.cells >= 0)
    if not large.any():
        return None
    units = [mix_bits(_entities(each) + np.float64(1).view(np.uint64), 13) for each in partitions]
    return single_differences(sets.hashes, sets.sizes, large, units)


def _with_differences(
    matrix: sparse.csr_matrix,
    low: np.ndarray,
    high: np.ndarray,
    releases: np.ndarray,
    sets: _Sets,
    apart: Differences | None,
    atoms: _Atoms,
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


def _atoms(
    partitions: Sequence[Partition],
    row_of: Sequence[np.ndarray],
    sets: _Sets,
    used: np.ndarray,
    apart: Differences | None,
) -> tuple[_Atoms, sparse.csr_matrix]:
    """Group entities that are in the same sets; return them, and the incidence by set."""
    taken = np.zeros(len(sets.hashes), bool)
    entities, rows, weights = [], [], []
    for partition, row in zip(partitions, row_of, strict=True):
        fresh = used[row] & ~taken[row]
        taken[row] = True
        inside = fresh[partition.part_of]
        entities.append(_entities(partition)[inside])
        rows.append(row[partition.part_of[inside]])
        weights.append(partition.weights[inside])
    empty = np.zeros(0, np.int64)
    members = np.concatenate([*entities, empty.astype(np.uint64)])
    alone = _entities_of(partitions, apart)
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
    return _Atoms(key, np.bincount(atom, minlength=len(key)), k, atom[single]), incidence


def _entities_of(partitions: Sequence[Partition], apart: Differences | None) -> np.ndarray:
    """Return the entity of each difference."""
    if apart is None or not len(apart.units):
        return np.zeros(0, np.uint64)
    found = np.zeros(len(apart.units), np.uint64)
    order = np.argsort(apart.units)
    for partition in partitions:
        entities = _entities(partition)
        hashes = mix_bits(entities + np.float64(1).view(np.uint64), 13)
        inside = np.isin(hashes, apart.units)
        for hashed, entity in zip(hashes[inside], entities[inside], strict=True):
            ends = np.searchsorted(apart.units[order], (hashed, hashed + np.uint64(1)))
            found[order[ends[0] : ends[1]]] = entity
    return found


def _set_rows(
    sets: _Sets, used: np.ndarray, incidence: sparse.csr_matrix, cells: int
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
