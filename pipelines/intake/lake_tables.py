"""Refuse a Delta, Iceberg or Hudi table given as plain files: its files hold deleted and older rows, too.

Which files make up the current snapshot is in the log of the table only. Until snapshots are read, every
path of a user that is read as Parquet or CSV passes `refuse_lake_tables` first.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import PurePosixPath
from urllib.parse import unquote, urlparse

from microguard.schemas.errors import InputRejected
from pyspark.sql import SparkSession

#: What the folder of a table contains, as a glob relative to it, and the format of the table.
_MARKS = {
    "_delta_log": "a Delta table",
    "metadata/*.metadata.json": "an Iceberg table",
    ".hoodie/hoodie.properties": "a Hudi table",
}
#: Signs that make a path a glob, in Hadoop's globs and in Python's.
_GLOB = frozenset("*?[{")
#: Whether a folder contains something that matches a glob relative to it.
_Contains = Callable[[str, str], bool]


def refuse_lake_tables(paths: Iterable[str], named: str, spark: SparkSession | None = None) -> None:
    """Refuse paths that are, contain or lie in the folder of a table, links followed.

    Parameters
    ----------
    paths : iterable of str
        Files, folders and globs. An address with a scheme (`s3a://`) is looked up by Hadoop's file systems.
    named : str
        The input as messages name it.
    spark : SparkSession, optional
        Needed for addresses with a scheme other than `file`.

    Raises
    ------
    InputRejected
        With the format of the table and what to do.
    """
    checked: set[str] = set()
    for path in paths:
        for place in [path, *_matches(path, spark)]:
            here = local_path(place)
            if here is not None:
                _refuse(_above(here), _listed, checked, named)
                _refuse(_above(os.path.realpath(here)), _listed, checked, named)
            elif spark is not None:
                _refuse(_above(place), _listed_by_hadoop(spark), checked, named)


def folders_and_links(files: Iterable[str]) -> set[str]:
    """The folders of files, and what links among the files point to."""
    here = {local_path(file) or file for file in files}
    return {os.path.dirname(file) for file in here} | {file for file in here if os.path.islink(file)}


def local_path(path: str) -> str | None:
    """Path on this machine of an address or a path; None where it is on another file system."""
    address = urlparse(path)
    if address.scheme == "file":
        return unquote(address.path)
    return None if "://" in path else path


def _refuse(folders: Iterable[str], contains: _Contains, checked: set[str], named: str) -> None:
    for folder in folders:
        if folder in checked:
            return  # and so are those above it
        checked.add(folder)
        for mark, table in _MARKS.items():
            if contains(folder, mark):
                raise InputRejected(
                    f"{named} is {table}, or a part of one ({PurePosixPath(mark).parts[0]} found). Its "
                    "files also hold rows that were deleted or replaced, so reading them would add records "
                    "that the table does not have. Export the current snapshot to a folder of Parquet files "
                    "by the engine that writes the table, and set input.path to that folder."
                )


def _above(path: str) -> list[str]:
    """A path up to its first sign of a glob, and every folder above it, deepest first."""
    scheme, separator, rest = path.rpartition("://")
    parts = takewhile(lambda part: not _GLOB & set(part), rest.split("/"))
    steps = list(parts)
    places = ["/".join(steps[:end]) for end in range(len(steps), 0, -1)]
    return [f"{scheme}{separator}{place}" for place in places if place]


def _listed(folder: str, mark: str) -> bool:
    return any(glob.iglob(f"{glob.escape(folder)}/{mark}"))


def _listed_by_hadoop(spark: SparkSession) -> _Contains:
    return lambda folder, mark: bool(_hadoop_glob(f"{folder}/{mark}", spark))


def _matches(path: str, spark: SparkSession | None) -> list[str]:
    """What a glob stands for; nothing for another path."""
    if not _GLOB & set(path):
        return []
    return glob.glob(local_path(path) or "") if spark is None else _hadoop_glob(path, spark)


def _hadoop_glob(path: str, spark: SparkSession) -> list[str]:
    """Addresses that match a glob as Spark reads it."""
    jvm, context = spark._jvm, spark.sparkContext._jsc
    assert jvm is not None
    assert context is not None
    place = jvm.org.apache.hadoop.fs.Path(path)
    found = [
        each.getPath() for each in place.getFileSystem(context.hadoopConfiguration()).globStatus(place) or []
    ]
    return [str(each.toUri() if each.toUri().getScheme() == "file" else each) for each in found]
