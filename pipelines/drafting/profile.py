"""Profile of a file for a draft: counts of the forms of the values in each column, without the values
themselves.

DuckDB computes the counts in memory and writes no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from microguard.pipelines.drafting.arrow_types import as_loaded, is_flat, is_number, is_text
from microguard.pipelines.drafting.codebooks import recognise
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.names import concepts_of
from microguard.pipelines.drafting.number_format import NumberFormat, detect_number_format
from microguard.pipelines.drafting.sentinels import CODES, sentinels
from microguard.pipelines.drafting.sniff import Source, with_line_breaks
from microguard.pipelines.drafting.text_forms import DATE, WITH_UNIT, YEAR
from microguard.pipelines.engine.sql_text import quoted_text
from microguard.schemas.errors import InputRejected

MOST_RECORDS = 1_000_000
"""Maximum number of records that a draft reads, from the beginning of the input."""
MISSING_MARKS = (
    *("?", ".", "..", ":", "-", "*", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "-nan", "NaT"),
    *("NULL", "null", "(null)", "#NULL!", "\\N", "None"),
)
"""Missing marks of R, pandas, SAS, SPSS, Excel, Eurostat, Hive and databases."""
LARGEST_NUMBER = 1e150
"""Largest absolute value that a run accepts; larger ones would overflow sums of squares."""

SAMPLE_RECORDS = 20_000
"""Maximum number of records whose values are compared in memory; they are drawn by a hash of their contents.
"""
NUMBER_FORMAT_RECORDS = 2_000
"""Number of records from which the number format is detected."""
SINGLE_THREAD_RECORDS = 100_000
"""Minimum number of records for several threads; with fewer, one thread is faster."""
ENDS = 60
"""Number of distinct values at each end of a column among which codes of missing values are searched."""


class Profile:
    """Counts of the values of a file; as a context manager it closes its DuckDB connection.

    Attributes
    ----------
    source : Source
    records : int
        Number of records that were read.
    cut : bool
        Whether the file has more records.
    number_format : NumberFormat
        How the numbers of a CSV are written.
    missing, marked : str or None, tuple of str
        The text that marks missing values, and the columns with this text.
    columns : tuple of Column
        Columns with a name and scalar values; nested and binary columns are omitted.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._engine = duckdb.connect()
        self._engine.execute("SET temp_directory = ''; SET enable_progress_bar = false")
        positions = [i for i, each in enumerate(source.schema) if each.name.strip() and is_flat(each.type)]
        try:
            self._load(positions)
        except (pa.ArrowException, duckdb.Error, UnicodeError, OSError):
            raise InputRejected(
                f"{source.path.name} cannot be read to its end: a line has another number of fields than the "
                "header, the files differ, or one is truncated. Correct the file and draft again."
            ) from None
        broken = [f"regexp_matches(c{position}, '[\\n\\r]')" for position in positions]
        if source.format == "csv" and broken and self._one(f"count(*) FILTER ({' OR '.join(broken)})"):
            raise with_line_breaks(source.path)
        self.cut = self._one("count(*)") > MOST_RECORDS
        self._engine.execute(f"DELETE FROM file WHERE rowid >= {MOST_RECORDS}")
        self.records = self._one("count(*)")
        if self.records < SINGLE_THREAD_RECORDS:
            self._engine.execute("SET threads = 1")
        self.missing, self.marked = self._missing_mark(positions)
        self.number_format = self._detect_number_format(positions)
        meant = recognise(source.schema.names)
        self.columns = tuple(
            self._column(position, meant.get(source.schema.field(position).name, frozenset()))
            for position in positions
        )
        labels = ", ".join(f"c{position}" for position in positions) or "1"
        self._engine.execute(
            f"CREATE TABLE sampled AS SELECT * FROM file ORDER BY hash({labels}) LIMIT {SAMPLE_RECORDS}"
        )

    def __enter__(self) -> Profile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()

    def classes(
        self, columns: Sequence[Column], k: int, accepted: str = "true", counted: Column | None = None
    ) -> tuple[int, int, int, int]:
        """Count the equivalence classes on the given columns.

        Parameters
        ----------
        accepted : str
            SQL condition on the records.
        counted : Column, optional
            Column whose distinct values are the units; by default units are records.

        Returns
        -------
        tuple of int
            Number of classes, of records in classes with fewer than k units, of unique records, and of units
            in the smallest class.
        """
        labels = ", ".join(column.label for column in columns) or "()"
        units = "count(*)" if counted is None else f"count(DISTINCT {counted.label})"
        row = self._engine.execute(
            f"SELECT count(*), sum(r) FILTER (n < {k}), count(*) FILTER (r = 1), min(n) "
            f"FROM (SELECT count(*) AS r, {units} AS n FROM file WHERE {accepted} GROUP BY {labels})"
        ).fetchone()
        assert row is not None
        classes, below, uniques, smallest = (int(value or 0) for value in row)
        return classes, below, uniques, smallest

    def sampled_codes(self, columns: Sequence[Column]) -> pd.DataFrame:
        """Return the sampled records' values of some columns as codes, by label; -1 is missing."""
        return self.codes(columns, "sampled")

    def codes(self, columns: Sequence[Column], table: str = "file") -> pd.DataFrame:
        """Return the values of some columns as codes, by label; -1 is missing."""
        labels = ", ".join(column.label for column in columns)
        frame = self._engine.execute(f"SELECT {labels} FROM {table}").df()
        return pd.DataFrame({label: pd.factorize(frame[label])[0] for label in frame.columns})

    def breaks(self, key: Column, columns: Sequence[Column]) -> tuple[int, dict[str, int]]:
        """Count how often columns change their values between records with the same key.

        Whole groups are counted, about `SAMPLE_RECORDS` records of a larger file; a hash of the key draws
        them.

        Returns
        -------
        int
            Number of records beyond the first of each group.
        dict of label to int
            Number of distinct values of each column beyond the first of each group; missing is a value.
        """
        part = max(self.records // SAMPLE_RECORDS, 1)
        texts = [f"coalesce(CAST({column.label} AS VARCHAR), '')" for column in columns]
        counts = ["count(*) - 1", *(f"count(DISTINCT {text}) - 1" for text in texts)]
        named = [f"{count} AS n{i}" for i, count in enumerate(counts)]
        sums = ", ".join(f"sum(n{i})" for i in range(len(named)))
        row = self._engine.execute(
            f"SELECT {sums} FROM (SELECT {', '.join(named)} FROM file WHERE {key.label} IS NOT NULL "
            f"AND hash({key.label}) % {part} = 0 GROUP BY {key.label})"
        ).fetchone()
        assert row is not None
        repeats, *changes = (int(value or 0) for value in row)
        return repeats, {column.label: count for column, count in zip(columns, changes, strict=True)}

    def draw(
        self, numeric: Sequence[Column], nominal: Sequence[Column], accepted: str, most: int
    ) -> pd.DataFrame:
        """Draw records by a hash of their contents, so that the sample does not depend on their order.

        Parameters
        ----------
        accepted : str
            SQL condition on the records.
        most : int
            Maximum number of records.

        Returns
        -------
        DataFrame
            One column per label: numbers of numeric columns, codes of nominal ones (-1 is missing).
        """
        numbers = [f"{self._number(column)} AS {column.label}" for column in numeric]
        labels = [column.label for column in nominal]
        frame = self._engine.execute(
            f"SELECT {', '.join([*numbers, *labels])} FROM file WHERE {accepted} "
            f"ORDER BY hash({', '.join(column.label for column in (*numeric, *nominal))}) LIMIT {most}"
        ).df()
        for label in labels:
            frame[label] = pd.factorize(frame[label], sort=False)[0]
        return frame

    def values(self, column: Column) -> pd.Series:
        """Return all values of a column: numbers if every value is one, otherwise text; missing is NaN or
        None.

        Records are in the order of a hash of their contents, whatever their order in the file.
        """
        labels = ", ".join(each.label for each in self.columns)
        self._engine.execute(
            f"CREATE TABLE IF NOT EXISTS ordered AS SELECT * FROM file ORDER BY hash({labels})"
        )
        numeric = 0 < column.present == column.numbers
        value = self._number(column) if numeric else f"CAST({column.label} AS VARCHAR)"
        frame = self._engine.execute(f"SELECT {value} AS v FROM ordered").df()
        return frame["v"].astype(np.float64) if numeric else frame["v"]

    def sampled_numbers(self, columns: Sequence[Column]) -> dict[str, np.ndarray]:
        """Return the purely numeric columns of the sampled records, by label; NaN is missing."""
        numeric = [column for column in columns if 0 < column.present == column.numbers]
        if not numeric:
            return {}
        numbers = ", ".join(f"{self._number(column)} AS {column.label}" for column in numeric)
        frame = self._engine.execute(f"SELECT {numbers} FROM sampled").df()
        return {label: frame[label].to_numpy(np.float64, na_value=np.nan) for label in frame.columns}

    def codes_in_order(self, column: Column, other: Column) -> np.ndarray:
        """Return the sampled codes of `other`, sorted by the numbers or texts of `column`."""
        number = self._number(column)
        order = f"{number}, {column.label}" if column.numbers else column.label
        records = self._engine.execute(
            f"SELECT {other.label} AS v FROM sampled ORDER BY {order}, {other.label}"
        ).df()
        return np.asarray(pd.factorize(records["v"])[0])

    def condition_all_finite(self, numeric: Sequence[Column]) -> str:
        """Return the SQL condition that all these numbers are present and at most `LARGEST_NUMBER` in
        absolute value.
        """
        conditions = [f"coalesce({_finite(self._number(column))}, false)" for column in numeric]
        return " AND ".join(conditions) or "true"

    def condition_any_missing(self, numeric: Sequence[Column]) -> str:
        """Return the SQL condition that at least one of these numbers is missing."""
        return " OR ".join(f"{column.label} IS NULL" for column in numeric) or "false"

    def smallest_pattern(
        self, numeric: Sequence[Column], region: Sequence[Column], counted: Column | None
    ) -> int:
        """Return the number of units with the rarest missing pattern within a region."""
        labels = [f"{column.label} IS NULL" for column in numeric] + [column.label for column in region]
        units = "count(*)" if counted is None else f"count(DISTINCT {counted.label})"
        row = self._engine.execute(
            f"SELECT min(n) FROM (SELECT {units} AS n FROM file GROUP BY {', '.join(labels) or '1'})"
        ).fetchone()
        assert row is not None
        return int(row[0] or 0)

    def count(self, condition: str) -> int:
        """Count the records that satisfy a SQL condition."""
        return self._one(f"count(*) FILTER ({condition})")

    def _load(self, positions: list[int]) -> None:
        labels = [f"c{position}" for position in positions]
        schema = pa.schema(
            [(label, self.source.schema.field(i).type) for label, i in zip(labels, positions, strict=True)]
        )
        reader = pa.RecordBatchReader.from_batches(schema, self.source.batches(positions))
        self._engine.register("reader", reader)
        columns = ", ".join(as_loaded(label, schema.field(label).type) for label in labels)
        self._engine.execute(f"CREATE TABLE file AS SELECT {columns} FROM reader LIMIT {MOST_RECORDS + 1}")
        self._engine.unregister("reader")

    def _one(self, expression: str) -> int:
        row = self._engine.execute(f"SELECT {expression} FROM file").fetchone()
        assert row is not None
        return int(row[0] or 0)

    def _missing_mark(self, positions: list[int]) -> tuple[str | None, tuple[str, ...]]:
        """Replace the most frequent mark by NULL; return it and the names of the columns that have it."""
        texts = [f"c{position}" for position in positions if is_text(self.source.schema.field(position).type)]
        found: dict[str, dict[str, int]] = {mark: {} for mark in MISSING_MARKS}
        for label in texts:
            counts = ", ".join(f"count(*) FILTER ({label} = '{mark}')" for mark in MISSING_MARKS)
            occurrences = self._engine.execute(f"SELECT {counts} FROM file").fetchone() or ()
            name = self.source.schema.field(int(label[1:])).name
            for mark, count in zip(MISSING_MARKS, occurrences, strict=True):
                found[mark] |= {name: int(count)} if count else {}
        mark = max(MISSING_MARKS, key=lambda each: sum(found[each].values()))
        if not found[mark]:
            return None, ()
        for label in texts:
            self._engine.execute(f"UPDATE file SET {label} = NULL WHERE {label} = '{mark}'")
        return mark, tuple(found[mark])

    def _detect_number_format(self, positions: list[int]) -> NumberFormat:
        texts = [f"c{i}" for i in positions if is_text(self.source.schema.field(i).type)]
        if self.source.format == "parquet" or not texts:
            return NumberFormat()
        frame = self._engine.execute(
            f"SELECT {', '.join(texts)} FROM file ORDER BY hash({', '.join(texts)}) "
            f"LIMIT {NUMBER_FORMAT_RECORDS}"
        ).df()
        return detect_number_format(frame[label].dropna().unique().tolist() for label in texts)

    def _number(self, column: Column) -> str:
        return self._number_in(column.label, column.type)

    def _number_in(self, label: str, type: pa.DataType) -> str:
        """Return SQL of a value as DOUBLE, NULL if it is no number; text is parsed only in a CSV."""
        if is_number(type):
            return f"CAST({label} AS DOUBLE)"
        if self.source.format == "parquet" or not is_text(type):
            return "NULL::DOUBLE"
        number = f"TRY_CAST({self.number_format.plain(label)} AS DOUBLE)"
        return (
            f"CASE WHEN regexp_matches({label}, {quoted_text(self.number_format.number)}) THEN {number} END"
        )

    def _missing_codes(self, label: str, number: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Find the codes of missing values among the numbers of a column, and replace them by NULL.

        Returns
        -------
        two tuples of int
            The codes, and numbers that may be codes and are not replaced.
        """
        counts = self._engine.execute(
            f"SELECT {number} AS v, count(*) AS n FROM file WHERE v IS NOT NULL GROUP BY v ORDER BY v"
        ).fetchnumpy()
        values, times = np.asarray(counts["v"], np.float64), np.asarray(counts["n"], np.int64)
        place = np.arange(len(values))
        near = (place < ENDS) | (place >= len(values) - ENDS) | np.isin(values, list(CODES))
        codes, doubtful = sentinels(values[near], times[near])
        if codes:
            listed = ", ".join(map(str, codes))
            self._engine.execute(f"UPDATE file SET {label} = NULL WHERE {number} IN ({listed})")
        return codes, doubtful

    def _column(self, position: int, meant: frozenset[str]) -> Column:
        entry = self.source.schema.field(position)
        label = f"c{position}"
        number = self._number_in(label, entry.type)
        numeric = is_number(entry.type) or self.source.format == "csv"
        reads = numeric and self._one(f"count({number})") == self._one(f"count({label})") > 0
        codes, doubtful = self._missing_codes(label, number) if reads else ((), ())
        text, dates = f"CAST({label} AS VARCHAR)", f"regexp_full_match(s, '{DATE}')"
        if pa.types.is_floating(entry.type) or pa.types.is_decimal(entry.type):
            whole = "v = round(v) AND abs(v) < 1e15"
            integer = f"{number} = round({number}) AND abs({number}) < 1e15"
            text = f"CASE WHEN {integer} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) ELSE {text} END"
            # a floating-point number such as 2019.11 is an amount and not a month
            dates = f"({dates}) AND ({whole})"
        else:
            whole = f"regexp_matches(s, {quoted_text(self.number_format.whole)})"
        if pa.types.is_temporal(entry.type):
            dates = "true"
        row = self._engine.execute(
            f"""SELECT count(x), count(DISTINCT x), count(v), count(*) FILTER ({whole}),
            count(x) FILTER ({dates}), count(*) FILTER (regexp_full_match(s, '^0[0-9]+([.,][0-9]*)?$')),
            count(*) FILTER (v > 0), count(*) FILTER ({_finite("v")}),
            count(*) FILTER (fmod(v, 10) = 0 AND {whole}),
            min(length(s)), max(length(s)), avg(length(s) - length(replace(s, ' ', '')) + 1), min(v), max(v),
            count(*) FILTER (regexp_matches(s, '{YEAR}')),
            count(*) FILTER (v IS NULL AND regexp_full_match(s, '{WITH_UNIT}'))
            FROM (SELECT {label} AS x, {number} AS v, {text} AS s FROM file)"""
        ).fetchone()
        assert row is not None
        counts = [int(value or 0) for value in row[:11]]
        return Column(
            name=entry.name,
            label=label,
            type=entry.type,
            present=counts[0],
            distinct=counts[1],
            numbers=counts[2],
            whole=counts[3],
            dates=counts[4],
            years=int(row[14] or 0),
            with_unit=int(row[15] or 0),
            zero_led=counts[5],
            positive=counts[6],
            finite=counts[7],
            round=counts[8],
            widths=(counts[9], counts[10]),
            words=float(row[11] or 0),
            range=(float(row[12] or 0), float(row[13] or 0)),
            missing_codes=codes,
            doubtful_codes=doubtful,
            concepts=_concepts(entry.name, meant),
        )


def _concepts(name: str, meant: frozenset[str]) -> frozenset[str]:
    """Return the concepts of a name by its codebook, which may omit that it is an age, or by its words."""
    said = concepts_of(name)
    return meant | (said & {"age"}) if meant else said


def _finite(number: str) -> str:
    return f"isfinite({number}) AND abs({number}) <= {LARGEST_NUMBER}"
