"""Staging area in a folder that all machines of a cluster reach under the same path."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow.parquet as pq
from microguard.pipelines.engine.files import HashedFile, checksum, in_threads, private_folder
from microguard.pipelines.engine.frames import exact_paths
from microguard.pipelines.engine.tasks import in_tasks, in_threads_or_tasks
from microguard.pipelines.publication.staging.staging_area import Item, Part
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

#: Maximum number of bytes that driver threads hash (1.4 GB/s each) within 2 s, the time of a Spark job of a
#: few tasks.
IN_THREADS = 2**33


@dataclass(frozen=True)
class FolderStagingArea:
    """Staging area in a folder; see `StagingArea`. A frame is a subfolder of Parquet files."""

    folder: Path

    def write(self, frame: DataFrame, name: str, compression: str | None = None) -> None:
        """Write a frame with Spark."""
        writer = frame.write.mode("overwrite")
        if compression is not None:
            writer = writer.option("compression", compression)
        writer.parquet(str(self.folder / name))

    def read(self, spark: SparkSession, name: str, schema: StructType | None = None) -> DataFrame:
        """Read a frame with Spark."""
        reader = exact_paths(spark)
        return (reader if schema is None else reader.schema(schema)).parquet(str(self.folder / name))

    def write_part(self, name: str, path: str, write: Callable[[BinaryIO], object]) -> Part:
        """Write a file to the frame's folder and hash it while writing."""
        written: list[Part] = []

        def hashed(file: BinaryIO) -> None:
            sink = HashedFile(file)
            write(cast(BinaryIO, sink))
            written.append(Part(path, size=sink.tell(), checksum=sink.checksum, path=path))

        self.save(f"{name}/{path}", hashed)
        return written[0]

    def commit_parts(self, name: str, parts: Sequence[Part], schema: StructType) -> None:
        """Remove all other files from the frame's folder, which killed tasks and runs may have left."""
        folder, names = self.folder / name, {part.name for part in parts}
        for path in folder.rglob("*"):
            if path.is_file() and path.relative_to(folder).as_posix() not in names:
                path.unlink()

    def parts(self, name: str) -> list[Part]:
        """Return the files of the frame's folder by name."""
        return [Part(path.name) for path in self._parquet(name)]

    def file(self, name: str, part: Part) -> Path:
        """Return the path of the part's file."""
        return self.folder / name / part.name

    def rows(self, name: str) -> int:
        """Return the sum of the record numbers in the footers of the files."""
        return sum(pq.read_metadata(path).num_rows for path in self._parquet(name))

    def checksums(self, spark: SparkSession, name: str) -> Mapping[str, str]:
        """Compute the checksums of the files in the folder; large files are hashed in tasks."""
        paths = self._parquet(name)
        small = sum(path.stat().st_size for path in paths) <= IN_THREADS
        computed = in_threads(_checksum, paths) if small else in_tasks(spark, _checksum, paths)
        return dict(zip([path.name for path in paths], computed, strict=True))

    def fetch(self, name: str) -> Path:
        """Return the frame's folder."""
        return self.folder / name

    def for_each(
        self, spark: SparkSession, function: Callable[[Item], Any], items: Sequence[Item]
    ) -> list[Any]:
        """Compute the results of several items in tasks."""
        return in_threads_or_tasks(spark, function, items)

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a hidden file, then rename it to its final name."""
        path = self.folder / name
        private_folder(path.parent)
        # different names, because two attempts of a task must not write the same file
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        with open(fresh, "wb") as file:
            write(file)
        fresh.replace(path)

    def open(self, name: str) -> BinaryIO:
        """Open a saved file."""
        return open(self.folder / name, "rb")

    def count(self, name: str) -> int:
        """Count the files that are not hidden."""
        return sum(1 for _ in (self.folder / name).glob("[!.]*"))

    def remove(self, name: str = "") -> None:
        """Remove a file or a folder."""
        path = self.folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def _parquet(self, name: str) -> list[Path]:
        return sorted((self.folder / name).glob("*.parquet"))


def _checksum(path: Path) -> str:
    try:
        return checksum(path)
    except FileNotFoundError:
        return ""
