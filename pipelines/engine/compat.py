"""Run on Spark 3.5 and newer: features that an older version lacks are added with the names of Spark 4.1.

The other modules call Spark 4.1 and do not check versions. `complete` adds missing methods to the classes of
pyspark and never replaces an existing method; with Spark 4.1 and newer it adds nothing. Functions of this
module replace features that cannot be added as methods.

| missing in | name | other way |
|---|---|---|
| 3.5 | `DataFrame.toArrow`, `SparkSession.createDataFrame` of an Arrow table | pyspark's own Arrow stream |
| 3.5 | `Column.try_cast`, `functions.is_valid_utf8`, `DataFrame.groupingSets` | expressions of 3.5 |
| 3.5 | `GroupedData.applyInArrow` | `apply_in_arrow`: sort by the keys, then `mapInArrow` |
| 3.5 | Spark Connect with Arrow | refused by name |
| 3.5, 4.0 | `DataFrame.repartitionById` | `repartition` by the hash of the number: tasks get other shares |
| 3.5, 4.0 | `functions.arrow_udf` | `of_texts` (a pandas UDF), `with_values` (`mapInArrow`) |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import distributions
from itertools import pairwise
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyspark
from microguard.schemas.errors import MicroguardError
from pyspark import accumulators
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

#: The oldest Spark version with which the tests run.
OLDEST = (3, 5)
ArrowFunction = Callable[..., pa.Array]
#: Looked up by name, because some versions lack these and declare other types.
_FUNCTIONS: Any = f
_SESSION: Any = SparkSession
_TYPES: Any = t


def spark_version() -> tuple[int, int]:
    """Return major and minor version of the installed pyspark."""
    major, minor = re.findall(r"\d+", pyspark.__version__)[:2]
    return int(major), int(minor)


def refuse_older() -> None:
    """Raise if pyspark is older than the oldest version that is tested."""
    if spark_version() < OLDEST:
        raise MicroguardError(
            f"pyspark: expected 3.5 or newer, found {pyspark.__version__}. Install a newer version, or "
            "choose a cluster with Spark 3.5 or newer."
        )


def refuse_connect(frame: Any) -> None:
    """Raise if a frame belongs to a Spark Connect session of a version that cannot return Arrow tables."""
    if spark_version() < (4, 0) and type(frame).__module__.startswith("pyspark.sql.connect"):
        raise MicroguardError(
            f"Spark Connect: expected Spark 4.0 or newer, found {pyspark.__version__}, which cannot return "
            "Arrow tables. Use a classic session, or upgrade Spark."
        )


def refuse_overlaid() -> None:
    """Raise if databricks-connect is installed next to pyspark, because it replaces files of pyspark."""
    if all(next(iter(distributions(name=name)), None) for name in ("pyspark", "databricks-connect")):
        raise MicroguardError(
            "pyspark: expected the files of one version, found also databricks-connect, which replaces some "
            "of them. Use an environment without databricks-connect, and install pyspark again there."
        )


def silence_pyspark() -> None:
    """Keep pyspark from writing query contexts and accumulator tracebacks to standard error."""
    for name in ("AccumulatorTCPServer", "AccumulatorServer"):  # names from 4.1 on and before
        if hasattr(accumulators, name):
            getattr(accumulators, name).handle_error = lambda *_: None
    if spark_version() >= (4, 0):
        from pyspark.logger import PySparkLogger

        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
            PySparkLogger.getLogger(name).disabled = True


def of_texts(function: ArrowFunction, kind: t.DataType) -> Callable[[Column], Column]:
    """Return a Spark function of one text column; `function` maps an Arrow array of texts to one of `kind`.

    The function is for texts only: without `arrow_udf` the values pass through pandas, which has no missing
    integers.
    """
    if hasattr(f, "arrow_udf"):
        return cast(Callable[[Column], Column], _FUNCTIONS.arrow_udf(function, kind))

    import pandas as pd  # a quarter of a second, which would slow down each start of Java

    def by_pandas(texts: Any) -> Any:
        return pd.Series(function(pa.array(texts, pa.string())).to_pylist(), dtype=object)

    by_pandas.__annotations__ = {"texts": pd.Series, "return": pd.Series}  # pyspark reads these annotations
    return cast(Callable[[Column], Column], _FUNCTIONS.pandas_udf(by_pandas, kind))


def with_values(
    frame: DataFrame, name: str, function: ArrowFunction, kind: t.DataType, arguments: Sequence[Column]
) -> DataFrame:
    """Add a column: `function` maps Arrow arrays of the arguments to one of `kind`."""
    if hasattr(f, "arrow_udf"):
        added: Column = _FUNCTIONS.arrow_udf(function, kind)(*arguments)
        return frame.withColumn(name, added)
    given = [argument.alias(f"__argument{position}") for position, argument in enumerate(arguments)]
    whole = frame.drop(name).select("*", *given)
    names = whole.columns[: -len(given)]
    fields = [*(whole.schema[each] for each in names), t.StructField(name, kind)]
    arrow = to_arrow_schema(t.StructType(fields))

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = batch.columns
            value = function(*columns[len(names) :])
            yield pa.RecordBatch.from_arrays([*columns[: len(names)], value], schema=arrow)

    numbered = whole.toDF(*[f"c{position}" for position in range(len(whole.columns))])
    return numbered.mapInArrow(task, t.StructType(fields))


def apply_in_arrow(
    frame: DataFrame,
    keys: Sequence[str],
    function: Callable[[pa.Table], pa.Table],
    schema: t.StructType | str,
) -> DataFrame:
    """Call `groupBy(*keys).applyInArrow`; without it, sort partitions by the keys and split them."""
    grouped = frame.groupBy(*keys)
    if hasattr(grouped, "applyInArrow"):
        return grouped.applyInArrow(function, schema)
    positions = [frame.columns.index(key) for key in keys]
    names = frame.columns

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for group in _groups(batches, positions):
            yield from function(group.rename_columns(names)).combine_chunks().to_batches()

    numbered = frame.toDF(*[f"c{position}" for position in range(len(names))])
    by = [f.col(f"c{position}") for position in positions]
    return numbered.repartition(*by).sortWithinPartitions(*by).mapInArrow(task, schema)


def _groups(batches: Iterable[pa.RecordBatch], positions: Sequence[int]) -> Iterator[pa.Table]:
    """Split consecutive batches at each change of a key; null equals null."""
    pieces: list[pa.RecordBatch] = []
    last: list[Any] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        first = [batch.column(position)[0].as_py() for position in positions]
        if pieces and first != last:
            yield pa.Table.from_batches(pieces)
            pieces = []
        *whole, rest = _runs(batch, positions)
        for run in whole:
            yield pa.Table.from_batches([*pieces, run])
            pieces = []
        pieces.append(rest)
        last = [rest.column(position)[0].as_py() for position in positions]
    if pieces:
        yield pa.Table.from_batches(pieces)


def _runs(batch: pa.RecordBatch, positions: Sequence[int]) -> list[pa.RecordBatch]:
    """Return the runs of rows with equal keys."""
    changes = pa.array([False] * (batch.num_rows - 1), pa.bool_())
    for position in positions:
        before, after = batch.column(position)[:-1], batch.column(position)[1:]
        missing = pc.xor(pc.is_null(before), pc.is_null(after))
        changes = pc.or_(changes, pc.or_(missing, pc.fill_null(pc.not_equal(before, after), False)))
    starts = [0, *(row + 1 for row, changed in enumerate(changes.to_pylist()) if changed), batch.num_rows]
    return [batch.slice(start, end - start) for start, end in pairwise(starts)]


def complete() -> None:
    """Add the names of Spark 4.1 that the installed pyspark lacks."""
    refuse_older()
    for owner, name, other in (
        (DataFrame, "toArrow", _to_arrow),
        (DataFrame, "groupingSets", _grouping_sets),
        (DataFrame, "repartitionById", DataFrame.repartition),
        (Column, "try_cast", _try_cast),
        (f, "is_valid_utf8", _is_valid_utf8),
        (PySparkException, "getCondition", getattr(PySparkException, "getErrorClass", None)),
    ):
        if not hasattr(owner, name):
            setattr(owner, name, other)
    if spark_version() < (4, 0):
        _create_from_arrow_tables()


def _to_arrow(frame: Any) -> pa.Table:
    schema = to_arrow_schema(frame.schema)
    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def _create_from_arrow_tables() -> None:
    """Make `SparkSession.createDataFrame` accept Arrow tables."""
    others = _SESSION.createDataFrame
    if getattr(others, "takes_arrow", False):
        return

    def create(spark: SparkSession, data: Any, *arguments: Any, **named: Any) -> DataFrame:
        if isinstance(data, pa.Table):
            return _from_arrow_table(spark, data)
        return cast(DataFrame, others(spark, data, *arguments, **named))

    replacement: Any = create
    replacement.takes_arrow = True
    _SESSION.createDataFrame = replacement


def _from_arrow_table(spark: Any, table: pa.Table) -> DataFrame:
    """Send an Arrow table to the JVM, as pyspark 4.0 does."""
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer
    from pyspark.sql.pandas.types import from_arrow_schema

    jvm: Any = spark._jvm
    schema = from_arrow_schema(table.schema)
    batches = table.cast(to_arrow_schema(schema)).to_batches()
    if not batches:
        return cast(DataFrame, spark.createDataFrame([], schema))
    stream = spark._sc._serialize_to_jvm(
        batches,
        ArrowStreamSerializer(),
        jvm.PythonSQLUtils.readArrowStreamFromFile,
        jvm.ArrowIteratorServer,
    )
    frame = jvm.PythonSQLUtils.toDataFrame(stream, schema.json(), spark._jsparkSession)
    made: Any = DataFrame
    return cast(DataFrame, made(frame, spark))


def _try_cast(value: Any, kind: t.DataType | str) -> Column:
    """Build the expression of ``try_cast(value as kind)``."""
    spark = _SESSION.getActiveSession() or _SESSION._instantiatedSession
    java, expressions = spark._jvm.org.apache.spark.sql, spark._jvm.org.apache.spark.sql.catalyst.expressions
    if isinstance(kind, str):
        kind = cast(t.DataType, _TYPES._parse_datatype_string(kind))
    expression = expressions.Cast(
        value._jc.expr(),
        spark._jsparkSession.parseDataType(kind.json()),
        spark._jvm.scala.Option.empty(),
        expressions.EvalMode.TRY(),
    )
    made: Any = Column
    return cast(Column, made(java.Column(expression)))


def _is_valid_utf8(text: Column) -> Column:
    """Return whether bytes are valid UTF-8: they equal those of the decoded text."""
    content = text.cast("binary")
    return f.encode(f.decode(content, "UTF-8"), "UTF-8") == content


class _Sets:
    """Result of `groupingSets`: rows repeated for each set; columns outside the set are null."""

    def __init__(self, frame: DataFrame, sets: Sequence[Sequence[Column]], labels: Sequence[str]) -> None:
        self._labels = labels
        self._keys = [f"__key{position}" for position in range(len(labels))]
        held = [{_name(each) for each in chosen} for chosen in sets]
        repeated = frame.withColumn("__set", f.explode(f.array(*map(f.lit, range(len(held))))))
        keys = []
        for label, key in zip(labels, self._keys, strict=True):
            of_sets = [number for number, names in enumerate(held) if label in names]
            keys.append(f.when(f.col("__set").isin(of_sets), f.col(label)).alias(key))
        self._rows = repeated.select("*", *keys)

    def agg(self, *aggregates: Column) -> DataFrame:
        """Compute the aggregates per set and key."""
        counted = self._rows.groupBy("__set", *self._keys).agg(*aggregates).drop("__set")
        return counted.withColumnsRenamed(dict(zip(self._keys, self._labels, strict=True)))


def _grouping_sets(frame: DataFrame, sets: Sequence[Sequence[Column]], *labels: str) -> _Sets:
    return _Sets(frame, sets, labels)


def _name(column: Any) -> str:
    """Return the name of a plain column."""
    return str(column._jc.toString())
