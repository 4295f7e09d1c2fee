"""Cells of the control tables that are empty now, by original size, and what small counts became."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from pipelines.measures.comparison import Comparison
from pipelines.measures.measure import Measure
from pipelines.measures.table_errors import aligned
from sdc.measures.vanished_cells import transitions, vanished_cells


@dataclass(frozen=True)
class Vanished:
    """Of the tables without the region of one dimension; of dimension 1 the cells are categories.

    Attributes
    ----------
    sizes : tuple of int
        Lower ends of the classes of original counts; the last is open.
    cells, vanished, records : tuple of int
        By class: cells, those with no record any more, and the records that were in them.
    transitions : (12, 12) counts
        Cells by original (rows) and protected count (columns), 0 to 10 and above.
    """

    sizes: tuple[int, ...]
    cells: tuple[int, ...]
    vanished: tuple[int, ...]
    records: tuple[int, ...]
    transitions: tuple[tuple[int, ...], ...]


def _take(comparison: Comparison) -> dict[str, Vanished] | None:
    before, after = comparison.tables_before, comparison.tables_after
    national = [table for table in before if comparison.specification.region not in table]
    section = {}
    for dimension in sorted({len(table) for table in national}):
        pairs = [aligned(table, before[table], after[table]) for table in national if len(table) == dimension]
        old, new = (np.concatenate(counts) for counts in zip(*pairs, strict=True))
        gone = vanished_cells(old, new)
        section[str(dimension)] = Vanished(
            gone.sizes,
            tuple(gone.cells.tolist()),
            tuple(gone.vanished.tolist()),
            tuple(gone.records.tolist()),
            tuple(map(tuple, transitions(old, new).tolist())),
        )
    return section or None


def _glance(section: Mapping[str, Vanished], k: int) -> Iterator[str]:
    for dimension, part in section.items():
        lost = sum(n for size, n in zip(part.sizes, part.vanished, strict=True) if size >= k)
        if lost:
            of = "categories" if dimension == "1" else f"cells of dimension {dimension}"
            yield f"{lost:,} {of} that held k records or more are empty now."


VANISHED: Measure[Comparison, dict[str, Vanished]] = Measure(
    name="vanished", section=dict[str, Vanished], take=_take, glance=_glance
)
