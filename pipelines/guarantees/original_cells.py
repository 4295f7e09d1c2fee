"""Cells before protection, which only the agency has, and the change of each published value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

#: One unit of the last published digit, of which all amounts are multiples.
UNIT = 1.0


@dataclass(frozen=True, eq=False)
class Contributed:
    """Distinct contributions of units to cells; for each listed cell, all its contributors are included.

    Attributes
    ----------
    cell, unit : (contributions,) int arrays
    amount : (contributions,) array, in units of the last published digit
    """

    cell: np.ndarray
    unit: np.ndarray
    amount: np.ndarray


@dataclass(frozen=True, eq=False)
class EarlierCells:
    """Cells of earlier suppressed tables that the new table does not contain.

    Attributes
    ----------
    units, lower, upper, sliding, fall, rise : (m,) arrays
    sensitive, suppressed : (m,) bool arrays
    relations : sparse (lines, cells of this table and these)
        The constraints of the earlier tables.
    """

    units: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sliding: np.ndarray
    fall: np.ndarray
    rise: np.ndarray
    sensitive: np.ndarray
    suppressed: np.ndarray
    relations: sparse.csr_matrix


@dataclass(frozen=True)
class OriginalCells:
    """Cells before protection, as arrays in the order of `codes`, in units of the last published digit.

    Attributes
    ----------
    codes : (cells, columns) frame
    units, lower, upper : (cells,) arrays
        Original values, and the protection levels of the rule; zero for cells that are not sensitive.
    sensitive : (cells,) bool array
        Cells that the rule finds sensitive.
    fall, rise : (cells,) arrays
        Largest permitted distance of the published value below and above the original one. For suppressed
        tables: largest distance of the value that every attacker knows beforehand.
    digits : int
        Digits after the point of the published values.
    zeros_absent : bool
        Whether any cell may be absent from the files and then counts as 0; otherwise only cells of value 0
        may be absent.
    base : int, optional
        Number of which every published value is a multiple.
    relaxed : tuple of str
        Steps of ``table.relax`` that allowed cells to exceed the limits of the specification.
    sliding : (cells,) array, optional
        Minimum width of the interval of a suppressed sensitive cell.
    contributed : Contributed, optional
        Contributions that contributors know. Cell positions after those of this table refer to `earlier`.
    earlier : EarlierCells, optional
        Suppressed tables of the same records that were published before.
    stay : (cells,) bool array, optional
        Cells that an earlier table suppressed, or that estimate an amount which it suppressed.
    """

    codes: pd.DataFrame
    units: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sensitive: np.ndarray
    fall: np.ndarray
    rise: np.ndarray
    digits: int = 0
    zeros_absent: bool = False
    relaxed: tuple[str, ...] = ()
    base: int | None = None
    sliding: np.ndarray | None = None
    contributed: Contributed | None = None
    earlier: EarlierCells | None = None
    stay: np.ndarray | None = None

    def with_earlier(self) -> OriginalCells:
        """Return the cells of this table followed by those of earlier tables; `codes` does not include the
        latter.
        """
        earlier = self.earlier
        if earlier is None:
            return self
        sliding = np.zeros(len(self.units)) if self.sliding is None else self.sliding
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(earlier, name)])
            for name in ("units", "lower", "upper", "sensitive", "fall", "rise")
        }
        return replace(self, **both, sliding=np.concatenate([sliding, earlier.sliding]), earlier=None)


@dataclass(frozen=True)
class Published:
    """Published values aligned with the original cells.

    Attributes
    ----------
    change : (cells,) float array
        Published minus original value in units; 0 where the cell is missing.
    shown : (cells,) float array
        Published value in units; 0 if an absent cell counts as 0, NaN if the cell is missing.
    missing : (cells,) bool array
        Cells that should be listed but are not, or that have no value.
    foreign : int
        Published cells that the original table does not have.
    """

    change: np.ndarray
    shown: np.ndarray
    missing: np.ndarray
    foreign: int


def beside_original(cells: pa.Table, original: OriginalCells) -> Published:
    """Align published cells (codes, then value ``v``) with the original cells."""
    columns = list(original.codes.columns.intersection(cells.column_names[:-1], sort=False))
    index = _index(original.codes, columns)
    frame = cells.to_pandas()
    values = pd.Series([_in_units(each, original.digits) for each in frame["v"]], _index(frame, columns))
    found = values.reindex(index)
    foreign = len(values) - int(index.isin(values.index).sum())
    missing = found.isna().to_numpy()
    absent = ~index.isin(values.index) & (original.zeros_absent | (original.units == 0))
    shown = np.where(absent, 0.0, found.to_numpy(float))
    missing &= ~absent
    change = np.where(missing, 0.0, shown - original.units)
    return Published(change, shown, missing, foreign)


def positions(cells: pa.Table, original: OriginalCells) -> np.ndarray:
    """Return the position of each published cell among the original cells; -1 if it is not one of them."""
    columns = list(original.codes.columns.intersection(cells.column_names[:-1], sort=False))
    return _index(original.codes, columns).get_indexer(_index(cells.to_pandas(), columns))


def _index(codes: pd.DataFrame, columns: list[str]) -> pd.Index:
    index: pd.Index = pd.MultiIndex.from_frame(codes[columns])
    return index.get_level_values(0) if len(columns) == 1 else index


def _in_units(value: object, digits: int) -> float:
    """Return a published number in units of its last digit; NaN if there is no number."""
    return float("nan") if value is None or value != value else float(int(value * 10**digits))
