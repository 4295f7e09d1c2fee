"""What a staging area is: a private place that the tasks of a run reach, for what nobody has verified yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t


@dataclass(frozen=True)
class Part:
    """One Parquet file of a frame.

    Attributes
    ----------
    name : str
        Where the place has it.
    rows, size : int
        Records and bytes; 0 where the place need not know.
    checksum : str
        SHA-256, hexadecimal; empty where the place need not know.
    path : str
        Where `bring` puts it in the folder of the frame. Its folders may name a column that the file lacks
        (`pipelines.publication.record_files.partitions`).
    """

    name: str
    rows: int = 0
    size: int = 0
    checksum: str = ""
    path: str = ""


#: The same as columns of a frame.
PART_COLUMNS = [
    t.StructField("name", t.StringType()),
    t.StructField("rows", t.LongType()),
    t.StructField("size", t.LongType()),
    t.StructField("checksum", t.StringType()),
    t.StructField("path", t.StringType()),
]


class StagingArea(Protocol):
    """Frames and files of one run, by name; it travels with tasks, which write and read there themselves.

    A frame is written by its tasks and read by others. A file is written whole or not at all.

    Attributes
    ----------
    folder : Path
        Of this machine, private: where `bring` puts frames.
    """

    @property
    def folder(self) -> Path:
        """Of this machine."""

    def write(self, frame: DataFrame, name: str, compression: str | None = None) -> None:
        """Write a frame in place of what had its name."""

    def read(self, spark: SparkSession, name: str, schema: t.StructType | None = None) -> DataFrame:
        """A frame that was written; with `schema` no file is opened to infer one.

        Raises
        ------
        StoreDamaged
            By its tasks, where a part is not what was written.
        """

    def write_part(self, name: str, path: str, write: Callable[[BinaryIO], object]) -> Part:
        """Write one Parquet file of a frame, in a task or here; it counts once it is gathered."""

    def commit_parts(self, name: str, parts: Sequence[Part], schema: t.StructType) -> None:
        """Make a frame of the parts that were put, in this order."""

    def parts(self, name: str) -> list[Part]:
        """The parts of a frame, in order."""

    def file(self, name: str, part: Part) -> Path | pa.NativeFile:
        """The Parquet file of a part of a frame, for this process.

        Raises
        ------
        StoreDamaged
            Where it is not what was written.
        """

    def rows(self, name: str) -> int:
        """Records of a frame."""

    def checksums(self, spark: SparkSession, name: str) -> Mapping[str, str]:
        """Checksums of the Parquet files of a frame as they are now, by name.

        Raises
        ------
        StoreDamaged
            Where the place knows that one is not what was written.
        """

    def fetch(self, name: str) -> Path:
        """A folder of this machine with the Parquet files of a frame."""

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file in one step."""

    def open(self, name: str) -> BinaryIO:
        """A file that was saved.

        Raises
        ------
        FileNotFoundError
        """

    def count(self, name: str) -> int:
        """Files that were saved below a name."""

    def remove(self, name: str = "") -> None:
        """Remove a file or a frame, and all below its name; everything without a name."""


def part_file(number: int) -> str:
    """Name of a part of a frame in a folder."""
    return f"part-{number:05d}.parquet"
