"""Staging area of a run: a private place for unverified data that all its tasks can reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    """One Parquet file of a frame.

    Attributes
    ----------
    name : str
        Name of the file in the staging area.
    rows, size : int
        Records and bytes; 0 if the staging area does not need them.
    checksum : str
        SHA-256, hexadecimal; "" if the staging area does not need it.
    path : str
        Path to which `StagingArea.fetch` writes the file in the folder of the frame. Folder names may hold a
        column that the file lacks (`pipelines.publication.record_files.partitions`).
    """

    name: str
    rows: int = 0
    size: int = 0
    checksum: str = ""
    path: str = ""


#: Columns of a frame that contain the fields of `Part`.
PART_COLUMNS = [
    t.StructField("name", t.StringType()),
    t.StructField("rows", t.LongType()),
    t.StructField("size", t.LongType()),
    t.StructField("checksum", t.StringType()),
    t.StructField("path", t.StringType()),
]


class StagingArea(Protocol):
    """Frames and files of one run by name; it can be pickled and used in tasks.

    A frame is written by the tasks that compute it and read by other tasks. A file is written atomically.

    Attributes
    ----------
    folder : Path
        Private folder of this machine, to which `fetch` writes frames.
    """

    @property
    def folder(self) -> Path:
        """Return the private folder on this machine."""

    def write(self, frame: DataFrame, name: str, compression: str | None = None) -> None:
        """Write a frame; an existing frame of this name is replaced."""

    def read(self, spark: SparkSession, name: str, schema: t.StructType | None = None) -> DataFrame:
        """Read a frame; if `schema` is given, no file is opened to infer it.

        Raises
        ------
        StoreDamaged
            In the tasks, if a part differs from what was written.
        """

    def write_part(self, name: str, path: str, write: Callable[[BinaryIO], object]) -> Part:
        """Write one Parquet file in a task or in the driver; `commit_parts` combines such files to a
        frame.
        """

    def commit_parts(self, name: str, parts: Sequence[Part], schema: t.StructType) -> None:
        """Combine the written parts to a frame, in the given order."""

    def parts(self, name: str) -> list[Part]:
        """Return the parts of a frame, in order."""

    def file(self, name: str, part: Part) -> Path | pa.NativeFile:
        """Return the Parquet file of a part, for use in this process.

        Raises
        ------
        StoreDamaged
            If the file differs from what was written.
        """

    def rows(self, name: str) -> int:
        """Return the number of records of a frame."""

    def checksums(self, spark: SparkSession, name: str) -> Mapping[str, str]:
        """Compute the checksums of the Parquet files of a frame by name.

        Raises
        ------
        StoreDamaged
            If the staging area detects that a file differs from what was written.
        """

    def fetch(self, name: str) -> Path:
        """Return a folder on this machine that contains the Parquet files of a frame."""

    def for_each(
        self, spark: SparkSession, function: Callable[[Item], Any], items: Sequence[Item]
    ) -> list[Any]:
        """Return the results, in the order of items, of a function that reads and writes files of `folder`.

        The results of many items are computed in tasks if tasks can reach the folder: function and items are
        then pickled.
        """

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file atomically."""

    def open(self, name: str) -> BinaryIO:
        """Open a saved file.

        Raises
        ------
        FileNotFoundError
        """

    def count(self, name: str) -> int:
        """Count the saved files whose names begin with the given path."""

    def remove(self, name: str = "") -> None:
        """Remove a file or a frame and everything below its name; without a name, remove all content."""


def part_file(number: int) -> str:
    """Return the file name of a part in the folder of a frame."""
    return f"part-{number:05d}.parquet"
