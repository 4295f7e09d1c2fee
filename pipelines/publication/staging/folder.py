"""A staging area in a folder that this machine, and every machine of a cluster, reaches by one path."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq
from microguard.pipelines.engine.exact_paths import exact_paths
from microguard.pipelines.engine.files import checksum, private_folder
from microguard.pipelines.publication.staging.staging_area import Part
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


@dataclass(frozen=True)
class FolderStagingArea:
    """A folder; see `StagingArea`. A frame is a folder of Parquet files in it."""

    folder: Path

    def write(self, frame: DataFrame, name: str, compression: str | None = None) -> None:
        """Spark writes it."""
        writer = frame.write.mode("overwrite")
        if compression is not None:
            writer = writer.option("compression", compression)
        writer.parquet(str(self.folder / name))

    def read(self, spark: SparkSession, name: str, schema: StructType | None = None) -> DataFrame:
        """Spark reads it."""
        reader = exact_paths(spark)
        return (reader if schema is None else reader.schema(schema)).parquet(str(self.folder / name))

    def write_part(self, name: str, path: str, write: Callable[[BinaryIO], object]) -> Part:
        """A file below the frame's folder."""
        self.save(f"{name}/{path}", write)
        return Part(path, path=path)

    def commit_parts(self, name: str, parts: Sequence[Part], schema: StructType) -> None:
        """Remove what is in the folder beside the parts: tasks and runs that died may have left more."""
        folder, names = self.folder / name, {part.name for part in parts}
        for path in folder.rglob("*"):
            if path.is_file() and path.relative_to(folder).as_posix() not in names:
                path.unlink()

    def parts(self, name: str) -> list[Part]:
        """The files of its folder, by name."""
        return [Part(path.name) for path in self._parquet(name)]

    def file(self, name: str, part: Part) -> Path:
        """Its path."""
        return self.folder / name / part.name

    def rows(self, name: str) -> int:
        """As the files say at their ends."""
        return sum(pq.read_metadata(path).num_rows for path in self._parquet(name))

    def checksums(self, spark: SparkSession, name: str) -> Mapping[str, str]:
        """Of the files that are there."""
        return {path.name: checksum(path) for path in self._parquet(name)}

    def fetch(self, name: str) -> Path:
        """Its folder."""
        return self.folder / name

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write under another name, and rename."""
        path = self.folder / name
        private_folder(path.parent)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with open(fresh, "wb") as file:
            write(file)
        fresh.replace(path)

    def open(self, name: str) -> BinaryIO:
        """The file itself."""
        return open(self.folder / name, "rb")

    def count(self, name: str) -> int:
        """Files that are not hidden."""
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
