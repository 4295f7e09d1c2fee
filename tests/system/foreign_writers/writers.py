"""Define the programs that write the corpus, each with its default settings and its own types."""

import importlib.util
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Writer:
    """A program that writes Parquet.

    Attributes
    ----------
    write : callable
        Writes a table to a file, with the session of the tests.
    lacks : set of str
        Types of the corpus that the program cannot write.
    needs : str
        Python module that the program needs.
    as_given : bool
        Whether the file is compared with the table that was written, because Arrow does not read it
        identically (calendars).
    """

    write: Callable
    lacks: frozenset[str] = frozenset()
    needs: str = "pyarrow"
    as_given: bool = False

    @property
    def installed(self):
        return importlib.util.find_spec(self.needs) is not None


def _pyarrow(table, path, _spark):
    pq.write_table(table, path)


def _pyarrow_int96(table, path, _spark):
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)


def _pyarrow_first_version(table, path, _spark):
    pq.write_table(
        table, path, version="1.0", store_schema=False, use_dictionary=False, store_decimal_as_integer=True
    )


def _frame(table):
    """Return a pandas frame with nullable integers."""
    import pandas as pd

    whole = {
        pa.type_for_alias(name.lower()): getattr(pd, f"{name}Dtype")()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    return table.to_pandas(types_mapper=whole.get)


def _pandas(table, path, _spark):
    _frame(table).to_parquet(path)


def _pandas_of_arrow(table, path, _spark):
    import pandas as pd

    table.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(path)


def _fastparquet(times):
    def write(table, path, _spark):
        _frame(table).to_parquet(path, engine="fastparquet", times=times)

    return write


def _polars(table, path, _spark):
    import polars

    polars.from_arrow(table).write_parquet(path)


def _duckdb(version):
    def write(table, path, _spark):
        with duckdb.connect() as engine:
            engine.register("given", table)
            engine.execute(f"COPY given TO '{path}' (FORMAT parquet, PARQUET_VERSION {version})")

    return write


#: Settings of a default Spark session, and of one that writes files for old readers.
_DEFAULTS = {"spark.sql.parquet.outputTimestampType": "INT96"}
_LEGACY = _DEFAULTS | {
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}


@contextmanager
def _settings(spark, chosen):
    before = {key: spark.conf.get(key, None) for key in chosen}
    for key, value in chosen.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def _spark(chosen):
    def write(table, path, spark):
        plain = pa.table(
            {
                name: column.combine_chunks().dictionary_decode()
                if pa.types.is_dictionary(column.type)
                else column
                for name, column in zip(table.column_names, table.columns, strict=True)
            }
        )
        with _settings(spark, chosen):
            spark.createDataFrame(plain).coalesce(1).write.parquet(str(path))

    return write


_OF_SPARK = frozenset({"float16", "text_view", "date64", "time", "time32", "decimal256", "nothing"})
_OF_SPARK |= {"uint8", "uint16", "uint32", "uint64", "nanoseconds", "instant_nanoseconds"}
_OF_DUCKDB = frozenset({"float16", "duration", "decimal256"})
_OF_FASTPARQUET = frozenset({"date", "date64", "time", "time32", "list"})

WRITERS = {
    "Spark": Writer(_spark(_DEFAULTS), _OF_SPARK),
    "Spark in legacy mode": Writer(_spark(_LEGACY), _OF_SPARK, as_given=True),
    "DuckDB": Writer(_duckdb("V2"), _OF_DUCKDB),
    "pandas by pyarrow": Writer(_pandas),
    "pandas by fastparquet, INT96": Writer(_fastparquet("int96"), _OF_FASTPARQUET, "fastparquet"),
    "polars": Writer(_polars, frozenset({"decimal256"}), "polars"),
    "pyarrow, INT96": Writer(_pyarrow_int96),
}
#: Further settings of the same programs, for the long run.
FURTHER = {
    "DuckDB, first version": Writer(_duckdb("V1"), _OF_DUCKDB),
    "pandas with Arrow types": Writer(_pandas_of_arrow),
    "pandas by fastparquet": Writer(_fastparquet("int64"), _OF_FASTPARQUET, "fastparquet"),
    "pyarrow": Writer(_pyarrow),
    "pyarrow, first version": Writer(_pyarrow_first_version),
}
