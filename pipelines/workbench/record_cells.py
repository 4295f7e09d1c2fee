"""Tabulation of records in this process, by the same rules as a run (`pipelines.tables.cells.microdata`).

Contributors are counted separately in every grouping set: a unit with records in several cells is one
contributor to their margin.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.cells import LARGEST_UNITS, Cells, tabulated
from microguard.pipelines.tables.cells.contributions import MISSING
from microguard.pipelines.tables.cells.microdata import contributions_needed, grouping_sets
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table

AMOUNT, UNIT, SIZE = "__amount", "__unit", "__size"
"""Names of the columns that are added here; no column of a file has these names."""
GUARD_DIGITS = 6
"""Number of digits after the last published one to which a product of binary numbers is rounded to a decimal
one."""


def cells_of_records(
    codes: Mapping[str, pd.Series], amounts: np.ndarray, units: pd.Series | None, table: Table
) -> Cells:
    """Return the cells of every grouping set of a table.

    Parameters
    ----------
    codes : mapping of each of `table.columns` to the (n,) codes as text, None where missing
    amounts : (n,) array
        Contribution of each record.
    units : (n,) series, optional
        Contributor of each record; all missing values are one contributor. By default each record is its own
        contributor.

    Raises
    ------
    InputRejected
        If a code is the total mark, levels do not nest, or a sum has too many digits.
    """
    whole = np.rint(np.round(amounts * 10.0**table.digits, GUARD_DIGITS))
    unit = np.arange(len(whole)) if units is None else pd.factorize(units)[0]
    records = pd.DataFrame({name: _labels(name, codes, table) for name in table.columns})
    if (records == table.total).any(axis=None):
        raise InputRejected(
            f"The total mark {table.total!r} is also a code of a dimension. Set table.total to a text that "
            "is not a code."
        )
    records = records.assign(**{UNIT: unit, AMOUNT: whole})
    for name in table.expanded:
        records = _with_codes_above(records, name, table.parents[name])
    most = contributions_needed(table)
    found = pd.concat([_grouped(records, each, table, most) for each in grouping_sets(table)])
    if (found["gross"] >= LARGEST_UNITS).any():
        raise InputRejected(
            "A cell has too many digits to be added exactly. Lower table.decimals, or use a larger unit "
            "for the values."
        )
    return tabulated(
        found[list(table.columns)].fillna(table.total).reset_index(drop=True),
        table,
        units=found["units"].to_numpy(float),
        contributors=found["contributors"].to_numpy(np.int64),
        gross=found["gross"].to_numpy(float),
        largest=found[[f"largest {rank}" for rank in range(most)]].to_numpy(float),
    )


def _labels(name: str, codes: Mapping[str, pd.Series], table: Table) -> pd.Series:
    """Return the codes as text; a missing code becomes a category that includes the name of the code above
    it.
    """
    levels = table.levels_of(name)
    if len(levels) > 1:
        return codes[name].fillna(_labels(levels[-2], codes, table) + f" {MISSING}")
    return codes[name].fillna(MISSING)


def _with_codes_above(records: pd.DataFrame, name: str, parents: Mapping[str, str]) -> pd.DataFrame:
    """Return for each record one row for its code, one for each ancestor of the code, and one for the
    total.
    """
    coarse = int(records[name].isin(set(parents.values())).sum())
    if coarse:
        raise InputRejected(
            f"{coarse} record(s) have a code in {name} that is a parent of other codes: expected the finest "
            "codes. Use a finer code, or add a code for these records in table.parents."
        )
    parts, code = [records.assign(**{name: None}), records], records[name]
    while (code := code.map(parents)).notna().any():
        parts.append(records.assign(**{name: code})[code.notna()])
    return pd.concat(parts, ignore_index=True)


def _grouped(records: pd.DataFrame, columns: tuple[str, ...], table: Table, most: int) -> pd.DataFrame:
    """Return the cells of a grouping set: sums over records, numbers of contributors, and largest
    contributions by unit.
    """
    inside = np.ones(len(records), bool)
    for name in table.expanded:
        inside &= (records[name].notna() == (name in columns)).to_numpy()
    records = records[inside].assign(__all=0)
    keys = ["__all", *columns]
    by_unit = records.groupby([*keys, UNIT], sort=False)[AMOUNT].sum().reset_index()
    by_unit[SIZE] = by_unit[AMOUNT].abs()
    cells = by_unit.groupby(keys, sort=True).agg(
        units=(AMOUNT, "sum"), contributors=(UNIT, "size"), gross=(SIZE, "sum")
    )
    ordered = by_unit.sort_values(SIZE, ascending=False, kind="stable")
    rank = ordered.groupby(keys, sort=False).cumcount()
    for each in range(most):
        of_rank = ordered[rank == each].set_index(keys)[SIZE]
        cells[f"largest {each}"] = of_rank.reindex(cells.index).fillna(0.0)
    cells = cells.reset_index()
    return cells.assign(**{name: None for name in table.columns if name not in columns})
