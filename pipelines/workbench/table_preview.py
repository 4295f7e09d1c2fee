"""Preview the cells of a table in this process: which are sensitive, by which rule, and who learns what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.sniff import sniff
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.finished import cells_of_rows
from microguard.pipelines.tables.hierarchy import families
from microguard.pipelines.tables.problem import rule_table
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.schemas.specification.table_input import table_of

COUNT, SUM, SIZE, RANK = ("__contributors", "__value", "__size", "__rank")
RANKED = "__contribution_{}"
"""Names of the columns of cells that are added up here; no column of a file has them."""
MOST_ROWS = 2_000_000
"""Maximum number of rows that are added up in this process."""


@dataclass(frozen=True)
class TablePreview:
    """The cells of a table before protection.

    Attributes
    ----------
    dimensions : tuple of str
        Finest column of each dimension.
    labels : (cells, dimensions) frame of text
        Finest code of each cell in each dimension, or the total mark.
    values : (cells,) array
    sensitive : (cells,) boolean array
    levels : (cells, 2) array
        Lower and upper protection level.
    contributors : (cells,) array or None
    largest : (cells, m) array
        Largest contributions, first the largest.
    total : str
    digits : int
        Digits after the point of the values.
    notes : tuple of str
        What the preview leaves out.
    """

    dimensions: tuple[str, ...]
    labels: pd.DataFrame
    values: np.ndarray
    sensitive: np.ndarray
    levels: np.ndarray
    contributors: np.ndarray | None
    largest: np.ndarray
    total: str
    digits: int = 0
    notes: tuple[str, ...] = ()

    def learned(self, cell: int) -> str:
        """Return who learns what from a cell if it is published as it is."""
        said = []
        if self.contributors is not None:
            count = int(self.contributors[cell])
            said.append(f"{count} contributor{'s' if count != 1 else ''}")
            if count == 1:
                said.append("everybody learns its amount")
            if count == 2:
                said.append("each learns the amount of the other")
        value = abs(float(self.values[cell]))
        if self.largest.shape[1] and value > 0 and self.largest[cell, 0] > 0:
            first = float(self.largest[cell, 0])
            said.append(f"the largest has {100 * first / value:.3g} %")
            if self.largest.shape[1] > 1 and self.largest[cell, 1] > 0:
                rest = max(value - first - float(self.largest[cell, 1]), 0.0)
                said.append(f"the second largest knows it within {round(100 * rest / first, 4):.3g} %")
        return ", ".join(said) or "sensitive by its status or level"


def preview_table(specification: Specification) -> TablePreview:
    """Return the cells of the first table of a specification, and what its rules say of them.

    Raises
    ------
    InputRejected, SpecificationError
    """
    table = table_of(specification)
    notes = []
    if len(table.tables) > 1:
        notes.append(f"The first of {len(table.tables)} linked tables is shown; a run protects all together.")
    frame = _frame(specification, table)
    table = table.model_copy(update={"method": "adjustment", "base": None})
    if table.source == "microdata":
        if table.parts or table.weighted or table.holding or table.request or table.waiver:
            notes.append("Records are counted without weights, holdings, requests, waivers and parts here.")
        frame, table = _added_up(frame, table, specification)
    numbers = {name: _numbers(frame, name, specification) for name in table.numbers}
    rows = pd.DataFrame({f"c{i}": frame[name].astype(str) for i, name in enumerate(table.columns)})
    rows = rows.assign(**{f"n{i}": numbers[name] for i, name in enumerate(table.numbers)})
    if table.status is not None:
        rows["status"] = frame[table.status].astype(str)
    cells = cells_of_rows(rows, table)
    rules = rule_table(cells, specification.model_copy(update={"table": table}))
    scale = 10.0**table.digits
    return TablePreview(
        dimensions=tuple(table.tables[0]),
        labels=_labels(cells, table),
        values=cells.units / scale,
        sensitive=np.asarray(rules.sensitive, bool),
        levels=np.column_stack([rules.lower_protection, rules.upper_protection]) / scale,
        contributors=cells.contributors,
        largest=np.asarray(cells.largest, float).reshape(len(cells), -1) / scale,
        total=table.total,
        digits=table.digits if np.any(cells.units % scale) else 0,
        notes=tuple(notes),
    )


def _labels(cells: Cells, table: Table) -> pd.DataFrame:
    """Return the finest code of each cell in each dimension."""
    labels = {}
    for columns in families(table):
        label = np.full(len(cells), table.total, dtype=object)
        for name in columns:  # coarse to fine
            codes = cells.codes[name].to_numpy(object)
            label = np.where(codes != table.total, codes, label)
        labels[columns[-1]] = label
    return pd.DataFrame(labels)


def _added_up(frame: pd.DataFrame, table: Table, specification: Specification) -> tuple[pd.DataFrame, Table]:
    """Return the finest cells of records, with their contributors, and the table that describes them."""
    keys = list(table.columns)
    count = table.value is None or table.kind == "frequency"
    amounts = np.ones(len(frame)) if count else _numbers(frame, str(table.value), specification)
    records = frame[keys].assign(**{SUM: amounts})
    unit = specification.unit
    if unit is not None and unit in frame:
        of_units = records.assign(**{COUNT: frame[unit]}).groupby([*keys, COUNT], sort=True)[SUM].sum()
        records = of_units.reset_index().drop(columns=COUNT)
    ranks = max([2, *(rule.n for rule in table.dominance)])
    groups = records.groupby(keys, sort=True)[SUM]
    cells = groups.sum().to_frame(SUM)
    cells[COUNT] = groups.size()
    ordered = records.assign(**{SIZE: records[SUM].abs()})
    ordered = ordered.sort_values(SIZE, ascending=False, kind="stable")
    ordered[RANK] = ordered.groupby(keys).cumcount()
    names = []
    if not count:
        for rank in range(ranks):
            names.append(RANKED.format(rank + 1))
            of_rank = ordered[ordered[RANK] == rank].set_index(keys)[SIZE]
            cells[names[-1]] = of_rank.reindex(cells.index).fillna(0.0)
    changes: dict[str, Any] = {
        "source": "cells",
        "margins": "computed",
        "value": SUM,
        "contributors": COUNT if not count else None,
        "largest": tuple(names),
        "p_percent": table.estimable_within,
        "tables": table.tables[:1],
        "parts": {},
        "weighted": False,
        "holding": None,
        "request": None,
        "waiver": None,
    }
    return cells.reset_index(), table.model_copy(update=changes)


def _frame(specification: Specification, table: Table) -> pd.DataFrame:
    """Read the columns of a table as text.

    Raises
    ------
    SpecificationError
        If the file has fields at fixed places, or lacks a column.
    InputRejected
        If it cannot be read, or has too many rows.
    """
    given = specification.input
    unit = [] if specification.unit is None or table.source == "cells" else [specification.unit]
    value = [table.value] if table.source == "microdata" and table.value is not None else list(table.numbers)
    status = [] if table.status is None else [table.status]
    wanted = list(dict.fromkeys([*table.columns, *value, *status, *unit]))
    if given.positions:
        raise SpecificationError(
            "input.positions: files with fields at fixed places are not shown here. Run compare: it protects "
            "the table by every method."
        )
    try:
        frame = _read(specification, wanted)
    except (OSError, ValueError, UnicodeError):
        raise InputRejected("The input cannot be read with the format that [input] states.") from None
    if len(frame) > MOST_ROWS:
        raise InputRejected(
            f"The input has {len(frame):,} rows, at most {MOST_ROWS:,} are added up here. Run compare."
        )
    return frame.dropna(subset=list(table.columns)) if table.source == "microdata" else frame


def _read(specification: Specification, wanted: Sequence[str]) -> pd.DataFrame:
    given = specification.input
    if given.format == "parquet":
        return pd.read_parquet(specification.input_path, columns=list(wanted)).astype("string").astype(object)
    files = sniff(specification.input_path).files if not given.columns else [specification.input_path]
    frames = [
        pd.read_csv(
            file,
            sep=given.delimiter,
            quotechar=given.quote,
            encoding=given.encoding,
            dtype=str,
            header=None if given.columns else 0,
            names=list(given.columns) or None,
            skipinitialspace=bool(given.columns),
            keep_default_na=False,
        )[list(wanted)]
        for file in files
    ]
    return pd.concat(frames, ignore_index=True)


def _numbers(frame: pd.DataFrame, name: str, specification: Specification) -> np.ndarray:
    """Return a column as numbers; what is none is missing, and missing amounts are 0."""
    values = frame[name]
    if values.dtype == object:
        text = values.astype("string").str.strip()
        if specification.input.thousands is not None:
            text = text.str.replace(specification.input.thousands, "", regex=False)
        if specification.input.decimal != ".":
            text = text.str.replace(specification.input.decimal, ".", regex=False)
        values = pd.to_numeric(text, errors="coerce")
    return values.to_numpy(np.float64, na_value=np.nan, copy=True)
