"""Frequency vector: the distinct key combinations of nominal values and their counts.

Nominal methods process the frequency vector instead of records. It contains only combinations that occur (the
*abbreviated* frequency vector of Cost 2023, sections 1.1 and 2.1).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, TooFewRecords, UnknownVariable
from scipy import sparse

#: Upper limit of mixed-radix keys. If a prefix would exceed it, the prefix is replaced by its rank.
LARGEST_KEY = 1 << 62


@dataclass(frozen=True)
class FrequencyVector:
    """Distinct key combinations in canonical order: by region, then by the codes of the variables.

    Attributes
    ----------
    codes : (m, a) int32 array
        Codes 0 to domain size - 1 of the a variables of each combination.
    counts : (m,) int64 array
        Number of records of each combination, at least 0.
    domain_sizes : (a,) int64 array
        Number of values of each variable.
    names : tuple of a labels
        Names of the variables, which control tables refer to.
    regions : (m,) int32 array or None
        Region of each combination. Equal values in two regions count as two combinations.
    """

    codes: np.ndarray
    counts: np.ndarray
    domain_sizes: np.ndarray
    names: tuple[Hashable, ...]
    regions: np.ndarray | None = None

    def __post_init__(self) -> None:
        m, a = self.codes.shape
        if len(self.counts) != m or (self.regions is not None and len(self.regions) != m):
            raise ShapeMismatch(
                f"counts and regions: expected one per key combination, {m}, found another number"
            )
        if len(self.domain_sizes) != a or len(self.names) != a:
            raise ShapeMismatch(
                f"names and domain sizes: expected one per variable, {a}, found another number"
            )
        if m and (self.counts.min() < 0 or self.codes.min() < 0 or (self.codes >= self.domain_sizes).any()):
            raise InvalidParameter(
                "counts and codes: expected counts of at least 0 and codes below the domain size, found "
                "others"
            )
        if not _strictly_increasing(self._columns()):
            raise InvalidParameter(
                "key combinations: expected distinct and sorted combinations, found others. Build them "
                "with `collapse`"
            )

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def records(self) -> int:
        """Return the number of records n."""
        return int(self.counts.sum())

    @property
    def variables(self) -> int:
        """Return the number of variables a."""
        return self.codes.shape[1]

    def region_of(self) -> np.ndarray:
        """Return the region of each combination, (m,) int32; all 0 without regions."""
        return np.zeros(len(self), np.int32) if self.regions is None else self.regions

    def region_matrix(self) -> sparse.csr_matrix:
        """Return the incidence matrix of regions and combinations, (regions, m), which computes sums by
        region.
        """
        region = np.unique(self.region_of(), return_inverse=True)[1]
        return sparse.csr_matrix((np.ones(len(self)), (region, np.arange(len(self)))))

    def at_risk(self, k: int) -> np.ndarray:
        """Return whether each combination has 1 to k - 1 records (a "confidentiality problem"), (m,) bool."""
        return (self.counts > 0) & (self.counts < k)

    def _columns(self) -> list[np.ndarray]:
        columns = [self.codes[:, j] for j in range(self.variables)]
        return columns if self.regions is None else [self.regions, *columns]


@dataclass(frozen=True)
class CodedFrame:
    """Frame whose records are coded as positions in its frequency vector, with the inverse mapping to values.

    Attributes
    ----------
    frame : DataFrame
        The n original records.
    frequencies : FrequencyVector
    combination : (n,) int64 array
        Position of each record's key combination.
    """

    frame: pd.DataFrame
    frequencies: FrequencyVector
    combination: np.ndarray
    _carriers: tuple[np.ndarray, ...]

    def decode(self, codes: np.ndarray) -> pd.DataFrame:
        """Return the frame with these codes, (n, a); index, columns and dtypes are those of the original."""
        if codes.shape != self.frame.shape:
            raise ShapeMismatch(
                f"codes: expected the shape of the frame, {self.frame.shape}, found {codes.shape}"
            )
        columns = []
        for j, carriers in enumerate(self._carriers):
            column = self.frame.iloc[:, j].take(carriers[codes[:, j]])
            column.index = self.frame.index
            columns.append(column)
        decoded = pd.concat(columns, axis=1)
        decoded.columns = self.frame.columns
        return decoded

    def decode_combinations(self, combination: np.ndarray) -> pd.DataFrame:
        """Return the frame in which record i has the values of combination[i]; `combination` has
        shape (n,).
        """
        return self.decode(self.frequencies.codes[combination])

    def values(self, variable: int) -> list[Hashable]:
        """Return the value of each code of a variable."""
        return self.frame.iloc[:, variable].take(self._carriers[variable]).tolist()

    def carriers(self) -> pd.DataFrame:
        """Return one record of each combination, in canonical order."""
        _, first = np.unique(self.combination, return_index=True)
        return self.frame.iloc[first]


def from_frame(frame: pd.DataFrame, regions: np.ndarray | None = None) -> CodedFrame:
    """Code a frame of nominal variables. A missing value is a category of its own, the last one.

    Codes follow the order of the values, or of the categories of a categorical variable. They do not depend
    on the order of the records. Only values that occur get a code.

    Parameters
    ----------
    frame : DataFrame (n, a)
    regions : (n,) int array, optional
        Region code of each record.

    Raises
    ------
    TooFewRecords
        If the frame is empty.
    UnknownVariable
        If two variables have the same name.
    InvalidParameter
        If the frame has no variables, or values that cannot be compared for equality.
    """
    if len(checked_frame(frame)) == 0:
        raise TooFewRecords("frame: expected at least k records, found none")
    if frame.shape[1] == 0:
        raise InvalidParameter("frame: expected at least one nominal variable, found none")
    if not frame.columns.is_unique:
        twice = int(frame.columns.duplicated().sum())
        raise UnknownVariable(
            f"frame: expected distinct names of variables, found {twice} repeated. Rename them"
        )
    coded = [_code_variable(frame.iloc[:, j], j) for j in range(frame.shape[1])]
    codes = np.column_stack([values for values, _ in coded])
    carriers = tuple(positions for _, positions in coded)
    sizes = np.array([len(positions) for positions in carriers], dtype=np.int64)
    frequencies, combination = collapse(codes, sizes, tuple(frame.columns), regions=regions)
    return CodedFrame(frame, frequencies, combination, carriers)


def collapse(
    codes: np.ndarray,
    domain_sizes: np.ndarray,
    names: tuple[Hashable, ...],
    *,
    regions: np.ndarray | None = None,
    counts: np.ndarray | None = None,
) -> tuple[FrequencyVector, np.ndarray]:
    """Collapse rows to their distinct key combinations, in canonical order.

    Parameters
    ----------
    codes : (n, a) int array
        Codes of each row: a record, or a number of equal records.
    domain_sizes : (a,) int array
        Number of values of each variable.
    names : tuple of a labels
    regions : (n,) int array, optional
        Region code of each row.
    counts : (n,) int array, optional
        Number of records of each row; 1 by default.

    Returns
    -------
    frequencies : FrequencyVector
    combination : (n,) int64 array
        Position of each row's combination.
    """
    columns = [codes[:, j] for j in range(codes.shape[1])]
    sizes = [int(size) for size in domain_sizes]
    if regions is not None:
        columns = [regions, *columns]
        sizes = [int(regions.max(initial=0)) + 1, *sizes]
    key, _ = mixed_radix(columns, sizes, len(codes))
    _, first, combination = np.unique(key, return_index=True, return_inverse=True)
    weights = np.ones(len(codes), np.int64) if counts is None else np.asarray(counts, np.int64)
    totals = np.zeros(len(first), np.int64)
    np.add.at(totals, combination, weights)
    frequencies = FrequencyVector(
        codes=np.ascontiguousarray(codes[first], dtype=np.int32),
        counts=totals,
        domain_sizes=np.asarray(domain_sizes, np.int64),
        names=tuple(names),
        regions=None if regions is None else np.asarray(regions, np.int32)[first],
    )
    return frequencies, combination.astype(np.int64)


def mixed_radix(columns: list[np.ndarray], sizes: list[int], rows: int) -> tuple[np.ndarray, int]:
    """Return one int64 key per row and the range of the keys; keys sort like the rows, column by column.

    If the product of the sizes would overflow, the key so far is replaced by its rank, which is below the
    number of rows. Therefore any number of variables and any domain size is possible.
    """
    key, span = np.zeros(rows, np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if span * size >= LARGEST_KEY:
            distinct, key = np.unique(key, return_inverse=True)
            span = len(distinct)
        key = key * size + column
        span *= size
    return key, span


def checked_frame(frame: object) -> pd.DataFrame:
    """Return the argument if it is a DataFrame; raise InvalidParameter otherwise."""
    if not isinstance(frame, pd.DataFrame):
        raise InvalidParameter(
            "frame: expected a DataFrame with one column per nominal variable, found "
            f"{type(frame).__name__}. Convert it by pandas.DataFrame(...)"
        )
    return frame


def check_k(records: int, k: int) -> None:
    """Raise an error unless k is an integer of at least 2 and there are at least k records."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 2:
        raise InvalidParameter(f"k: expected an integer of at least 2, found {k!r}. Choose, for example, 3")
    if records < k:
        raise TooFewRecords(f"records: expected at least k = {k}, found {records}. Lower k")


