"""Suppressed table: cells are not published, so that no sensitive cell can be computed from the published
ones.

Cell suppression (Cox 1980; Fischetti and Salazar 2001). A suppressed cell has no value and the status
``suppressed``; the files never distinguish primary and secondary suppressions. The count on the files
requires that the status agrees with the value, that published cells add up, and that no withheld value
follows from the constraints of the table. The count with the original cells requires for every sensitive cell
that each kind of attacker has an interval as wide as the levels. Linear programs over the constraints compute
these intervals (`feasible_intervals`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.feasible_intervals import determined, too_narrow
from microguard.pipelines.guarantees.guarantee import Count, promise
from microguard.pipelines.guarantees.original_cells import OriginalCells, Published, positions
from microguard.pipelines.guarantees.table_files import STATUS, TableFiles
from microguard.pipelines.guarantees.tables import TableGuarantee
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from scipy import sparse

METHOD = "cell suppression"
PUBLISHED, SUPPRESSED = "published", "suppressed"
STATEMENT = (
    "Cells that the disclosure rule finds sensitive are suppressed, and others with them, so that no "
    "suppressed value follows from what is published. Published values are the true ones. A suppressed cell "
    "is not empty and not zero: its value is not given."
)
INTERVALS = (
    "Anyone who knows the method and every published number can narrow a suppressed value to an interval, "
    "from the sums of the table and from what is known about its contributors. For every sensitive cell "
    "this interval is as wide as the disclosure rule requires."
)
KNOWN_TO = {
    "single": "the only contributor of a cell",
    "pair": "the two contributors of a cell together",
    "unit": "every contributor with all its own amounts",
}
SHARE = (
    "In a cell to which they contribute, contributors remain uncertain only about what the others contribute."
)
BY_NUMBER = (
    "The input contained numbers of contributors, but not the contributors themselves. Counted are the "
    "contributors of cells with one or two contributors, in the cells to which they must contribute."
)
FOR_EVER = (
    "A suppressed cell is also suppressed in every other table of the same amounts, and a published cell "
    "is also published there. Microdata made from the same records may disclose more."
)
COUNTED, NOT_COUNTED, FOR_READERS = "counted", "not counted", "counted for readers"
_READERS_KNOW = (
    "that cells of combinations of columns that no table has are not negative (activity by region by size, "
    "if there are tables of each two of them)"
)
#: What was counted of such combinations, and the limit of the guarantee.
COMBINATIONS = {
    COUNTED: "",
    NOT_COUNTED: (
        f"Not counted is that everybody knows {_READERS_KNOW}. Intervals may be narrower for readers who use "
        "this."
    ),
    FOR_READERS: (
        f"It was counted that everybody knows {_READERS_KNOW}, but not that a contributor knows own amounts "
        "in these cells."
    ),
}
#: Name of the count of constraints whose published cells do not add up.
_OPEN = "hidden = 0 AND total IS NOT NULL AND total <> parts_sum"


@dataclass(frozen=True)
class SuppressedTable(TableGuarantee):
    """Promise that no suppressed cell can be computed from the published cells.

    Attributes
    ----------
    attackers : tuple of str
        Attackers against whom sensitive cells are protected: readers ("outsider") and contributors.
    by_number : bool
        Whether only the number of contributors in each cell was known.
    combinations : str
        Whether cells of combinations that no table has were counted as cells that are not negative: a key of
        `COMBINATIONS`.
    """

    name = "suppressed table"
    attackers: tuple[str, ...] = ("outsider",)
    by_number: bool = False
    combinations: str = COUNTED

    @property
    def statement(self) -> str:
        """Return the promise as a sentence."""
        return STATEMENT

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the limits of the guarantee, one sentence each."""
        counted = [who for kind, who in KNOWN_TO.items() if kind in self.attackers]
        others = [who for kind, who in KNOWN_TO.items() if kind not in self.attackers]
        sentences = [INTERVALS, f"This was counted for {', for '.join(['every reader', *counted])}."]
        sentences += [SHARE] if counted else []
        sentences += [BY_NUMBER] if counted and self.by_number else []
        sentences += [f"It was not counted for {', nor for '.join(others)}."] if others else []
        sentences += filter(None, [COMBINATIONS[self.combinations]])
        return (" ".join(sentences), FOR_EVER)

    @property
    def condition(self) -> str:
        """Return the SQL condition of a constraint whose published cells do not add up."""
        return _OPEN

    @property
    def forbidden(self) -> str:
        """Return no condition on the value alone, because the status is compared with the value."""
        return "false"

    def requirements(self) -> tuple[Requirement, ...]:
        """Require the counts of every table, a status that agrees with the value, and no suppressed value
        that sums disclose.
        """
        return (*super().requirements(), promise("status_wrong"), promise("cells_by_subtraction"))

    def private_requirements(self) -> tuple[Requirement, ...]:
        """Require the private counts of every table, and intervals as wide as the levels for all
        attackers.
        """
        narrow = (promise("intervals_too_narrow", attacker) for attacker in self.attackers)
        return (*super().private_requirements(), *narrow)

    def count(self, files: TableFiles) -> Count:
        """Compute the counts of the guarantee on the written files."""
        counted = super().count(files)
        wrong = sum(
            int(
                files.engine.execute(
                    f"SELECT count(*) FROM {file} WHERE ({value} IS NULL) <> ({STATUS} = '{SUPPRESSED}') "
                    f"OR {STATUS} IS NULL OR {STATUS} NOT IN ('{PUBLISHED}', '{SUPPRESSED}')"
                ).fetchall()[0][0]
            )
            for file, value in files.relations()
        )
        cells = files.by_cell()
        suppressed = np.array(cells["v"].is_null())
        relations = matrix_of(files, len(suppressed))
        follow = determined(relations, suppressed)
        metrics = {
            **counted.metrics,
            MetricKey("status_wrong"): float(wrong),
            MetricKey("cells_by_subtraction"): float(follow),
        }
        detail = f"{counted.detail}; {follow} suppressed values that follow from sums"
        if files.original is not None:
            narrow = self._narrow(files, relations, suppressed, positions(cells, files.original))
            metrics |= {MetricKey("intervals_too_narrow", kind): float(n) for kind, n in narrow.items()}
            worst = ", ".join(f"{kind} {n}" for kind, n in narrow.items())
            detail += f"; intervals of sensitive cells that are too narrow: {worst}"
        return Count(metrics, counted.facts, detail)

    def _narrow(
        self, files: TableFiles, relations: sparse.csr_matrix, suppressed: np.ndarray, places: np.ndarray
    ) -> dict[str, int]:
        """Count intervals that are too narrow, taking into account all earlier tables of the source."""
        original = files.original
        assert original is not None
        known, earlier = places >= 0, original.earlier
        cells = len(original.units) + (0 if earlier is None else len(earlier.units))
        place = sparse.csr_matrix(
            (np.ones(int(known.sum())), (np.flatnonzero(known), places[known])), shape=(len(places), cells)
        )
        lines, hidden = relations @ place, np.zeros(cells, bool)
        hidden[places[known & suppressed]] = True
        if earlier is not None:
            lines = sparse.vstack([lines, earlier.relations])
            hidden[len(original.units) :] = earlier.suppressed
        cells_of_all = original.with_earlier()
        return too_narrow(sparse.csr_matrix(lines), hidden, cells_of_all, self.attackers, files.mapper)

    def compare(self, published: Published, original: OriginalCells) -> tuple[int, int]:
        """Count sensitive cells and cells that must stay suppressed if they have a value, and published cells
        whose value is not the true one.
        """
        valued = ~np.isnan(published.shown)
        closed = original.sensitive if original.stay is None else original.sensitive | original.stay
        return int(np.sum(closed & valued)), int(np.sum(valued & (published.change != 0)))

    def method(self) -> dict[str, Any]:
        """Return the name of the method, the attackers that are counted, and how contributors are known."""
        contributors = {"contributors": "by number"} if self.by_number else {}
        combinations = {} if self.combinations == COUNTED else {"combinations": self.combinations}
        return {"name": METHOD, "attackers": list(self.attackers), **contributors, **combinations}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> SuppressedTable:
        """Build the guarantee from the statements of a manifest."""
        method = manifest["method"]
        by_number = method.get("contributors") == "by number"
        combinations = str(method.get("combinations", COUNTED))
        return cls(tuple(method.get("attackers", ("outsider",))), by_number, combinations)


def matrix_of(files: TableFiles, cells: int) -> sparse.csr_matrix:
    """Return the constraints of the files: -1 for a total and 1 for each part; missing totals are omitted."""
    lines = files.lines()
    total = lines["total"].to_pandas().to_numpy(float)
    line, part = (lines[name].to_numpy() for name in ("line", "part"))
    there = ~np.isnan(total)
    line, part, total = line[there], part[there], total[there].astype(np.int64)
    first = np.unique(line, return_index=True)[1]
    entries = np.concatenate([np.ones(len(part)), -np.ones(len(first))])
    rows, columns = np.concatenate([line, line[first]]), np.concatenate([part, total[first]])
    shape = (int(line.max()) + 1 if len(line) else 0, cells)
    return sparse.csr_matrix((entries, (rows, columns)), shape=shape)
