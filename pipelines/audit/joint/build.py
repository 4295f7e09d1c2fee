"""Construction of the linear system of one variable from table cells, classes of records and preserved
totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.pipelines.audit.differencing.histories import mix_bits
from microguard.pipelines.audit.joint.cells import TableStatements
from microguard.pipelines.audit.joint.differences import CellSets
from microguard.pipelines.audit.joint.kept import Kept
from microguard.pipelines.audit.joint.partitions import Partition, RegionTotals, text_hash
from microguard.pipelines.audit.joint.releases import Release
from microguard.pipelines.audit.joint.system import STRUCTURE, System
from microguard.pipelines.audit.joint.unit_sets import (
    atoms_of,
    cell_differences,
    distinct_sets,
    set_rows,
    used_sets,
)
from microguard.pipelines.audit.periods import same_period
from scipy import sparse
from scipy.sparse.csgraph import connected_components


@dataclass(frozen=True)
class Table:
    """A table, with the units of its cells if the evidence contains them."""

    position: int
    release: Release
    cells: TableStatements
    partition: Partition | None = None
    sets: CellSets | None = None


@dataclass(frozen=True)
class Records:
    """Classes of a variable in a release of records, and the totals that the release preserves."""

    position: int
    release: Release
    partitions: list[Partition]
    totals: RegionTotals | None


@dataclass(frozen=True)
class Built:
    """A linear system, and the number of published numbers that it omits.

    Attributes
    ----------
    system : System
    left_out, skipped : int
        Large sets that the system contains only as differences, and pairs of large sets that it does not
        contain.
    revised : int
        Cells of the same units in a period whose amounts differ; they give no equation.
    cells : pandas.DataFrame
        Period, label and unknown of each cell of a table.
    """

    system: System
    left_out: int
    skipped: int
    revised: int
    cells: pd.DataFrame


def build(
    tables: Sequence[Table],
    records: Sequence[Records],
    values: np.ndarray,
    whole: bool,
    kept: Kept,
) -> Built:
    """Build the linear system of one variable in one population.

    Parameters
    ----------
    tables : sequence of Table
    records : sequence of Records
    values : (v,) array
        Public list of values of a unit, or empty.
    whole : bool
        Whether the unknowns are counts.
    kept : Kept
        Results of earlier audits.
    """
    partitions = [each for t in records for each in t.partitions]
    partitions += [t.partition for t in tables if t.partition is not None]
    starts = np.cumsum([0, *(len(t.cells.labels) for t in tables)])
    cell_of, revised = _unknown_cells(tables, starts)
    n_cells = int(cell_of.max(initial=-1)) + 1
    cells = _CellColumns.collect(tables, starts, cell_of, n_cells)
    relations = _relation_rows(tables, starts, cell_of)
    of_table = {each.position: cell_of[starts[t] : starts[t + 1]] for t, each in enumerate(tables)}
    sets, row_of = distinct_sets(partitions, of_table)
    used, left_out = used_sets(sets)
    known_cells = [
        (t.sets, t.partition, of_table[t.position])
        for t in tables
        if left_out and t.sets is not None and t.partition is not None
    ]
    apart = cell_differences(known_cells, kept)
    atoms, incidence = atoms_of(partitions, row_of, sets, used, apart)
    matrix, low, high, releases = set_rows(sets, used, apart, incidence, n_cells)
    atoms, sums = atoms.with_sums()
    count = len(atoms.key)
    matrix.resize(matrix.shape[0], n_cells + count)
    said = cells.said + _totals_said(records, tables, starts, cell_of)
    stated = [np.concatenate(each) for each in zip(*said, strict=True)] if said else [np.zeros(0)] * 7
    nan = np.full(count, np.nan)
    structure = sparse.csr_matrix((relations.data, relations.indices, relations.indptr),
                                  (relations.shape[0], n_cells + count))  # fmt: skip
    of_sums = [sparse.csr_matrix((sums.shape[0], n_cells)), sums, -sparse.identity(sums.shape[0])]
    structure = sparse.vstack([structure, sparse.hstack(of_sums, format="csr")], format="csr")
    zeros = np.zeros(structure.shape[0])
    positive = all(bool((t.cells.truth >= 0).all()) for t in tables) and all(
        bool((each.upper >= 0).all()) for each in partitions
    )
    none = np.zeros(n_cells, np.int64)
    system = System(
        key=np.concatenate([cells.key, atoms.key]),
        units=np.concatenate([none, atoms.units]),
        secret=np.concatenate([cells.secret, atoms.units == 1]),
        k=np.concatenate([none, atoms.k]),
        holder=np.concatenate([none.astype(np.uint64), atoms.holder]),
        rows=sparse.vstack([structure, matrix]).tocsr(),
        low=np.concatenate([zeros, low]),
        high=np.concatenate([zeros, high]),
        row_release=np.concatenate([np.full(len(zeros), STRUCTURE), releases]),
        said=stated[0].astype(np.int64),
        said_low=stated[1],
        said_high=stated[2],
        said_gap=stated[3],
        said_shown=stated[4],
        said_secret=stated[5].astype(bool),
        said_release=stated[6].astype(np.int64),
        whole=whole,
        positive=np.full(n_cells + count, positive),
        truth=np.concatenate([cells.truth, nan]),
        largest=np.concatenate([cells.largest, nan]),
        second=np.concatenate([cells.second, nan]),
        last=np.concatenate([cells.last, nan]),
        values=values,
    )
    cells_of_tables = [
        pd.DataFrame({"period": t.release.period, "label": t.cells.labels, "unknown": of_table[t.position]})
        for t in tables
    ]
    listed = pd.concat(cells_of_tables or [pd.DataFrame(columns=["period", "label", "unknown"])])
    return Built(system, left_out, apart.skipped, revised, listed.drop_duplicates(ignore_index=True))


def _unknown_cells(tables: Sequence[Table], starts: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the unknown that represents each cell of all tables, (c,), and the number of revised cells.

    Cells share an unknown if they have equal codes in a period, equal contributors, or equal units and
    amounts. Cells with equal units and different amounts were revised.
    """
    if not tables:
        return np.zeros(0, np.int64), 0
    labels = np.concatenate([_identities(t) for t in tables])
    marks = np.concatenate(
        [text_hash([f"{t.release.period}\x1e{m}\x1e{v!r}" if m and v else "" for m, v in
                    zip(t.cells.members, t.cells.truth.tolist(), strict=True)]) for t in tables]
    )  # fmt: skip
    marked = np.concatenate([(t.cells.members != "") & (t.cells.truth != 0) for t in tables])
    sets, units = np.zeros(len(labels), np.uint64), np.zeros(len(labels), np.uint64)
    for start, table in zip(starts, tables, strict=False):
        if table.sets is not None:
            amounts = text_hash([f"{amount:.12g}" for amount in table.cells.truth[table.sets.cells]])
            units[start + table.sets.cells] = table.sets.hashes()
            sets[start + table.sets.cells] = mix_bits(table.sets.hashes() ^ amounts, 20)
    revised = len(np.unique(sets[units != 0])) - len(np.unique(units[units != 0]))
    rows = np.arange(len(labels))
    names = np.concatenate([labels, marks[marked], sets[sets != 0]])
    places = np.concatenate([rows, rows[marked], rows[sets != 0]])
    _, name = np.unique(names, return_inverse=True)
    graph = sparse.csr_matrix((np.ones(len(name)), (places, len(labels) + name)),
                              (len(labels) + name.max() + 1,) * 2)  # fmt: skip
    _, component = connected_components(graph, directed=False)
    return np.unique(component[: len(labels)], return_inverse=True)[1].reshape(-1), revised


