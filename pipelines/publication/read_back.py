"""Verify the promise on the files as they were written, by counts that share nothing with the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.engine.row_hash import ROWS, contents, contents_in, hash_sums
from pipelines.publication.record_files.batches import record_batches
from pipelines.publication.record_files.csv_file import CSV, holds
from pipelines.publication.stage import Staged
from schemas.requirements.requirement import MetricKey
from schemas.specification.model import Specification

_UNITS, _CLASSES = "__units", "__classes"


@dataclass(frozen=True)
class Written:
    """What the files of a staged release say.

    Attributes
    ----------
    records : int
    smallest_class, median_class, classes : dict of clustering name to int or float
        Least and median number of records that share a combination of its quasi-identifiers and the region;
        number of such combinations.
    fewest_households : dict of clustering name to int
        Where k counts households: least number of them in such a class. They are not published, so this is
        counted on the protected records, which the files hold where `as_staged`.
    as_staged : bool
        Whether the files hold exactly the records that were handed to the stage, the CSV file too.
    as_declared : bool
        Whether every file has exactly the columns and types of the contract.
    others_as_read : bool
        Whether the columns that protection does not touch hold, record by record, what the input holds.
    """

    records: int
    smallest_class: dict[str, int]
    median_class: dict[str, float]
    classes: dict[str, int]
    fewest_households: dict[str, int]
    as_staged: bool
    as_declared: bool
    others_as_read: bool

    def metrics(self) -> dict[MetricKey, float]:
        """What the gate asks of the written files (`schemas.requirements.records`)."""
        counted = {"smallest_class": self.smallest_class, "fewest_households": self.fewest_households}
        classes = {
            MetricKey(metric, name): float(least)
            for metric, by_clustering in counted.items()
            for name, least in by_clustering.items()
        }
        return classes | {
            MetricKey("content_as_staged"): float(self.as_staged),
            MetricKey("columns_as_declared"): float(self.as_declared),
            MetricKey("others_as_read"): float(self.others_as_read),
        }


def verify_written(
    spark: SparkSession,
    staged: Staged,
    original: DataFrame | None,
    protected: DataFrame,
    specification: Specification,
) -> Written:
    """Read the staged files back and count, and compare what is published as it is with `original`.

    `protected` holds what was staged, with the household beside it. Where there is no `original`, what was
    staged is what was read, and the files hold it where they are `as_staged`.

    NULL, NaN and -0.0 are counted as Spark groups them (each its own value; -0.0 is 0.0); texts are
    compared byte by byte, so that two Unicode forms of a text are two values here as in the method.
    """
    frame = staged.records(spark)
    others = [name for name in staged.contract.names if name in specification.published_as_it_is]
    smallest, median, classes, households = {}, {}, {}, {}
    counted: tuple[tuple[int, int], ...] = ()
    for clustering in specification.clusterings:
        keys = [column(name) for name in clustering.variables]
        if specification.region is not None:
            keys.append(column(specification.region))
        name = clustering.name
        of = () if counted else (frame.columns, others)  # once, beside the classes of the first clustering
        sizes = _sizes(frame, keys, f.count(f.lit(1)), *of)
        smallest[name], median[name], classes[name] = sizes.least, sizes.median, sizes.classes
        counted = counted or sizes.contents
        if specification.counted is not None:
            distinct = f.count_distinct(column(specification.counted))
            households[name] = _sizes(protected, keys, distinct).least
    written, written_others = counted
    declared = [(entry.name, entry.type) for entry in staged.contract.of_files]
    as_staged = written == staged.content and _csv_holds(staged)
    if original is None:
        others_as_read = as_staged
    else:
        others_as_read = not others or contents(original, others) == (written_others,)
    as_declared = all(
        [(entry.name, entry.type) for entry in pq.read_schema(path)] == declared for path in staged.microdata
    )
    return Written(
        records=written[0],
        smallest_class=smallest,
        median_class=median,
        classes=classes,
        fewest_households=households,
        as_staged=as_staged,
        as_declared=as_declared and bool(staged.microdata),
        others_as_read=others_as_read,
    )


def _csv_holds(staged: Staged) -> bool:
    """Whether the CSV file, where there is to be one, has the records of the others in their order."""
    contract = staged.contract
    batches = record_batches(staged.microdata, contract)
    return not contract.csv or holds(staged.folder / CSV, batches, contract.plain)


@dataclass(frozen=True)
class _Sizes:
    """Least and median number of units that share a combination; how many combinations; `contents`."""

    least: int
    median: float
    classes: int
    contents: tuple[tuple[int, int], ...]


def _sizes(frame: DataFrame, keys: list[Column], units: Column, *of: Sequence[str]) -> _Sizes:
    """The combinations of the keys, and in the same pass the contents of lists of columns.

    Combinations are counted by their size: of n records there are fewer sizes than the root of 2n.
    """
    sums = {ROWS: f.count(f.lit(1)).alias(ROWS), **hash_sums(*of)} if of else {}
    by_size = (
        frame.groupBy(*keys)
        .agg(units.alias(_UNITS), *sums.values())
        .groupBy(_UNITS)
        .agg(f.count(f.lit(1)).alias(_CLASSES), *[f.sum(name).alias(name) for name in sums])
        .toArrow()
        .sort_by(_UNITS)
    )
    sizes, classes = by_size[_UNITS].to_numpy(), by_size[_CLASSES].to_numpy()
    row = {name: sum(by_size[name].to_pylist()) for name in sums}
    return _Sizes(
        int(sizes[0]) if len(sizes) else 0,
        _median(sizes, classes),
        int(classes.sum()),
        contents_in(row, len(of)),
    )


def _median(sizes: np.ndarray, classes: np.ndarray) -> float:
    """Of sizes in order that so many classes have, each; 0 where there are none."""
    if len(sizes) == 0:
        return 0.0
    until, last = np.cumsum(classes), classes.sum() - 1
    middle = sizes[np.searchsorted(until, [last // 2, (last + 1) // 2], side="right")]
    return float(middle.mean())
