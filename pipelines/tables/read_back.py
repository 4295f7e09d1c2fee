"""Verify the promise on the tables as they were written: additive, protected, no cell beyond its room.

Shares no code with the methods: totals are compared with the sums of their parts by their codes, sensitive
cells with the original values that only the agency has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.tables.files import FOLDER, columns_of
from pipelines.tables.tau_argus import same_cells
from schemas.requirements.requirement import MetricKey
from schemas.specification.table import Table

_UNITS = "__units"
#: A column, and the columns above it in a further hierarchy -> its codes with theirs.
Groupings = Mapping[tuple[str, tuple[str, ...]], pd.DataFrame]


@dataclass(frozen=True)
class Original:
    """What the written cells are compared with; arrays in the order of `codes`, in units.

    Attributes
    ----------
    codes : (cells, columns) frame
    units, lower, upper : (cells,) arrays
        Original values, and the levels of the rule; zero where a cell is not sensitive.
    fall, rise : (cells,) arrays
        How far a cell may go.
    relaxed : names of the steps that let cells go further than the specification says.
    base : number that every cell is published at a multiple of, if any.
    groupings : codes of columns that further hierarchies group anew.
    """

    codes: pd.DataFrame
    units: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    fall: np.ndarray
    rise: np.ndarray
    relaxed: tuple[str, ...] = ()
    base: int | None = None
    groupings: Groupings = field(default_factory=dict)


@dataclass(frozen=True)
class WrittenTable:
    """What the files of a staged table say.

    Attributes
    ----------
    cells, lines : int
        Cells of all files, and totals compared with their parts.
    open : int
        Totals that are not the sum of their parts, or cells with two values in linked tables.
    unprotected, astray : int
        Sensitive cells nearer to their value than the rule allows; cells beyond their capacity, at no
        multiple of the base, missing, or not in the original table.
    as_staged, as_declared : bool
        Whether the files hold what was handed to the stage, in the declared columns and types.
    relaxed : tuple of str
        Steps of `table.relax` that cells were let go further by.
    groupings : as in `Original`
    """

    cells: int
    lines: int
    open: int
    unprotected: int
    astray: int
    as_staged: bool
    as_declared: bool
    relaxed: tuple[str, ...] = ()
    groupings: Groupings = field(default_factory=dict)

    @property
    def records(self) -> int:
        """What was published: cells."""
        return self.cells

    def metrics(self) -> dict[MetricKey, float]:
        """What the gate asks of the written files."""
        return {
            MetricKey("content_as_staged"): float(self.as_staged),
            MetricKey("columns_as_declared"): float(self.as_declared),
            MetricKey("lines_open"): self.open,
            MetricKey("cells_unprotected"): self.unprotected,
            MetricKey("cells_astray"): self.astray,
        }


def verify_written_table(
    folder: Path, staged: Mapping[str, pa.Table], table: Table, original: Original
) -> WrittenTable:
    """Read the staged files back and compare."""
    contents = {name: pq.read_table(folder / FOLDER / name) for name in staged}
    as_declared = all(contents[name].schema.equals(content.schema) for name, content in staged.items())
    as_staged = all(contents[name].equals(content) for name, content in staged.items())
    as_staged &= not table.tau_argus or same_cells(folder, staged)
    frames = [_in_units(content, table) for content in contents.values()]
    lines = wrong = 0
    for frame, dimensions in zip(frames, table.tables, strict=True):
        for totals in _totals(frame, table, dimensions):
            if table.counts:  # a total of nothing but zeros is not there
                totals = totals.fillna({_UNITS: 0})
            lines += len(totals)
            wrong += int((totals[_UNITS] != totals["parts"]).sum())
    together = pd.concat(frames).fillna(dict.fromkeys(table.columns, table.total))
    by_cell = together.groupby(list(table.columns), sort=False)[_UNITS].agg(["min", "max"])
    wrong += int((by_cell["min"] != by_cell["max"]).sum())
    for linked in _grouped(by_cell["min"], original, table):
        lines += len(linked)
        wrong += int((linked[_UNITS] != linked["parts"]).sum())
    unprotected, astray = _compared(by_cell["min"], original, table)
    return WrittenTable(
        cells=len(together),
        lines=lines,
        open=wrong,
        unprotected=unprotected,
        astray=astray,
        as_staged=as_staged,
        as_declared=as_declared,
        relaxed=original.relaxed,
        groupings=dict(_shown(together, original)),
    )


def _in_units(content: pa.Table, table: Table) -> pd.DataFrame:
    frame = content.to_pandas()
    values = frame.pop(table.value_name)
    scale = 10**table.digits
    frame[_UNITS] = [int(value * scale) for value in values]
    return frame


def _totals(frame: pd.DataFrame, table: Table, dimensions: tuple[str, ...]) -> Iterator[pd.DataFrame]:
    """Totals with the sums of their parts, dimension by dimension and level by level."""
    columns = columns_of(table, dimensions)
    for dimension in dimensions:
        levels = table.levels_of(dimension)
        if dimension in table.parents:
            above = frame[dimension].map(table.parents[dimension]).fillna(table.total)
            parts = frame.assign(**{dimension: above})[frame[dimension] != table.total]
            sums = parts.groupby(columns, sort=False)[_UNITS].sum().rename("parts").reset_index()
            yield sums.merge(frame, on=columns, how="left")
            continue
        for depth, level in enumerate(levels):
            deeper = levels[depth + 1 :]
            at_level = (frame[level] != table.total) & (frame[list(deeper)] == table.total).all(axis=1)
            parts = frame[at_level].assign(**{level: table.total})
            sums = parts.groupby(columns, sort=False)[_UNITS].sum().rename("parts").reset_index()
            yield sums.merge(frame, on=columns, how="left")


def _grouped(written: pd.Series, original: Original, table: Table) -> Iterator[pd.DataFrame]:
    """Cells of further hierarchies with the sums of the codes that they group, wherever tables have such."""
    cells, columns = written.rename(_UNITS).reset_index(), list(table.columns)
    kinds = set(_kinds(cells, table))
    for (finer, coarser), codes in original.groupings.items():
        levels = levels_beside(table, finer)
        deeper = list(levels[levels.index(finer) + 1 :])
        whole = (cells[[*deeper, *coarser]] == table.total).all(axis=1)
        parts = cells[(cells[finer] != table.total) & whole]
        group = codes.set_index(finer).loc[parts[finer]]
        parts = parts.assign(**{name: group[name].to_numpy() for name in coarser})
        parts = parts.assign(**dict.fromkeys(levels, table.total))
        sums = parts.groupby(columns, sort=False)[_UNITS].sum().rename("parts").reset_index()
        sums = sums[[kind in kinds for kind in _kinds(sums, table)]]
        linked = sums.merge(cells, on=columns, how="left")
        yield linked.fillna({_UNITS: 0}) if table.counts else linked


def _shown(
    written: pd.DataFrame, original: Original
) -> Iterator[tuple[tuple[str, tuple[str, ...]], pd.DataFrame]]:
    """The groupings as far as readers may know them: a code that no file has may still occur."""
    for (finer, coarser), codes in original.groupings.items():
        yield (finer, coarser), codes[codes[finer].isin(written[finer])]


def levels_beside(table: Table, finer: str) -> tuple[str, ...]:
    """Columns in tables of the first hierarchy that holds a column which others group anew."""
    hierarchy = next(each for each in table.hierarchies if finer in each)
    return tuple(name for name in hierarchy if name in table.columns)


def _kinds(cells: pd.DataFrame, table: Table) -> list[tuple[bool, ...]]:
    """Which columns each cell is not summed over."""
    return [tuple(row) for row in (cells[list(table.columns)] != table.total).to_numpy()]


def _compared(written: pd.Series, original: Original, table: Table) -> tuple[int, int]:
    index: pd.Index = pd.MultiIndex.from_frame(original.codes[list(table.columns)])
    if len(table.columns) == 1:
        index = index.get_level_values(0)
    values = written.reindex(index)
    missing = values.isna().to_numpy()
    foreign = len(written) - int(np.sum(~missing))
    left_out = missing & (table.counts | (original.units == 0))  # a zero, as far as readers can tell
    values, missing = values.mask(left_out, 0), missing & ~left_out
    change = np.where(missing, 0.0, values.to_numpy(float) - original.units)
    sensitive = (original.lower > 0) | (original.upper > 0)
    near = sensitive & (change < original.upper) & (change > -original.lower)
    beyond = (change > original.rise) | (-change > original.fall)
    if original.base is not None:
        beyond |= (change + original.units) % original.base != 0
    return int(np.sum(near)), int(np.sum(beyond | missing)) + foreign
