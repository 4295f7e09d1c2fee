"""Fingerprint of a source, by which two releases made from the same records are recognised.

The fingerprint has a sample of the units, if a variable identifies units. It also has counts of combinations
of columns: pairs of columns by name, and all columns or all but one under any names. It therefore recognises
a subset of the records, a file with other columns or a coarser region, and a table of the same records. A
finished table has no records: totals by single codes show that its cells are sums of a file. Cross tables of
two columns, sorted by their counts, show the same records under recoded labels.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import private_folder, sync_folder
from microguard.pipelines.publication.source_fingerprints.amount_fingerprint import (
    AmountFingerprint,
    share_amounts,
)
from microguard.pipelines.publication.source_fingerprints.overlap import (
    CellCounts,
    is_numbering,
    share_records,
)
from microguard.pipelines.publication.source_fingerprints.shape import alike, pairs_of, shapes
from microguard.pipelines.publication.source_fingerprints.unit_fingerprint import UnitFingerprint, similarity

FILE = "sketch.parquet"
#: File of the fingerprint that is computed with the key of the shared ledger.
SHARED = "shared_sketch.parquet"
#: Maximum number of columns whose pairs are counted; if there are more, those whose names have the smallest
#: hashes.
COLUMNS = 24
#: Number of the subset that represents units in the rows of a fingerprint.
UNITS = -1
#: Number of the first ordered pair of columns; further pairs have smaller numbers.
PAIRS = -2
Subset = tuple[str, ...]


def subsets_of(names: list[str]) -> list[Subset]:
    """Return the subsets of columns to count: each column, each pair, all columns, and all columns
    but one.
    """
    chosen = sorted(sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:COLUMNS])
    whole = tuple(sorted(names))
    without = [tuple(name for name in whole if name != left) for left in chosen]
    subsets = [(name,) for name in chosen] + list(combinations(chosen, 2)) + [whole] + without
    return list(dict.fromkeys(each for each in subsets if each))


@dataclass(frozen=True)
class SourceFingerprint:
    """Fingerprint of a release's source.

    Attributes
    ----------
    records : int
        Number of accepted records of the source.
    key : str
        Name of the key of its hashes: fingerprints of two keys cannot be compared.
    units : UnitFingerprint or None
        Sample of the units, if a variable identifies units.
    cells : dict of tuple of str to CellCounts
        Counts for each subset in `subsets_of`; empty for a finished table.
    amounts : AmountFingerprint or None
        Totals by single codes; None in files of software that did not write them.
    pairs : dict of two columns to CellCounts
        Counts of ordered pairs of values; empty in files of software that did not write them.
    """

    records: int
    key: str
    units: UnitFingerprint | None
    cells: dict[Subset, CellCounts]
    amounts: AmountFingerprint | None = None
    pairs: dict[tuple[str, str], CellCounts] = field(default_factory=dict)

    @classmethod
    def from_rows(cls, rows: pa.Table, subsets: list[Subset], records: int, key: str) -> SourceFingerprint:
        """Build a fingerprint from the rows of `fingerprint.compute_fingerprint`.

        The rows have the columns ``subset``, ``cell``, ``records``, ``marks`` and ``whole``.
        """
        rows = rows.sort_by([("subset", "ascending"), ("cell", "ascending")])
        place, hashes = rows["subset"].to_numpy(), rows["cell"].to_numpy()
        counts, whole = rows["records"].to_numpy(), rows["whole"].to_numpy()
        ends = np.searchsorted(place, np.arange(UNITS, len(subsets) + 1))
        parts = [slice(start, end) for start, end in pairwise(ends.tolist())]
        cells = {
            subset: CellCounts(hashes[part], counts[part], bool(np.all(whole[part])))
            for subset, part in zip(subsets, parts[1:], strict=True)
        }
        units = None
        if parts[0].stop > parts[0].start:
            sampled = rows["marks"].slice(parts[0].start, parts[0].stop - parts[0].start)
            marks = np.array(sampled.to_pylist(), np.int64).view(np.uint64)
            known = len(marks) if np.all(whole[parts[0]]) else max(records, len(marks) + 1)
            units = UnitFingerprint(hashes[parts[0]].astype(np.uint64), marks, known)
        names = pairs_of([subset[0] for subset in subsets if len(subset) == 1])
        pairs = {}
        for i, pair in enumerate(names):
            part = slice(*np.searchsorted(place, (PAIRS - i, PAIRS - i + 1)).tolist())
            if part.stop > part.start:
                pairs[pair] = CellCounts(hashes[part], counts[part], bool(np.all(whole[part])))
        return cls(records, key, units, cells, _amounts(place, hashes, rows, len(subsets)), pairs)

    def write(self, path: Path) -> None:
        """Write the fingerprint to a file in one step."""
        about = {"records": self.records, "key": self.key, "subsets": list(self.cells)}
        parts = [(i, each.cells, each.records, each.whole) for i, each in enumerate(self.cells.values())]
        names = pairs_of([subset[0] for subset in self.cells if len(subset) == 1])
        for i, each in ((names.index(pair), each) for pair, each in self.pairs.items()):
            parts.append((PAIRS - i, each.cells, each.records, each.whole))
        if self.units is not None:
            m = len(self.units.units)
            parts.append((UNITS, self.units.units.astype(np.int64), np.ones(m), self.units.size == m))
        tables = [
            pa.table(
                {
                    "subset": np.full(len(cells), subset, np.int32),
                    "cell": cells,
                    "records": records.astype(np.int64),
                    "whole": np.full(len(cells), whole),
                }
            )
            for subset, cells, records, whole in parts
        ]
        marks: list[Any] = [None] * sum(map(len, tables))
        if self.units is not None:
            marks[len(marks) - len(self.units.units) :] = list(self.units.marks.view(np.int64))
        if self.amounts is not None:
            of_amounts = {
                "subset": (len(self.cells) + self.amounts.measures).astype(np.int32),
                "cell": self.amounts.codes,
                "records": np.ones(len(self.amounts.codes), np.int64),
                "whole": np.ones(len(self.amounts.codes), bool),
            }
            tables.append(pa.table(of_amounts))
            marks += list(self.amounts.totals)
        table = pa.concat_tables(tables).append_column("marks", pa.array(marks, pa.list_(pa.int64())))
        private_folder(path.parent)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        pq.write_table(table.replace_schema_metadata({b"about": json.dumps(about).encode()}), fresh)
        fresh.replace(path)
        sync_folder(path.parent)

    @classmethod
    def read(cls, source: Path | pa.NativeFile) -> SourceFingerprint | None:
        """Read a file written by `write`; return None if it is missing or damaged."""
        try:
            table = pq.read_table(source)
            about: dict[str, Any] = json.loads(table.schema.metadata[b"about"])
            subsets = [tuple(subset) for subset in about["subsets"]]
            return cls.from_rows(table, subsets, int(about["records"]), str(about["key"]))
        except (OSError, pa.ArrowInvalid, KeyError, TypeError, ValueError):
            return None

    @cached_property
    def shapes(self) -> dict[Subset, np.ndarray]:
        """Return the tables of pairs of columns, sorted in an order that recoding does not change."""
        return shapes(self.cells, self.pairs)

    @cached_property
    def _wide(self) -> list[tuple[int, CellCounts]]:
        """Return for each subset of at least three columns their number and their counts."""
        return [(len(subset), cells) for subset, cells in self.cells.items() if len(subset) > 2]


def same_records(left: SourceFingerprint, right: SourceFingerprint) -> bool:
    """Return whether two releases were made from the same units or records, or one from a part of the
    other's.
    """
    if left.units is not None and right.units is not None and similarity(left.units, right.units).same:
        return True
    sizes = (left.records, right.records)
    return (
        _same_in_pairs(left, right, sizes)
        or any(share_records(one, other, sizes) for one, other in _wide_pairs(left, right))
        or share_amounts(left.amounts, right.amounts)
        or alike(left.shapes, right.shapes, sizes).same
    )


def _amounts(place: np.ndarray, codes: np.ndarray, rows: pa.Table, first: int) -> AmountFingerprint | None:
    """Return the totals in the rows of a fingerprint; their subset numbers end before `first`."""
    start = int(np.searchsorted(place, first))
    if start == len(place):
        return None
    totals = np.array(rows["marks"].slice(start).to_pylist(), np.int64)
    return AmountFingerprint(place[start:].astype(np.int64) - first, codes[start:], totals)


def share_units(left: SourceFingerprint, right: SourceFingerprint) -> bool | None:
    """Return whether both sources have units in common; None if that is unknown."""
    if left.units is None or right.units is None:
        return None
    return similarity(left.units, right.units).shared > 0


def _same_in_pairs(left: SourceFingerprint, right: SourceFingerprint, sizes: tuple[int, int]) -> bool:
    """Return whether pairs that cover half of the common columns have common records (dates alone cover
    less).
    """
    common = [subset for subset in left.cells if subset in right.cells]
    columns, covered = sum(len(subset) == 1 for subset in common), set[str]()
    for pair in (subset for subset in common if len(subset) == 2):
        if not covered.issuperset(pair) and _share_records_in(pair, left, right, sizes):
            covered.update(pair)
        if len(covered) >= max(2, columns / 2):
            return True
    return False


def _share_records_in(
    pair: Subset, left: SourceFingerprint, right: SourceFingerprint, sizes: tuple[int, int]
) -> bool:
    both = (left.cells[pair], right.cells[pair])
    if not share_records(*both, sizes):
        return False
    # running numbers and layout columns agree even in files without common records
    first, second = ((left.cells[(name,)], right.cells[(name,)]) for name in pair)
    return not (is_numbering(both, first, second, sizes) or is_numbering(both, second, first, sizes))


def _wide_pairs(left: SourceFingerprint, right: SourceFingerprint) -> Iterator[tuple[CellCounts, CellCounts]]:
    """Return pairs of counts over the same number of columns, whatever their names are."""
    for columns, one in left._wide:
        for others, other in right._wide:
            if columns == others:
                yield one, other
