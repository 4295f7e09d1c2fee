"""Recognition of Delta, Iceberg and Hudi tables, whose files also contain deleted and replaced rows.

Only the log of the table defines which files belong to the current snapshot. The folder of a table is read by
`pipelines.intake.snapshots`. Every other path of a user passes `refuse_lake_tables` first.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import PurePosixPath
from urllib.parse import unquote, urlparse

from microguard.schemas.errors import InputRejected
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

#: Globs, relative to a folder, that match if the folder is a table, and the format of this table.
_MARKS = {
    "_delta_log": "a Delta table",
    "metadata/*.metadata.json": "an Iceberg table",
    ".hoodie/hoodie.properties": "a Hudi table",
}
#: Formats whose snapshots are read (`pipelines.intake.snapshots`) if the path is the table's own folder.
_READABLE = {"delta": "_delta_log", "iceberg": "metadata/*.metadata.json"}
#: Characters that make a path a glob, in Hadoop and in Python.
_GLOB = frozenset("*?[{")
#: Prefixes of the environment variables that contain the credentials of an object store, by its scheme.
_OF_S3 = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS")
_CREDENTIALS = {"s3": _OF_S3, "s3a": _OF_S3, "gs": ("GOOGLE_",), "abfss": ("AZURE_",), "abfs": ("AZURE_",)}
#: Type of a function of a folder and a relative glob that returns whether the folder contains a match.
_Contains = Callable[[str, str], bool]


def refuse_lake_tables(paths: Iterable[str], named: str, spark: SparkSession | None = None) -> None:
    """Refuse paths that are the folder of a table, are inside such a folder, or are links to one.

    Parameters
    ----------
    paths : iterable of str
        Files, folders and globs. Hadoop's file systems list an address with a scheme (`s3a://`).
    named : str
        Name of the input in messages.
    spark : SparkSession, optional
        Needed for addresses with a scheme other than `file`.

    Raises
    ------
    InputRejected
        With the format of the table and a way to export its snapshot.
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


def table_format(path: str, spark: SparkSession | None = None) -> str | None:
    """Return ``delta`` or ``iceberg`` if a path is the folder of such a table, or a link to one.

    The path of a metadata file of an Iceberg table (``.metadata.json``) names the table, too.

    Parameters
    ----------
    spark : SparkSession, optional
        Lists addresses with a scheme other than `file`. Without it, or where it has no connector for the
        scheme, an object store is listed with the credentials of the environment.
    """
    here = local_path(path)
    if path.endswith(".metadata.json"):
        return "iceberg"
    if _GLOB & set(here or path):
        return None
    if here is not None:
        return _kind(here, _listed)
    if spark is not None:
        try:
            return _kind(path, _listed_by_hadoop(spark))
        except Py4JJavaError:  # Spark has no connector for this scheme
            if not _in_environment(path):
                raise
    return _kind(path, _listed_by_store) if _in_environment(path) else None


def _kind(folder: str, contains: _Contains) -> str | None:
    return next((kind for kind, mark in _READABLE.items() if contains(folder.rstrip("/"), mark)), None)


def folders_and_links(files: Iterable[str]) -> set[str]:
    """Return the folders of files, and also the files that are links, because their targets must be
    checked.
    """
    here = {local_path(file) or file for file in files}
    return {os.path.dirname(file) for file in here} | {file for file in here if os.path.islink(file)}


def local_path(path: str) -> str | None:
    """Return the local path of an address or path; None if it is on another file system."""
    address = urlparse(path)
    if address.scheme == "file":
        return unquote(address.path)
    return None if "://" in path else path


def _refuse(folders: Iterable[str], contains: _Contains, checked: set[str], named: str) -> None:
    for folder in folders:
        if folder in checked:
            return  # the folders above it were already checked
        checked.add(folder)
        for mark, table in _MARKS.items():
            if contains(folder, mark):
                raise InputRejected(
                    f"{named} is {table}, or a part of one ({PurePosixPath(mark).parts[0]} found), expected "
                    "plain files. The files of a table also contain deleted and replaced rows, which would "
                    "be read as records. Export the current snapshot to a folder of Parquet files with the "
                    "engine that writes the table, and name that folder. If input.path is the folder of a "
                    "Delta or Iceberg table itself, its snapshot is read."
                )


def _above(path: str) -> list[str]:
    """Return the part of a path before its first glob character, and every folder above it, deepest first."""
    scheme, separator, rest = path.rpartition("://")
    parts = takewhile(lambda part: not _GLOB & set(part), rest.split("/"))
    steps = list(parts)
    places = ["/".join(steps[:end]) for end in range(len(steps), 0, -1)]
    return [f"{scheme}{separator}{place}" for place in places if place]


def _listed(folder: str, mark: str) -> bool:
    return any(glob.iglob(f"{glob.escape(folder)}/{mark}"))


def _in_environment(path: str) -> bool:
    """Return whether an address is in an object store whose credentials are in the environment."""
    prefixes = _CREDENTIALS.get(path.partition("://")[0], ())
    return any(name.startswith(prefixes) for name in os.environ) if prefixes else False


def _listed_by_store(folder: str, mark: str) -> bool:
    """Return whether a folder of an object store contains a match; False if the store denies access."""
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    try:
        store = from_url(folder.replace("s3a://", "s3://", 1))
        objects = obstore.list(store, prefix=f"{mark.partition('/')[0]}/")
        names = (str(each["path"]) for batch in objects for each in batch)
        return any("/" not in mark or fnmatch(name, mark) for name in names)
    except (BaseError, ValueError, OSError):
        return False


def _listed_by_hadoop(spark: SparkSession) -> _Contains:
    return lambda folder, mark: bool(_hadoop_glob(f"{folder}/{mark}", spark))


def _matches(path: str, spark: SparkSession | None) -> list[str]:
    """Return the paths that match a glob; nothing if the path is not a glob."""
    if not _GLOB & set(path):
        return []
    return glob.glob(local_path(path) or "") if spark is None else _hadoop_glob(path, spark)


def _hadoop_glob(path: str, spark: SparkSession) -> list[str]:
    """Return the addresses that match a glob on a Hadoop file system."""
    jvm, context = spark._jvm, spark.sparkContext._jsc
    assert jvm is not None
    assert context is not None
    place = jvm.org.apache.hadoop.fs.Path(path)
    matches = [
        each.getPath() for each in place.getFileSystem(context.hadoopConfiguration()).globStatus(place) or []
    ]
    return [str(each.toUri() if each.toUri().getScheme() == "file" else each) for each in matches]
