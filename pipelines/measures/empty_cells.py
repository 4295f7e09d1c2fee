"""Control table cells that protection emptied, by original size, and changes of small counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.measures.comparison import Comparison
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.table_errors import aligned
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification
from microguard.sdc.measures.empty_cells import emptied_cells, transitions

MORE = "set method.control_tables.kept_dimension, raise method.effort, or accept more in [quality]"


@dataclass(frozen=True)
class Vanished:
    """Emptied cells in the tables of one dimension, for the whole file or by region.

    For dimension 1 the cells are categories.

    Attributes
    ----------
    sizes : tuple of int
        Lower ends of the size classes of original counts; the last class is open.
    cells, vanished, records : tuple of int
        By size class: cells, cells without records after protection, and original records in the latter.
    of_k_or_more : int
        Cells without records after protection that had k or more records.
    transitions : (12, 12) counts
        Cells by original (rows) and protected count (columns), 0 to 10 and above.
    """

    sizes: tuple[int, ...]
    cells: tuple[int, ...]
    vanished: tuple[int, ...]
    records: tuple[int, ...]
    of_k_or_more: int
    transitions: tuple[tuple[int, ...], ...]


class VanishedMeasure(Measure[Comparison, dict[str, Vanished]]):
    """Cells that protection emptied, in tables of the whole file or by region."""

    section = dict[str, Vanished]

    def __init__(self, name: str, *, by_region: bool) -> None:
        self.name, self.by_region = name, by_region

    def compute(self, comparison: Comparison) -> dict[str, Vanished] | None:
        """Count the emptied cells by dimension; return None without tables."""
        before, after = comparison.tables_before, comparison.tables_after
        region, k = comparison.specification.region, comparison.specification.release.k
        tables = [table for table in before if (region in table) == self.by_region]
        section = {}
        for dimension in sorted({len(table) - self.by_region for table in tables}):
            of_dimension = [table for table in tables if len(table) - self.by_region == dimension]
            pairs = [aligned(table, before[table], after[table]) for table in of_dimension]
            old, new = (np.concatenate(counts) for counts in zip(*pairs, strict=True))
            gone = emptied_cells(old, new)
            section[str(dimension)] = Vanished(
                gone.sizes,
                tuple(gone.cells.tolist()),
                tuple(gone.emptied.tolist()),
                tuple(gone.records.tolist()),
                int(np.count_nonzero((old >= k) & (new == 0))),
                tuple(map(tuple, transitions(old, new).tolist())),
            )
        return section or None

    def metrics(self, section: Mapping[str, Vanished], comparison: Comparison) -> dict[MetricKey, float]:
        """Return the number of emptied cells that contained k or more records."""
        return {
            MetricKey(self.name, dimension=int(dimension)): part.of_k_or_more
            for dimension, part in section.items()
        }

    def limits(self, specification: Specification) -> Iterator[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        region = specification.region
        dimensions = {
            len(table) - self.by_region
            for table in specification.control_tables
            if (region in table) == self.by_region
        }
        for dimension, limit in sorted((specification.quality.max_vanished or {}).items()):
            if dimension in dimensions:
                yield Requirement(MetricKey(self.name, dimension=dimension), MORE, at_most=limit)

    def headline(self, section: Mapping[str, Vanished], k: int) -> Iterator[str]:
        """Return a sentence with the number of emptied cells that contained k or more records."""
        where = " of a region" if self.by_region else ""
        for dimension, part in section.items():
            if part.of_k_or_more:
                cells = "Categories" if dimension == "1" else f"Cells of dimension {dimension}"
                yield (
                    f"{cells}{where} that contained k or more records and are empty now: "
                    f"{part.of_k_or_more:,}."
                )


VANISHED = VanishedMeasure("vanished", by_region=False)
VANISHED_BY_REGION = VanishedMeasure("vanished_by_region", by_region=True)