def check_regions(frequencies: FrequencyVector, k: int) -> None:
    """Raise TooFewRecords if a region has 1 to k - 1 records."""
    records = frequencies.region_matrix() @ frequencies.counts
    small = int(((records > 0) & (records < k)).sum())
    if small:
        raise TooFewRecords(
            f"regions: expected at least k = {k} records in each region, found {small} regions with fewer. "
            "Merge or suppress them"
        )


def _code_variable(column: pd.Series, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the code of each record, and for each code the position of one record that has it."""
    missing = column.isna().to_numpy()
    if isinstance(column.dtype, pd.CategoricalDtype):
        met = column.cat.codes.to_numpy().astype(np.int64)
        distinct = int(met.max(initial=-1)) + 1
        rank = np.arange(distinct)
    else:
        try:
            met, values = pd.factorize(column, use_na_sentinel=True)
        except TypeError as error:
            raise InvalidParameter(
                "nominal variable: expected values that can be compared for equality, found others, such as "
                "lists. Convert them to text",
                variable=position,
            ) from error
        distinct = len(values)
        rank = np.empty(distinct, np.int64)
        rank[_order(values)] = np.arange(distinct)
    order = np.where(missing, distinct, rank[met] if distinct else 0)
    _, carriers, codes = np.unique(order, return_index=True, return_inverse=True)
    return codes.astype(np.int32), carriers


def _order(values: pd.Index | np.ndarray) -> np.ndarray:
    """Return the order of distinct values; values of mixed types are sorted by type and then by their
    text.
    """
    array = np.asarray(values)
    try:
        return np.argsort(array, kind="stable")
    except TypeError:
        keys = [(type(value).__qualname__, str(value)) for value in array]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _strictly_increasing(columns: list[np.ndarray]) -> bool:
    if not columns or len(columns[0]) < 2:
        return True
    undecided = np.ones(len(columns[0]) - 1, bool)
    for column in columns:
        step = np.diff(column.astype(np.int64))
        if (step[undecided] < 0).any():
            return False
        undecided &= step == 0
    return not undecided.any()
