"""Random jobs on several tables of the same records: a cell has the same value in all tables.

Each table has its own dimensions, rule, method, digits, seed and public area. Some have another source or
period, or records in another order or with other types. All share the evidence area. A reader with two
published values of one cell could average them. Therefore cells with the same codes and the same records must
have equal published values, and cells with other codes must have the value of an earlier table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from tests.benchmarks.jobs.adjusting import published_tables
from tests.benchmarks.jobs.tables import TableJob, TableRecords

#: Column that is summed, and the finest codes of the dimensions that are not summed over.
Cell = tuple[str, tuple[tuple[str, str], ...]]


class OverlappingJob:
    """Two to four tables of the same records, in the order of publication.

    Attributes
    ----------
    tables : list of TableJob
    """

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.tables = [TableJob(seed)]
        records = self.tables[0].records
        for number in range(1, int(random.integers(2, 5))):
            self.tables.append(TableJob(seed + 100_000 * number, _of_other_dimensions(records, random)))
        source = str(random.choice(["one", "one", "none", "several"]))
        for number, table in enumerate(self.tables):
            release = {"name": f"table{number}"}
            if source == "one":
                release |= {"source": "register"}
            elif source == "several":
                release |= {
                    "source": f"register{random.integers(2)}",
                    "period": f"2026-0{random.integers(1, 3)}",
                }
            table.content["release"] |= release
            table.content["publish"] |= {"path": f"lake{number}"}
        self._values: dict[Cell, Decimal] = {}
        self._of_records: dict[tuple[str, bytes], set[Decimal]] = {}

    def fault(self, table: TableJob, answer: dict[str, Any]) -> str:
        """Return the violated guarantees of a table, given the tables that were published before."""
        fault = table.fault(answer)
        differing = renamed = 0
        cells = list(_cells(answer))
        inside = [(cell[0], _records_of(cell, table.records)) for cell, _ in cells]
        for (cell, value), records in zip(cells, inside, strict=True):
            differing += self._values.setdefault(cell, value) != value
            renamed += bool(records[1]) and value not in self._of_records.get(records, {value})
        here: dict[tuple[str, bytes], Decimal] = {}
        for (_, value), records in zip(cells, inside, strict=True):
            self._of_records.setdefault(records, set()).add(value)
            if "value" in table.content["table"]:  # empty combinations distinguish counts of the same records
                renamed += bool(records[1]) and here.setdefault(records, value) != value
        if differing:
            return fault or f"{differing} cells were published before with other values"
        return fault or (
            f"the records of {renamed} cells were published with other values" if renamed else ""
        )


def _cells(answer: dict[str, Any]) -> Iterator[tuple[Cell, Decimal]]:
    for frame in published_tables(answer):
        *columns, measure = frame.columns
        for *codes, value in frame.itertuples(index=False):
            finest = {name.removeprefix("g"): (name, code) for name, code in zip(columns, codes, strict=True)
                      if code != "Total"}  # fmt: skip
            yield (measure, tuple(sorted(finest.values()))), Decimal(str(value))


def _records_of(cell: Cell, records: TableRecords) -> bytes:
    """Return the set of records of a cell."""
    inside = np.ones(len(records.frame), dtype=bool)
    for name, code in cell[1]:
        inside &= (records.frame[name] == code).to_numpy()
    return np.sort(records.frame["unit"][inside].astype(float).to_numpy()).tobytes()


def _of_other_dimensions(records: TableRecords, random: np.random.Generator) -> TableRecords:
    """Draw a table of the records by some dimensions, with finest or coarser codes."""
    chosen = random.permutation(records.dimensions)[: int(random.integers(1, len(records.dimensions) + 1))]
    dimensions, hierarchies = [], []
    for name in map(str, chosen):
        hierarchy = next((each for each in records.hierarchies if name in each), None)
        as_ = str(random.choice(["whole", "whole", "finest", "coarser"])) if hierarchy else "finest"
        dimensions.append(f"g{name}" if as_ == "coarser" else name)
        if hierarchy and as_ == "whole":
            hierarchies.append(hierarchy)
    frame = records.frame
    if random.random() < 0.3:
        frame = frame.sample(frac=1, random_state=1)
    if random.random() < 0.3:
        frame = frame.assign(unit=frame["unit"].astype(str(random.choice(["str", "int16", "float64"]))))
    return replace(records, frame=frame, dimensions=dimensions, hierarchies=hierarchies)
