"""The frequency vector: distinct combinations of nominal values with their counts.

Every nominal method works on it instead of on records (Cost 2023, section 1.1 and 2.1, the
*abbreviated* frequency vector: only combinations that occur are in it).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, TooFewRecords, UnknownVariable
from scipy import sparse

#: Keys stay below this; a prefix that would pass it is replaced by its rank first.
LARGEST_KEY = 1 << 62


@dataclass(frozen=True)
class FrequencyVector:
    """Distinct combinations in canonical order: by region, then by code, first variable first.

    Attributes
    ----------
    codes : (m, a) int32 array
        Values of the combinations, coded 0 .. domain size - 1 per variable.
    counts : (m,) int64 array
        Records of each combination, not negative.
    domain_sizes : (a,) int64 array
        Number of values of each variable.
    names : tuple of a labels
        Names of the variables; control tables are named by them.
    regions : (m,) int32 array or None
        Region of each combination; the same values in two regions are two combinations.
    """

    codes: np.ndarray
    counts: np.ndarray
    domain_sizes: np.ndarray
    names: tuple[Hashable, ...]
    regions: np.ndarray | None = None

    def __post_init__(self) -> None:
        m, a = self.codes.shape
        if len(self.counts) != m or (self.regions is not None and len(self.regions) != m):
            raise ShapeMismatch(f"{m} combinations need as many counts and regions")
        if len(self.domain_sizes) != a or len(self.names) != a:
            raise ShapeMismatch(f"{a} variables need as many names and domain sizes")
        if m and (self.counts.min() < 0 or self.codes.min() < 0 or (self.codes >= self.domain_sizes).any()):
            raise InvalidParameter("counts and codes may not be negative, nor codes pass their domain")
        if not _strictly_increasing(self._columns()):
            raise InvalidParameter("combinations must be distinct and sorted; build them with `collapse`")

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def records(self) -> int:
        """Number of records n."""
        return int(self.counts.sum())

    @property
    def variables(self) -> int:
        """Number of variables a."""
        return self.codes.shape[1]

    def region_of(self) -> np.ndarray:
        """Region of each combination, (m,) int32; all 0 where there are no regions."""
        return np.zeros(len(self), np.int32) if self.regions is None else self.regions

    def region_matrix(self) -> sparse.csr_matrix:
        """Ones where a combination lies in a region, (regions, m): adds up by region."""
        region = np.unique(self.region_of(), return_inverse=True)[1]
        return sparse.csr_matrix((np.ones(len(self)), (region, np.arange(len(self)))))

    def at_risk(self, k: int) -> np.ndarray:
        """Combinations with 1 to k - 1 records ("confidentiality problems"), (m,) bool."""
        return (self.counts > 0) & (self.counts < k)

    def _columns(self) -> list[np.ndarray]:
        columns = [self.codes[:, j] for j in range(self.variables)]
        return columns if self.regions is None else [self.regions, *columns]


@dataclass(frozen=True)
class CodedFrame:
    """A frame's records as positions in their frequency vector, and the way back to values.

    Attributes
    ----------
    frame : DataFrame
        The original, n records.
    frequencies : FrequencyVector
    combination : (n,) int64 array
        Position of each record's combination.
    """

    frame: pd.DataFrame
    frequencies: FrequencyVector
    combination: np.ndarray
    _carriers: tuple[np.ndarray, ...]

    def decode(self, codes: np.ndarray) -> pd.DataFrame:
        """Frame with these codes, (n, a): same index, columns and dtypes as the original."""
        if codes.shape != self.frame.shape:
            raise ShapeMismatch(f"codes have shape {codes.shape}, the frame {self.frame.shape}")
        columns = []
        for j, carriers in enumerate(self._carriers):
            column = self.frame.iloc[:, j].take(carriers[codes[:, j]])
            column.index = self.frame.index
            columns.append(column)
        decoded = pd.concat(columns, axis=1)
        decoded.columns = self.frame.columns
        return decoded

    def decode_combinations(self, combination: np.ndarray) -> pd.DataFrame:
        """Frame in which each record has the values of the combination named, (n,)."""
        return self.decode(self.frequencies.codes[combination])

    def values(self, variable: int) -> list[Hashable]:
        """Value of each code of a variable."""
        return self.frame.iloc[:, variable].take(self._carriers[variable]).tolist()

    def carriers(self) -> pd.DataFrame:
        """One record of each combination, in canonical order: the values the combination stands for."""
        _, first = np.unique(self.combination, return_index=True)
        return self.frame.iloc[first]


def from_frame(frame: pd.DataFrame, regions: np.ndarray | None = None) -> CodedFrame:
    """Code a frame of nominal variables; missing values are one more category, the last.

    Codes follow the order of the values (of the categories, where the variable is categorical), so
    they do not depend on the order of the records. Only values that occur get a code.

    Parameters
    ----------
    frame : DataFrame (n, a)
    regions : (n,) codes of each record's region, optional

    Raises
    ------
    TooFewRecords, UnknownVariable, InvalidParameter
        An empty frame, two variables of one name, values that have no equality.
    """
    if len(checked_frame(frame)) == 0:
        raise TooFewRecords("the frame has no records; expected at least k")
    if frame.shape[1] == 0:
        raise InvalidParameter("the frame has no variables; expected at least one nominal variable")
    if not frame.columns.is_unique:
        twice = int(frame.columns.duplicated().sum())
        raise UnknownVariable(f"{twice} names of variables occur twice; rename them")
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
    """Collapse rows to distinct combinations in canonical order.

    Parameters
    ----------
    codes : (n, a) array of codes, one row per record (or per partial count)
    domain_sizes : (a,) array
    names : a labels
    regions : (n,) codes of the region, optional
    counts : (n,) records each row stands for; 1 each where not given

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
    """One int64 key per row that sorts like the columns, first column first, and the keys' range.

    Where the product of the sizes would overflow, the key so far is replaced by its rank, which is
    below the number of rows; so no number of variables and no domain is too large.
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
    """The frame, if it is one."""
    if not isinstance(frame, pd.DataFrame):
        raise InvalidParameter(
            f"expected a DataFrame with a column per nominal variable, found {type(frame).__name__}; "
            "make one by pandas.DataFrame(...)"
        )
    return frame


def check_k(records: int, k: int) -> None:
    """Refuse a k that is no integer of at least 2, or fewer records than k."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 2:
        raise InvalidParameter(f"k must be an integer of at least 2, found {k!r}")
    if records < k:
        raise TooFewRecords(f"found {records} records; k = {k} needs at least {k}")


def check_regions(frequencies: FrequencyVector, k: int) -> None:
    """Refuse regions that have records, but fewer than k."""
    records = frequencies.region_matrix() @ frequencies.counts
    small = int(((records > 0) & (records < k)).sum())
    if small:
        raise TooFewRecords(f"{small} regions have fewer than k = {k} records; merge or suppress them")


def _code_variable(column: pd.Series, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of a variable's records, and for each code a record that carries its value."""
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
                "a nominal variable holds values that cannot be told equal or not (lists, for instance)",
                variable=position,
            ) from error
        distinct = len(values)
        rank = np.empty(distinct, np.int64)
        rank[_order(values)] = np.arange(distinct)
    order = np.where(missing, distinct, rank[met] if distinct else 0)
    _, carriers, codes = np.unique(order, return_index=True, return_inverse=True)
    return codes.astype(np.int32), carriers


def _order(values: pd.Index | np.ndarray) -> np.ndarray:
    """Order of distinct values; of mixed types by type and then by their text."""
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
