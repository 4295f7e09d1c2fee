"""The transition matrix: a value is kept, or drawn from the distribution of its variable.

The matrix p I + (1 - p) 1 f', with the frequencies f, is invariant: f' P = f', so that expected frequencies
are those of the original file.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Hexadecimal digits of a draw: as many bits as a float has.
_DIGITS = 13


def perturbed(frame: DataFrame, variable: Column, stay: float, record: Column, key: str) -> Column:
    """Return the perturbed variable: the draw of a record depends only on its content and the key."""
    counts = frame.groupBy(variable.alias("value")).count().orderBy("value").collect()
    records, limits, passed = sum(row["count"] for row in counts), [], 0
    for row in counts[:-1]:
        passed += row["count"]
        limits.append(passed / records)
    drawn = _category([row["value"] for row in counts], limits, _uniform(record, f"{key} category"))
    return f.when(_uniform(record, f"{key} stay") < stay, variable).otherwise(drawn)


def _uniform(record: Column, key: str) -> Column:
    """Return a number in [0, 1) that is unpredictable without the key."""
    digest = f.substring(f.sha2(f.concat(f.lit(key), record), 256), 1, _DIGITS)
    return f.conv(digest, 16, 10).cast("double") / 16.0**_DIGITS


def _category(values: Sequence[object], limits: Sequence[float], uniform: Column) -> Column:
    """Return the category whose interval contains the draw."""
    category = f.lit(values[-1])
    for value, limit in reversed(list(zip(values, limits, strict=False))):
        category = f.when(uniform < limit, f.lit(value)).otherwise(category)
    return category