def _identities(table: Table) -> np.ndarray:
    """Return a hash of period, codes and true value of each cell, which distinguishes cells of different
    units.
    """
    cells, period = table.cells, table.release.period
    pairs = zip(cells.labels, cells.truth, strict=True)
    return text_hash([f"{period}\x1e{label}\x1e{truth:.12g}" for label, truth in pairs])


@dataclass(frozen=True)
class _CellColumns:
    key: np.ndarray
    secret: np.ndarray
    truth: np.ndarray
    largest: np.ndarray
    second: np.ndarray
    last: np.ndarray
    said: list[tuple[np.ndarray, ...]]

    @classmethod
    def collect(
        cls, tables: Sequence[Table], starts: np.ndarray, cell_of: np.ndarray, count: int
    ) -> _CellColumns:
        """Merge the statements of several tables about each unknown cell."""
        key = np.full(count, 2**64 - 1, np.uint64)
        secret = np.zeros(count, bool)
        merged = {name: np.full(count, np.nan) for name in ("truth", "largest", "second")}
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
        return cls(key, secret, merged["truth"], merged["largest"], merged["second"], last, said)


def _relation_rows(tables: Sequence[Table], starts: np.ndarray, cell_of: np.ndarray) -> sparse.csr_matrix:
    """Return the distinct constraints of the form "total minus parts equals 0"."""
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
    """Return the statements of records about table cells that are totals of a region or of all records."""
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
    said: list[tuple[np.ndarray, ...]] = []
    for each in records:
        if each.totals is None:
            continue
        totals = pd.DataFrame({"label": each.totals.labels, "n": each.totals.records,
                               "low": each.totals.lower, "high": each.totals.upper})  # fmt: skip
        alike = [same_period(period, each.release.period) for period in listed["period"]]
        found = totals.merge(listed[np.array(alike, bool)], on="label")
        found = found[found["records"].isna() | (found["records"] == found["n"])].drop_duplicates("unknown")
        blank = np.zeros(len(found))
        columns = (found["unknown"].to_numpy(np.int64), found["low"].to_numpy(), found["high"].to_numpy())
        said.append((*columns, blank, blank + np.nan, blank > 0, np.full(len(blank), each.position)))
    return said
