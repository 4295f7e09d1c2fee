"""A staging area in any storage: tasks write their partitions as parts, and a list names the valid parts.

A task writes its partition as one file under a unique name, and returns the name and the checksum. The driver
then writes one list of these parts. Files left by a repeated task, a second copy of a slow task or a killed
run are in no list and are never read. The reader of a part verifies its checksum. No Spark connector is
needed. Tasks take endpoint and credentials from the environment in which they run; these are not sent to
them.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import in_threads, parse_json, private_folder
from microguard.pipelines.engine.frames import tasks_at_once
from microguard.pipelines.engine.tasks import in_tasks
from microguard.pipelines.publication.record_files.partitions import partition_of
from microguard.pipelines.publication.staging.staging_area import Item, Part
from microguard.pipelines.publication.staging.task_frames import write_in_tasks
from microguard.pipelines.publication.storage.faults import StoreDamaged
from microguard.pipelines.publication.storage.storage import Storage
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

#: Maximum number of bytes that a task fetches (unless a part is larger), so that the task can be repeated,
#: and minimum, below which starting a task costs more than the task. Spark uses the same limits for files.
MOST_BYTES, LEAST_BYTES = 2**27, 2**22
#: Number of records in an Arrow batch.
ROWS = 50_000
_DAMAGED = (
    "A part of what this run wrote to the object store of the evidence area: expected the content that was "
    "written, found other content, or none. Nothing was published. Find out which other program writes "
    "there, and call this again."
)


@dataclass(frozen=True)
class PartListStagingArea:
    """A staging area below a prefix of a storage; see `StagingArea`.

    Attributes
    ----------
    storage : Storage
        The storage; it is pickled and sent with tasks.
    prefix : str
    folder : Path
    """

    storage: Storage
    prefix: str
    folder: Path

    def write(self, frame: DataFrame, name: str, compression: str | None = None) -> None:
        """Write each partition in its task; then write the list of the parts."""
        write_in_tasks(self, frame, name, _as_they_are, frame.schema, compression or "zstd")

    def read(self, spark: SparkSession, name: str, schema: t.StructType | None = None) -> DataFrame:
        """Read a frame whose tasks fetch the parts of the list."""
        content = self._list(name)
        written = t.StructType.fromJson(content["schema"])
        return fetched(spark, self.storage, _parts(content), schema or written)

    def write_part(self, name: str, path: str, write: Callable[[BinaryIO], object]) -> Part:
        """Write a part; only the list has the part's path in the frame."""
        sink = io.BytesIO()
        write(sink)
        content = sink.getbuffer()
        part = Part(
            f"{self._name(name)}/{secrets.token_hex(16)}.parquet",
            pq.read_metadata(sink).num_rows,
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
        self.storage.put(part.name, content)
        return replace(part, path=path)

    def commit_parts(self, name: str, parts: Sequence[Part], schema: t.StructType) -> None:
        """Write the list of the parts."""
        content = {"schema": schema.jsonValue(), "parts": [asdict(part) for part in parts]}
        self.storage.put(self._list_name(name), json.dumps(content).encode())

    def parts(self, name: str) -> list[Part]:
        """Return the parts in the list of a frame."""
        return _parts(self._list(name))

    def file(self, name: str, part: Part) -> pa.NativeFile:
        """Return the content of a part after verifying its checksum."""
        return pa.BufferReader(_content(self.storage, part))

    def rows(self, name: str) -> int:
        """Return the sum of the records of all parts in the list."""
        return sum(part.rows for part in self.parts(name))

    def checksums(self, spark: SparkSession, name: str) -> Mapping[str, str]:
        """Read the parts back in tasks, and compare their checksums with those of the list."""
        names, written = zip(*((part.name, part.checksum) for part in self.parts(name)), strict=True)
        read_back = in_tasks(spark, partial(_checksum, self.storage), names)
        if read_back != list(written):
            raise StoreDamaged(_DAMAGED)
        return dict(zip(names, read_back, strict=True))

    def fetch(self, name: str) -> Path:
        """Fetch the parts into an empty folder, several at a time."""
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)  # remove parts left by a run that died
        private_folder(target)

        def fetch(part: Part) -> None:
            private_folder((target / part.path).parent)
            (target / part.path).write_bytes(_content(self.storage, part))

        in_threads(fetch, self.parts(name))
        return target

    def for_each(
        self, spark: SparkSession, function: Callable[[Item], Any], items: Sequence[Item]
    ) -> list[Any]:
        """Compute the results in threads, because tasks cannot reach the folder."""
        return in_threads(function, items)

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file."""
        sink = io.BytesIO()
        write(sink)
        self.storage.put(self._name(name), sink.getbuffer())

    def open(self, name: str) -> BinaryIO:
        """Fetch a file."""
        found = self.storage.get(self._name(name))
        if found is None:
            raise FileNotFoundError(self._name(name))
        return io.BytesIO(found.content)

    def count(self, name: str) -> int:
        """Count the files below the name."""
        return len(self.storage.list_files(self._name(name)))

    def remove(self, name: str = "") -> None:
        """Delete a file, a list, and all files below the name."""
        alone = [self._name(name), self._list_name(name)] if name else []
        for each in [*alone, *self.storage.list_files(self._name(name))]:
            self.storage.delete(each)

    def _list(self, name: str) -> dict[str, Any]:
        with self.open(f"{name}.parts.json") as file:
            return parse_json(
                file.read(), f"The list of parts of {name}", "Call microguard clean, then this again."
            )

    def _name(self, name: str) -> str:
        return f"{self.prefix}/{name}" if name else self.prefix

    def _list_name(self, name: str) -> str:
        return self._name(f"{name}.parts.json")


def fetched(spark: SparkSession, storage: Storage, parts: Sequence[Part], schema: t.StructType) -> DataFrame:
    """Return a frame whose tasks fetch parts from a storage and verify the checksum of each.

    Spark would take the size of the list for the size of the frame. The hint keeps joins from broadcasting
    the whole frame to every task.
    """
    schema = t.StructType([t.StructField(each.name, each.dataType, True) for each in schema])
    if not parts:
        return spark.createDataFrame([], schema)
    shares = _shares(parts, tasks_at_once(spark))

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = to_arrow_schema(schema)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for part in shares[number]:
                    for table in _tables(_content(storage, part), partition_of(part.path), arrow.names):
                        yield from table.cast(arrow).combine_chunks().to_batches()

    return spark.range(len(shares), numPartitions=len(shares)).mapInArrow(task, schema).hint("merge")


def _tables(content: bytes, folder: Mapping[str, str], names: Sequence[str]) -> Iterator[pa.Table]:
    """Read the records of a part, and add the columns in its folder names, as text."""
    with pq.ParquetFile(pa.BufferReader(content)) as file:
        for records in file.iter_batches(ROWS, columns=[name for name in names if name not in folder]):
            table = pa.Table.from_batches([records])
            for name in set(folder) & set(names):
                table = table.append_column(name, pa.array([folder[name]] * len(records), pa.string()))
            yield table.select(names)


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, str]]:
    for batch in batches:
        yield pa.Table.from_batches([batch]), ""


def _shares(parts: Sequence[Part], tasks: int) -> list[list[Part]]:
    """Split parts, in order, into the shares of tasks."""
    most = min(max(sum(part.size for part in parts) // tasks, LEAST_BYTES), MOST_BYTES)
    shares: dict[int, list[Part]] = {}
    for part, end in zip(parts, accumulate(part.size for part in parts), strict=True):
        shares.setdefault((end - part.size) // most, []).append(part)
    return list(shares.values())


def _parts(content: Mapping[str, Any]) -> list[Part]:
    return [Part(**each) for each in content["parts"]]


def _content(storage: Storage, part: Part) -> bytes:
    found = storage.get(part.name)
    if found is None or hashlib.sha256(found.content).hexdigest() != part.checksum:
        raise StoreDamaged(_DAMAGED)
    return found.content


def _checksum(storage: Storage, name: str) -> str:
    try:
        return storage.checksum(name)[0]
    except FileNotFoundError:
        return ""
