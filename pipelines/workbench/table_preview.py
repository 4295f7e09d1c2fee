"""Preview the cells of a table in this process: which are sensitive, by which rule, who learns a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from microguard.pipelines.drafting.sniff import Source, sniff
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.finished import cells_of_rows
from microguard.pipelines.tables.hierarchy import families
from microguard.pipelines.tables.problem import rule_table
from microguard.pipelines.workbench.data import recoded
from microguard.pipelines.workbench.record_cells import cells_of_records
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Variable
from microguard.schemas.specification.table import Table
from microguard.schemas.specification.table_input import table_of

ABSENT: Any = None
"""What stands for a missing value in columns of text."""
MOST_ROWS = 2_000_000
"""Maximum number of rows that are added up in this process."""


@dataclass(frozen=True, eq=False)  # compared by identity: the comparison of arrays has no single truth value
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
    contributors : (cells,) array or None
    largest : (cells, m) array
        Largest contributions, in descending order.
    total : str
    digits : int
        Digits after the point of the values.
    notes : tuple of str
        Differences between the preview and a run.
    """

    dimensions: tuple[str, ...]
    labels: pd.DataFrame
    values: np.ndarray
    sensitive: np.ndarray
    contributors: np.ndarray | None
    largest: np.ndarray
    total: str
    digits: int = 0
    notes: tuple[str, ...] = ()

    def learned(self, cell: int) -> str:
        """Return the contributors who could estimate another contribution if the cell were unchanged."""
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


class Frames:
    """A cache of the columns of the last input that was read."""

    def __init__(self) -> None:
        self._key: object = None
        self._frame = pd.DataFrame()

    def of(self, specification: Specification, table: Table) -> pd.DataFrame:
        """Return the columns of a table as text.

        Raises
        ------
        InputRejected, SpecificationError
            As raised by `_frame`.
        """
        key = specification.input, specification.input_path, _columns_of(specification, table)
        if key != self._key:
            self._frame, self._key = _frame(specification, table), key
        return self._frame


