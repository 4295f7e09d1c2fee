"""A staging area in an object store: tasks put their partitions there and fetch those of others.

A task puts its partition as one object under a name that nobody uses again, and answers with the name and the
checksum of what it put. The driver then puts one object that names the parts that count: what a task that was
tried again, a second copy of a slow one, or a killed run left is never read. Every part is compared with its
checksum by whoever fetches it. No connector of Spark's is needed; endpoint and credentials are those of the
environment that the tasks run in, and no part of what travels to them.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.files import parse_json, private_folder
from microguard.pipelines.engine.parallelism import tasks_at_once
from microguard.pipelines.engine.tasks import in_tasks
from microguard.pipelines.publication.record_files.partitions import partition_of
from microguard.pipelines.publication.staging.staging_area import Part
from microguard.pipelines.publication.staging.task_frames import write_in_tasks
from microguard.pipelines.publication.store import connection
from microguard.pipelines.publication.store.faults import StoreDamaged
from obstore.store import ObjectStore
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

#: Bytes that a task fetches, unless a part is larger: no more, so that it can be tried again; and no fewer,
#: as a task costs more than so much. Between them all tasks get as much. Spark's for files.
MOST_BYTES, LEAST_BYTES = 2**27, 2**22
#: Records of an Arrow batch.
ROWS = 50_000
_PLACE = "evidence area"
_DAMAGED = (
    "A part of what this run wrote to the object store of the evidence area is not there, or is not what was "
    "written. Nothing was published. Look at who writes there, and call this again."
)


@dataclass(frozen=True)
class StoreStagingArea:
    """Everything below a prefix of a store; see `StagingArea`.

    Attributes
    ----------
    address : str
        Of the store.
    prefix : str
    folder : Path
    """

    address: str
    prefix: str
    folder: Path

    def write(self, frame: DataFrame, name: str, compression: str | None = None) -> None:
        """Each task puts its partition; then the list of them is put."""

        write_in_tasks(self, frame, name, _as_they_are, frame.schema, compression or "zstd")

    def read(self, spark: SparkSession, name: str, schema: t.StructType | None = None) -> DataFrame:
        """Tasks fetch the parts of the list."""
        content = self._list(name)
        written = t.StructType.fromJson(content["schema"])
        return fetched(spark, self.address, _parts(content), schema or written)

    def write_part(self, name: str, path: str, write: Callable[[BinaryIO], object]) -> Part:
        """Put a part; its path is in the list alone."""
        sink = io.BytesIO()
        write(sink)
        return replace(self._put(name, sink.getbuffer(), pq.read_metadata(sink).num_rows), path=path)

    def commit_parts(self, name: str, parts: Sequence[Part], schema: t.StructType) -> None:
        """Put the list of the parts."""
        content = {"schema": schema.jsonValue(), "parts": [asdict(part) for part in parts]}
        with connection.asked(_PLACE):
            obstore.put(_store(self.address), self._list_name(name), json.dumps(content).encode())

    def parts(self, name: str) -> list[Part]:
        """As the list names them."""
        return _parts(self._list(name))

    def file(self, name: str, part: Part) -> pa.NativeFile:
        """Its content, compared."""
        return pa.BufferReader(_content(self.address, part))

    def rows(self, name: str) -> int:
        """As the list has them."""
        return sum(part.rows for part in self.parts(name))

    def checksums(self, spark: SparkSession, name: str) -> Mapping[str, str]:
        """Of what the store gives to tasks, which is what was written."""
        names, written = zip(*((part.name, part.checksum) for part in self.parts(name)), strict=True)
        found = in_tasks(spark, partial(_checksum, self.address), names)
        if found != list(written):
            raise StoreDamaged(_DAMAGED)
        return dict(zip(names, found, strict=True))

    def fetch(self, name: str) -> Path:
        """Fetch the parts into an empty folder."""
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)  # of a run that died
        private_folder(target)
        for part in self.parts(name):
            private_folder((target / part.path).parent)
            (target / part.path).write_bytes(_content(self.address, part))
        return target

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Put an object."""
        sink = io.BytesIO()
        write(sink)
        with connection.asked(_PLACE):
            obstore.put(_store(self.address), self._name(name), sink.getvalue())

    def open(self, name: str) -> BinaryIO:
        """The content of an object."""
        with connection.asked(_PLACE):
            return io.BytesIO(bytes(obstore.get(_store(self.address), self._name(name)).bytes()))

    def count(self, name: str) -> int:
        """Objects below the name."""
        with connection.asked(_PLACE):
            return len(connection.names(_store(self.address), f"{self._name(name)}/"))

    def remove(self, name: str = "") -> None:
        """Delete an object, a list, and all below the name."""
        store = _store(self.address)
        with connection.asked(_PLACE):
            alone = [self._name(name), self._list_name(name)] if name else []
            for each in [*alone, *connection.names(store, f"{self._name(name)}/")]:
                with suppress(FileNotFoundError):
                    obstore.delete(store, each)

    def _put(self, name: str, content: memoryview, rows: int) -> Part:
        part = Part(
            f"{self._name(name)}/{secrets.token_hex(16)}.parquet",
            rows,
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
        with connection.asked(_PLACE):
            obstore.put(_store(self.address), part.name, content)
        return part

    def _list(self, name: str) -> dict[str, Any]:
        with self.open(f"{name}.parts.json") as file:
            return parse_json(
                file.read(), f"The list of parts of {name}", "Call microguard clean, then this again."
            )

    def _name(self, name: str) -> str:
        return f"{self.prefix}/{name}" if name else self.prefix

    def _list_name(self, name: str) -> str:
        return self._name(f"{name}.parts.json")


def fetched(spark: SparkSession, address: str, parts: Sequence[Part], schema: t.StructType) -> DataFrame:
    """A frame of objects that tasks fetch from a store, each compared with its checksum.

    Spark takes it for as small as the list of its parts: joins are asked not to send all of it to every task.
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
                    for table in _tables(_content(address, part), partition_of(part.path), arrow.names):
                        yield from table.cast(arrow).combine_chunks().to_batches()

    return spark.range(len(shares), numPartitions=len(shares)).mapInArrow(task, schema).hint("merge")


def _tables(content: bytes, folder: Mapping[str, str], names: Sequence[str]) -> Iterator[pa.Table]:
    """Records of a part, and what its folder names, as text."""
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
    """Parts in their order, as one task after the other is to fetch them."""
    most = min(max(sum(part.size for part in parts) // tasks, LEAST_BYTES), MOST_BYTES)
    shares: dict[int, list[Part]] = {}
    for part, end in zip(parts, accumulate(part.size for part in parts), strict=True):
        shares.setdefault((end - part.size) // most, []).append(part)
    return list(shares.values())


def _parts(content: Mapping[str, Any]) -> list[Part]:
    return [Part(**each) for each in content["parts"]]


def _content(address: str, part: Part) -> bytes:
    try:
        with connection.asked(_PLACE):
            content = bytes(obstore.get(_store(address), part.name).bytes())
    except FileNotFoundError:
        content = b""
    if hashlib.sha256(content).hexdigest() != part.checksum:
        raise StoreDamaged(_DAMAGED)
    return content


def _checksum(address: str, name: str) -> str:
    try:
        with connection.asked(_PLACE):
            return connection.checksum_of(_store(address), name)[0]
    except FileNotFoundError:
        return ""


@lru_cache(maxsize=4)
def _store(address: str) -> ObjectStore:
    """Made once in a process: it keeps its connections."""
    return connection.connected(address, "evidence")
