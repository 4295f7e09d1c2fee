"""Profile a file for a draft: per column counts of what its values look like, none of the values.

DuckDB counts, in memory and in no file of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

import duckdb
import pyarrow as pa

from pipelines.drafting.sniff import Source
from schemas.errors import InputRejected

MOST_RECORDS = 1_000_000
"""A draft looks at no more records than this, the first ones."""
MISSING_MARKS = ("?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", ".", "-", "*")
LARGEST_NUMBER = 1e150
"""As in a run: beyond it a sum of squares overflows."""

_NUMBER = r"^\s*[+-]?([0-9]+{0}?[0-9]*|{0}[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_WHOLE = r"^\s*[+-]?[0-9]{1,18}\s*$"
_DATE = (
    r"^([0-9]{4}[-/.][0-9]{1,2}([-/.][0-9]{1,2})?([ T].*)?"  # 2026-11-21, 2026-11, with or without a time
    r"|[0-9]{1,2}[-/.][0-9]{1,2}[-/.]([0-9]{4}|[0-9]{2})([ T].*)?"  # 21.11.2026
    r"|(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])"  # 20261121
    r"|(19|20)[0-9]{2}[- ]?[QqWw][0-9]{1,2}"  # 2026Q4
    r"|[0-9]{1,2} ?[A-Za-z]{3,9}\.? ?[0-9]{2,4}"  # 21 Nov 2026
    r"|[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9].*)?)$"  # 12:30
)


@dataclass(frozen=True)
class Column:
    """What is known of a column.

    Attributes
    ----------
    name : str
    label : str
        Its name in the queries of `Profile.count`.
    type : pyarrow.DataType
    present : int
        Values that are not missing.
    distinct : int
        Distinct values that are not missing.
    numbers, whole, dates, zero_led : int
        Values that are or read as a number, a whole number, a date or time, and a number like "007".
    positive, finite : int
        Numbers above zero; numbers that can be squared.
    widths : tuple of int
        Least and largest number of characters.
    words : float
        Mean number of words.
    """

    name: str
    label: str
    type: pa.DataType
    present: int
    distinct: int
    numbers: int
    whole: int
    dates: int
    zero_led: int
    positive: int
    finite: int
    widths: tuple[int, int]
    words: float


class Profile:
    """Counts of a file; a context manager.

    Attributes
    ----------
    source : Source
    records : int
        Records looked at.
    cut : bool
        Whether the file has more.
    decimal : str
        Decimal mark.
    missing : str or None
        The mark that stands for missing values in text.
    columns : tuple of Column
        Columns with a name and single values; nested and binary ones are left out.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._engine = duckdb.connect()
        self._engine.execute("SET temp_directory = ''; SET enable_progress_bar = false")
        positions = [i for i, each in enumerate(source.schema) if each.name.strip() and _is_flat(each.type)]
        try:
            self._load(positions)
        except (pa.ArrowException, duckdb.Error, UnicodeError, OSError):
            raise InputRejected(
                f"{source.path.name} cannot be read to its end: a line has another number of fields than the "
                "header, its files differ, or it is cut off."
            ) from None
        self.cut = self._one("count(*)") > MOST_RECORDS
        self._engine.execute(f"DELETE FROM file WHERE rowid >= {MOST_RECORDS}")
        self.records = self._one("count(*)")
        self.missing = self._missing_mark(positions)
        self.decimal = self._decimal_mark(positions)
        self.columns = tuple(self._column(position) for position in positions)

    def __enter__(self) -> Profile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()

    def classes(self, columns: Sequence[Column], k: int, accepted: str = "true") -> tuple[int, int, int, int]:
        """Equivalence classes: how many, records in those below k, uniques, size of the smallest."""
        labels = ", ".join(column.label for column in columns) or "1"
        row = self._engine.execute(
            f"SELECT count(*), sum(n) FILTER (n < {k}), count(*) FILTER (n = 1), min(n) "
            f"FROM (SELECT count(*) AS n FROM file WHERE {accepted} GROUP BY {labels})"
        ).fetchone()
        assert row is not None
        classes, below, uniques, smallest = (int(value or 0) for value in row)
        return classes, below, uniques, smallest

    def accepting(self, numeric: Sequence[Column]) -> str:
        """Condition that none of these numbers is missing or out of bounds."""
        conditions = [f"coalesce({_finite(self._number(column))}, false)" for column in numeric]
        return " AND ".join(conditions) or "true"

    def count(self, condition: str) -> int:
        """Records for which a condition holds."""
        return self._one(f"count(*) FILTER ({condition})")

    def _load(self, positions: list[int]) -> None:
        labels = [f"c{position}" for position in positions]
        schema = pa.schema(
            [(label, self.source.schema.field(i).type) for label, i in zip(labels, positions, strict=True)]
        )
        reader = pa.RecordBatchReader.from_batches(schema, self.source.batches(positions))
        self._engine.register("reader", reader)
        columns = ", ".join(_as_loaded(label, schema.field(label).type) for label in labels)
        self._engine.execute(f"CREATE TABLE file AS SELECT {columns} FROM reader LIMIT {MOST_RECORDS + 1}")
        self._engine.unregister("reader")

    def _one(self, expression: str) -> int:
        row = self._engine.execute(f"SELECT {expression} FROM file").fetchone()
        assert row is not None
        return int(row[0] or 0)

    def _missing_mark(self, positions: list[int]) -> str | None:
        texts = [
            f"c{position}" for position in positions if _is_text(self.source.schema.field(position).type)
        ]
        seen = {
            mark: sum(self._one(f"count(*) FILTER ({label} = '{mark}')") for label in texts)
            for mark in MISSING_MARKS
        }
        mark = max(MISSING_MARKS, key=lambda each: seen[each])
        if not seen[mark]:
            return None
        for label in texts:
            self._engine.execute(f"UPDATE file SET {label} = NULL WHERE {label} = '{mark}'")
        return mark

    def _decimal_mark(self, positions: list[int]) -> str:
        """The comma where more columns are numbers with it than with the point."""
        if self.source.format == "parquet":
            return "."
        numeric = {}
        for mark in (".", ","):
            pattern = _NUMBER.format("[" + mark + "]")
            numeric[mark] = sum(
                self._one(f"bool_and(regexp_full_match(c{position}, '{pattern}'))::int")
                for position in positions
            )
        return "," if numeric[","] > numeric["."] else "."

    def _number(self, column: Column) -> str:
        return self._number_in(column.label, column.type)

    def _number_in(self, label: str, type: pa.DataType) -> str:
        """A number as DOUBLE, NULL where there is none; text is one in a CSV only."""
        if pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type):
            return f"CAST({label} AS DOUBLE)"
        if self.source.format == "parquet":
            return "NULL::DOUBLE"
        pattern = _NUMBER.format("[" + self.decimal + "]")
        number = f"TRY_CAST(replace(trim({label}), '{self.decimal}', '.') AS DOUBLE)"
        return f"CASE WHEN regexp_full_match({label}, '{pattern}') THEN {number} END"

    def _column(self, position: int) -> Column:
        entry = self.source.schema.field(position)
        label = f"c{position}"
        text = f"CAST({label} AS VARCHAR)"
        number = self._number_in(label, entry.type)
        dates = "true" if pa.types.is_temporal(entry.type) else f"regexp_full_match({text}, '{_DATE}')"
        words = f"length({text}) - length(replace({text}, ' ', '')) + 1"
        row = self._engine.execute(
            f"""SELECT count({label}), count(DISTINCT {label}), count({number}),
            count(*) FILTER (regexp_full_match({text}, '{_WHOLE}')),
            count({label}) FILTER ({dates}),
            count(*) FILTER (regexp_full_match({text}, '^0[0-9]+$')),
            count(*) FILTER ({number} > 0), count(*) FILTER ({_finite(number)}),
            min(length({text})), max(length({text})), avg({words}) FROM file"""
        ).fetchone()
        assert row is not None
        counts = [int(value or 0) for value in row[:10]]
        return Column(
            name=entry.name,
            label=label,
            type=entry.type,
            present=counts[0],
            distinct=counts[1],
            numbers=counts[2],
            whole=counts[3],
            dates=counts[4],
            zero_led=counts[5],
            positive=counts[6],
            finite=counts[7],
            widths=(counts[8], counts[9]),
            words=float(row[10] or 0),
        )


def _finite(number: str) -> str:
    return f"isfinite({number}) AND abs({number}) <= {LARGEST_NUMBER}"


def _is_text(type: pa.DataType) -> bool:
    return pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type)


def _is_flat(type: pa.DataType) -> bool:
    if pa.types.is_dictionary(type):
        return _is_text(type.value_type)
    number = pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)
    time = pa.types.is_date(type) or pa.types.is_timestamp(type)
    return number or time or _is_text(type) or pa.types.is_boolean(type)


def _as_loaded(label: str, type: pa.DataType) -> str:
    """NaN is missing, as in a run; a category is its text."""
    if pa.types.is_floating(type):
        return f"CASE WHEN isnan({label}) THEN NULL ELSE {label} END AS {label}"
    return f"CAST({label} AS VARCHAR) AS {label}" if pa.types.is_dictionary(type) else label
