"""Cells whose amounts were revised: suppressed once, they stay suppressed under any source and period.

A table of revised records, or of the next period, may suppress other cells. A cell that it publishes is then
an estimate of the amount that the earlier table suppressed, and with it the lines of that table disclose the
sensitive cells. Offices therefore keep the pattern of preliminary results in final ones, and from period to
period (Hundepool et al. 2012, Statistical Disclosure Control, section 4.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import cell_codes, cell_measures, written_alike
from microguard.pipelines.tables.published_before import SUPPRESSED, PublishedCell
from microguard.schemas.specification.table import Table


def estimates_of_suppressed(
    cells: Cells, table: Table, before: Iterable[PublishedCell], source: str
) -> np.ndarray:
    """Return the cells whose value estimates a suppressed one, (cells,) bool.

    The suppressed cell has the same measure and either the same contributors, or the same source and codes.
    The values differ by at most `safety_range` percent of the suppressed one, the uncertainty that the rule
    requires.

    Parameters
    ----------
    before : cells of every source and period
    source : source of this table
    """
    rows: dict[Any, list[int]] = {}
    members = [""] * len(cells) if cells.members is None else cells.members
    named = zip(cell_measures(cells, table), cell_codes(cells, table), members, strict=True)
    for row, (measure, codes, units) in enumerate(named):
        rows.setdefault((measure, source, written_alike(codes)), []).append(row)
        if units:
            rows.setdefault((measure, str(units)), []).append(row)
    found = np.zeros(len(cells), bool)
    for cell in before:
        if cell.status != SUPPRESSED or cell.original is None:
            continue
        then = float(cell.original.scaleb(table.digits))
        place = cell.measure, cell.source, written_alike(cell.codes)
        for row in (*rows.get(place, ()), *rows.get((cell.measure, cell.members), ())):
            found[row] |= abs(cells.units[row] - then) <= abs(then) * table.safety_range / 100
    return found