def preview_table(specification: Specification, frames: Frames | None = None) -> TablePreview:
    """Return the cells of the first table of a specification, and the results of its sensitivity rules.

    Parameters
    ----------
    frames : Frames, optional
        Cache of the columns that were read, for the next call.

    Raises
    ------
    InputRejected, SpecificationError
    """
    table = table_of(specification)
    notes = []
    if len(table.tables) > 1:
        notes.append(f"The first of {len(table.tables)} linked tables is shown; a run protects all together.")
    if table.parts:
        raise SpecificationError(
            "table.parts: values with parts are not shown here. Run compare: it protects the table by every "
            "method."
        )
    frame = (frames or Frames()).of(specification, table)
    table = table.model_copy(update={"method": "adjustment", "base": None, "tables": table.tables[:1]})
    if table.source == "microdata":
        if table.weighted or table.request or table.waiver:
            notes.append("Records are counted without weights, requests and waivers here.")
            table = table.model_copy(update={"weighted": False, "request": None, "waiver": None})
        cells = _added_up(frame, table, specification, notes)
    else:
        cells = _finished(frame, table, specification)
    rules = rule_table(cells, specification.model_copy(update={"table": table}))
    scale = 10.0**table.digits
    return TablePreview(
        dimensions=tuple(table.tables[0]),
        labels=_labels(cells, table),
        values=cells.units / scale,
        sensitive=np.asarray(rules.sensitive, bool),
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


def _finished(frame: pd.DataFrame, table: Table, specification: Specification) -> Cells:
    """Return the cells of a table that is given as a finished table."""
    rows = pd.DataFrame({f"c{i}": frame[name] for i, name in enumerate(table.columns)})
    numbers = {f"n{i}": _numbers(frame[name], specification) for i, name in enumerate(table.numbers)}
    rows = rows.assign(**numbers)
    if table.status is not None:
        rows["status"] = frame[table.status]
    return cells_of_rows(rows, table)


def _added_up(frame: pd.DataFrame, table: Table, specification: Specification, notes: list[str]) -> Cells:
    """Aggregate records to cells; leave out the records that a run rejects, and state their number."""
    codes = {name: _codes(name, frame[name], specification) for name in table.columns}
    kept = np.ones(len(frame), bool)
    amounts = np.ones(len(frame))
    if table.value is not None:
        amounts = _numbers(frame[table.value], specification)
        variable = specification.variables[table.value]
        if variable.missing:
            amounts = recoded(
                table.value, pd.Series(amounts), _only_missing(variable), specification
            ).to_numpy()
        kept &= np.isfinite(amounts)
    if specification.missing.nominal == "reject":
        for series in codes.values():
            kept &= series.notna().to_numpy()
    if not kept.all():
        notes.append(
            f"A run rejects {int((~kept).sum()):,} records with a missing value: these records are omitted."
        )
    units = _contributors(frame, table, specification)
    return cells_of_records(
        {name: series[kept].reset_index(drop=True) for name, series in codes.items()},
        amounts[kept],
        None if units is None else units[kept].reset_index(drop=True),
        table,
    )


def _contributors(frame: pd.DataFrame, table: Table, specification: Specification) -> pd.Series | None:
    """Return the contributor of each record: its holding, else its unit; None if it is the record."""
    unit = None if specification.unit is None else frame[specification.unit]
    if table.holding is None:
        return unit
    holding = "holding " + frame[table.holding]
    return holding if unit is None else holding.fillna("unit " + unit)


def _codes(name: str, series: pd.Series, specification: Specification) -> pd.Series:
    """Return the codes of a dimension as a run recodes them; None where missing."""
    variable = specification.variables[name]
    if not variable.recodes:
        return series
    if variable.bands is not None:
        series = pd.Series(_numbers(series, specification))
    codes = recoded(name, series, variable, specification, None)
    if pd.api.types.is_float_dtype(codes):  # the column holds years
        codes = codes.map(lambda year: None if year != year else str(int(year)))
    return codes.astype(object).where(codes.notna(), ABSENT)


def _only_missing(variable: Variable) -> Variable:
    """Return a variable with no recodes except missing codes: the totals are those of the file."""
    return Variable(role="quasi_identifier", kind="numeric", missing=variable.missing)


def _columns_of(specification: Specification, table: Table) -> tuple[str, ...]:
    """Return the names of the columns that a table needs."""
    whose = [specification.unit, table.holding] if table.source == "microdata" else []
    value = [table.value] if table.source == "microdata" else list(table.numbers)
    named = [*table.columns, *value, table.status, *whose]
    return tuple(dict.fromkeys(name for name in named if name is not None))


def _frame(specification: Specification, table: Table) -> pd.DataFrame:
    """Read the columns of a table as text.

    Raises
    ------
    SpecificationError
        If the file has fixed-width fields, or lacks a column.
    InputRejected
        If the file cannot be read, or has too many rows.
    """
    given, wanted = specification.input, _columns_of(specification, table)
    if given.positions:
        raise SpecificationError(
            "input.positions: files with fields at fixed places are not shown here. Run compare: it protects "
            "the table by every method."
        )
    try:
        source = None if given.columns else sniff(specification.input_path)
        present = given.columns if source is None else source.schema.names
        lacking = [name for name in wanted if name not in present]
        if lacking:
            raise InputRejected(
                f"The input lacks the column(s) {', '.join(lacking)}. Correct [table] and [variables], or "
                "the file."
            )
        frame = _read(specification, wanted, source)
    except (OSError, ValueError, UnicodeError, KeyError):
        raise InputRejected("The input cannot be read with the format that [input] states.") from None
    if len(frame) > MOST_ROWS:
        raise InputRejected(
            f"The input has {len(frame):,} rows, at most {MOST_ROWS:,} are summed here. Run compare."
        )
    return frame


def _read(specification: Specification, wanted: Sequence[str], source: Source | None) -> pd.DataFrame:
    """Read columns as text, None where missing."""
    given = specification.input
    if given.format == "parquet":
        assert source is not None
        places = [source.schema.names.index(name) for name in wanted]
        batches = pa.Table.from_batches(source.batches(places))
        frame = pd.DataFrame({name: _text(batches.column(i)) for i, name in enumerate(wanted)})
    else:
        files = [specification.input_path] if source is None else source.files
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
        frame = pd.concat(frames, ignore_index=True)
        frame = frame.where(frame != "", ABSENT)
    return frame if given.missing is None else frame.where(frame != given.missing, ABSENT)


def _text(column: pa.ChunkedArray) -> pd.Series:
    """Return a column as text, formatted as Spark casts it; None where missing."""
    if pa.types.is_floating(column.type):
        values = column.cast(pa.float64()).to_pandas()
        return values.map(lambda value: None if value != value else repr(value)).astype(object)
    return column.cast(pa.string()).to_pandas().astype(object)


def _numbers(values: pd.Series, specification: Specification) -> np.ndarray:
    """Return text as numbers; NaN where the text is not a number."""
    text = values.astype("string").str.strip()
    if specification.input.thousands is not None:
        text = text.str.replace(specification.input.thousands, "", regex=False)
    if specification.input.decimal != ".":
        text = text.str.replace(specification.input.decimal, ".", regex=False)
    return pd.to_numeric(text, errors="coerce").to_numpy(np.float64, na_value=np.nan, copy=True)
