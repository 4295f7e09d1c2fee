"""Records of a release, written to one folder for each region (`partitions`)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.frames import tasks_at_once
from microguard.pipelines.engine.row_hash import HASH, summed, with_hash
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.publication.record_files.partitions import partition_folder, require_partitions
from microguard.pipelines.publication.staging.staging_area import StagingArea, part_file
from microguard.pipelines.publication.staging.task_frames import WrittenParts, write_parts_in_tasks
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

_FILE, _FILES, _OF_REGION, _RECORDS = "__file", "__files", "__of_region", "__records"


def write_partitions(
    place: StagingArea, frame: DataFrame, name: str, contract: Contract, records: int, most: int
) -> WrittenParts:
    """Write files of at most about `most` records of one region each; return the report text of each part.

    As in files without folders, rows are distributed and ordered by a hash of the published row alone,
    independently of the number of tasks.

    Raises
    ------
    InputRejected
        If a region cannot be the name of a folder.
    """
    region = contract.partition_by
    assert region is not None
    counted = frame.groupBy(column(region)).agg(f.count(f.lit(1)).alias(_RECORDS)).toArrow()
    regions = counted[region].to_pylist()
    require_partitions(region, regions)
    files = {
        value: math.ceil(number / most)
        for value, number in zip(regions, counted[_RECORDS].to_pylist(), strict=True)
    }
    tasks = min(sum(files.values()), max(math.ceil(records / most), tasks_at_once(frame.sparkSession)))
    keys = [column(region), f.col(_FILE)]
    ordered = (
        with_hash(_with_files(frame, region, files), contract.names)
        .withColumn(_FILE, f.pmod(f.col(HASH), f.coalesce(f.col(_FILES), f.lit(1))).cast("int"))
        .drop(_FILES)
        .repartition(max(1, tasks), *keys)
        .sortWithinPartitions(*keys, HASH, *[column(each) for each in contract.names])
    )
    task = partial(_encode, contract=contract)
    return write_parts_in_tasks(place, ordered, name, task, frame.schema)


def _with_files(frame: DataFrame, region: str, files: Mapping[str | int, int]) -> DataFrame:
    """Add the number of files of a record's region if there are several; no query plan contains a region."""
    several = {value: number for value, number in files.items() if number > 1}
    if not several:
        return frame.withColumn(_FILES, f.lit(1))
    table = pa.table({_OF_REGION: list(several), _FILES: list(several.values())})
    known = f.broadcast(frame.sparkSession.createDataFrame(table))
    return frame.join(known, f.col(_OF_REGION) == column(region), how="left").drop(_OF_REGION)


def _encode(
    batches: Iterable[pa.RecordBatch], contract: Contract
) -> Iterator[tuple[str, Iterator[tuple[pa.Table, str]]]]:
    """Write the files of a task's regions without the region column; return count and hash sum of each."""
    region = contract.partition_by
    assert region is not None
    for table in _runs(batches, (region, _FILE)):
        path = f"{partition_folder(region, table[region][0].as_py())}/{part_file(table[_FILE][0].as_py())}"
        said = json.dumps([len(table), summed(table[HASH].to_numpy())])
        yield path, iter([(encoded(table, contract.file_schema, contract.categories), said)])


def _runs(batches: Iterable[pa.RecordBatch], keys: tuple[str, ...]) -> Iterator[pa.Table]:
    """Split batches of any sizes into runs of consecutive records with equal keys."""
    waiting: list[pa.RecordBatch] = []
    for batch in filter(len, batches):
        changes = np.zeros(len(batch) - 1, bool)
        for key in keys:
            changes |= pc.not_equal(batch[key][1:], batch[key][:-1]).to_numpy(zero_copy_only=False)
        cuts = [0, *(np.flatnonzero(changes) + 1), len(batch)]
        for start, end in pairwise(cuts):
            part = batch.slice(start, end - start)
            if waiting and any(part[key][0] != waiting[0][key][0] for key in keys):
                yield pa.Table.from_batches(waiting)
                waiting = []
            waiting.append(part)
    if waiting:
        yield pa.Table.from_batches(waiting)


def encoded(table: pa.Table, schema: pa.Schema, categories: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Convert Spark records to the types of the contract, without metadata of other programs."""
    arrays = [_typed(table[entry.name], entry.type, categories.get(entry.name)) for entry in schema]
    plain = pa.schema([pa.field(entry.name, entry.type, entry.nullable) for entry in schema])
    return pa.table(arrays, schema=plain)


def _typed(array: pa.ChunkedArray, kind: pa.DataType, order: Sequence[Any] | None) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(kind):
        return array.cast(kind)
    values = array.cast(kind.value_type).combine_chunks()
    occurring = values.unique().drop_null()
    if order is None:
        categories = occurring.sort()
    else:
        present = set(occurring.to_pylist())
        categories = pa.array([value for value in order if value in present], kind.value_type)
    codes = pc.index_in(values, value_set=categories).cast(kind.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, categories, ordered=kind.ordered)])
