"""Identity of a cell across tables: measure, codes, contributors and amount.

The codes are the finest ones of each dimension that is not summed over, so that they do not depend on the
table. The secret draws of a cell depend on its identity: a cell gets new draws if its amount or its
contributors change. Knowledge about a cell in one period, measure or table therefore cannot be applied to
another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.files import decimals
from microguard.pipelines.tables.hierarchy import families
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table

COUNT = "(count)"
"""Measure of a frequency table."""
WEIGHTED = " (weighted)"
"""What follows the column in the name of a weighted measure."""
_WHOLE = re.compile(r"^(-?[0-9]+)\.0+$")
CellCodes = tuple[tuple[str, str], ...]
"""Column and code of each dimension that is not summed over (the finest code only), sorted by column."""


def origin_of(specification: Specification) -> dict[str, str]:
    """Return the ``source`` and the ``period`` of the units in a table."""
    release = specification.release
    return {"source": release.source or release.name, "period": release.period or ""}


def measures_of(table: Table) -> set[str]:
    """Return the measure that is summed in a table."""
    columns = [table.value or COUNT, *(name for columns in table.parts.values() for name in columns)]
    return {_measure(name, table) for name in columns}


def _measure(column: str, table: Table) -> str:
    return column + (WEIGHTED if table.weighted else "")


def with_other_weights(measure: str) -> str:
    """Return the measure of the same column without weights if it has weights, and with weights if not."""
    return measure.removesuffix(WEIGHTED) if measure.endswith(WEIGHTED) else measure + WEIGHTED


def total_measure(table: Table) -> str:
    """Return the measure that is summed in the cells of a table, apart from its parts (`table.parts`)."""
    return _measure(table.value or COUNT, table)


def cell_measures(cells: Cells, table: Table) -> list[str]:
    """Return the measure that is summed in each cell."""
    total = total_measure(table)
    if not table.parts:
        return [total] * len(cells)
    (dimension,) = table.parts
    return [total if code == table.total else _measure(code, table) for code in cells.codes[dimension]]


def cell_codes(cells: Cells, table: Table) -> list[CellCodes]:
    """Return the codes that identify each cell in every table that contains it."""
    texts = {name: cells.codes[name].to_numpy(str) for name in cells.codes}
    labels: list[list[tuple[str, str]]] = [[] for _ in range(len(cells))]
    for columns in families(table):
        if columns[0] in table.parts:
            continue
        for row, codes in enumerate(labels):
            finest = [name for name in columns if texts[name][row] != table.total]
            if finest:
                codes.append((finest[-1], str(texts[finest[-1]][row])))
    return [tuple(sorted(codes)) for codes in labels]


def written_alike(codes: CellCodes) -> CellCodes:
    """Return codes as whole numbers if they are such numbers with decimals: 1.0 in a column in which a value
    is missing is the 1 of the same column without missing values.
    """
    return tuple((name, _WHOLE.sub(r"\1", code) if "." in code else code) for name, code in codes)


def identical_members(cells: Cells, table: Table) -> np.ndarray:
    """Return a number for each cell, (cells,), which is equal for cells with the same contributors and value.

    The number is -1 if contributors are unknown. It is also -1 if the table has cells for empty combinations:
    a total and its only non-empty part are then two different cells.
    """
    if cells.members is None or (table.counts and table.zeros == "all"):
        return np.full(len(cells), -1)
    identity = pd.DataFrame(
        {"measure": cell_measures(cells, table), "members": cells.members, "units": cells.units}
    )
    numbers = identity.groupby(list(identity), sort=False).ngroup()
    return np.where(cells.members == "", -1, numbers)


def draw_identities(cells: Cells, table: Table, origin: Mapping[str, str]) -> list[str]:
    """Return the identity of each cell that its secret draw depends on.

    Amounts are identified by source, period, measure, codes, contributors and amount. Counts are identified
    by codes and contributors, or by codes and count if the contributors are unknown. An unchanged count has
    the same draw in every period: otherwise the mean over the periods would disclose the count.

    Parameters
    ----------
    origin : ``source`` and ``period``
    """
    members = [""] * len(cells) if cells.members is None else cells.members
    amounts = decimals(np.rint(cells.units), table.digits)
    measures, codes = cell_measures(cells, table), cell_codes(cells, table)
    identities = []
    for measure, code, member, amount in zip(measures, codes, members, amounts, strict=True):
        known = [str(member), format(amount.normalize(), "f")]
        where = [] if measure == COUNT else [origin["source"], origin["period"]]
        identities.append(json.dumps([measure, code, where, known]))
    return identities
