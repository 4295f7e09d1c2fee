"""Records that a preview protects: one record of each unit, without those that a run rejects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from microguard.pipelines.workbench.blocks import Records
from microguard.pipelines.workbench.data import Data, Values
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification


class UsedRecords:
    """Recoded columns of a specification, and which records are protected.

    Attributes
    ----------
    specification : Specification
    columns : dict of name to Values
    numeric, nominal : list of str
        Quasi-identifiers with numbers, and those with categories.
    rows : (n,) int64 array
        Positions of the records that are protected.
    one_of_each_unit : bool
        Whether some unit has several records; only one record of each unit is measured.
    rejected : int
        Number of records that a run rejects, because a value is missing.
    lacking : dict of name to int
        Number of records without a value of each variable that rejects them.

    Raises
    ------
    InputRejected, SpecificationError
        If a variable cannot be measured.
    """

    def __init__(self, data: Data, specification: Specification) -> None:
        self._data, self.specification = data, specification
        published = [*specification.quasi_identifiers, *specification.published_as_it_is]
        self.columns = {name: self._values(name) for name in dict.fromkeys(published)}
        self.numeric = [name for name in specification.numeric if self.columns[name].numbers is not None]
        wrong = [name for name in specification.numeric if name not in self.numeric]
        if wrong:
            raise SpecificationError(
                f"variables.{wrong[0]}: expected a column of numbers, because its kind is numeric; found "
                "text. Change its kind to nominal."
            )
        self.nominal = [name for name in specification.quasi_identifiers if name not in self.numeric]
        self.rows, self.one_of_each_unit = self._rows()

    def _values(self, name: str) -> Values:
        return self._data.values(name, self.specification.variables[name], self.specification)

    def _rows(self) -> tuple[np.ndarray, bool]:
        specification, columns = self.specification, self.columns
        present: dict[str, np.ndarray] = {}
        if specification.missing.numeric == "reject":
            present |= {name: np.isfinite(columns[name].amounts) for name in self.numeric}
        if specification.missing.nominal == "reject":
            present |= {name: columns[name].codes >= 0 for name in self.nominal}
        if specification.region is not None:
            present[specification.region] = columns[specification.region].codes >= 0
        kept = np.ones(self._data.profile.records, bool)
        for each in present.values():
            kept &= each
        self.rejected = int((~kept).sum())
        self.lacking = {name: int((~each).sum()) for name, each in present.items() if not each.all()}
        rows = np.flatnonzero(kept)
        if specification.counted is not None and specification.counted in self._data.columns:
            units = self._values(specification.counted).codes[rows]
            first = np.sort(np.unique(units, return_index=True)[1])
            if len(first) < len(rows):
                return rows[first], True
        return rows, False

    def kind(self, name: str) -> pa.DataType:
        """Return the type that a numeric variable has in a run; integers remain integers."""
        kind = self._data.columns[name].type
        whole = self.specification.input.format == "parquet" and pa.types.is_integer(kind)
        return pa.int64() if whole else pa.float64()

    def records(self, numeric: Sequence[str], nominal: Sequence[str]) -> Records:
        """Return the points of variables that are clustered together."""
        specification, rows = self.specification, self.rows
        points, strata = [], []
        if specification.region is not None:
            strata.append(self.columns[specification.region].codes[rows])
        for name in numeric:
            values = self.columns[name].amounts[rows].copy()
            missing = ~np.isfinite(values)
            strata.append(missing.astype(np.int64))
            spread = np.nanstd(values, ddof=1) if len(values) > 1 else 0.0
            values = (values - np.nanmean(values)) / (spread or 1.0) if not missing.all() else values
            values[missing] = 0.0
            points.append(values)
        points += [self.columns[name].codes[rows] + 1.0 for name in nominal]
        sensitive = [self.columns[name].codes[rows] for name in specification.sensitive]
        weight, weights = specification.weight_of_means, None
        if weight is not None and self.columns[weight].numbers is not None:
            weights = self.columns[weight].amounts[rows]
        return Records(
            points=np.column_stack(points) if points else np.zeros((len(rows), 0)),
            nominal=np.array([False] * len(numeric) + [True] * len(nominal)),
            strata=joined(strata, len(rows)),
            sensitive=np.column_stack(sensitive) if sensitive else np.zeros((len(rows), 0), np.int64),
            weights=weights if weights is not None and np.all(weights > 0) else None,
            variable_weights=np.array(
                [specification.variables[name].variable_weight for name in (*numeric, *nominal)]
            ),
        )


def joined(codes: Iterable[np.ndarray], records: int) -> np.ndarray:
    """Return for each record the number of its combination of codes, from 0."""
    found = np.zeros(records, np.int64)
    for each in codes:
        found = found * (int(each.max(initial=0)) + 2) + each + 1
        found = np.unique(found, return_inverse=True)[1]
    return found
