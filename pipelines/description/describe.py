"""Description of a release for its readers: a public page, a descriptor, and tables in an exchange format.

The inputs are the folder of the staged files and the public manifest. An import contract ensures that this
package imports no code that reads original records, so that a description cannot disclose them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from microguard.pipelines.description.descriptor import DESCRIPTOR, descriptor
from microguard.pipelines.description.public_page import PAGE, public_page
from microguard.pipelines.description.record_columns import partition_field
from microguard.pipelines.description.statistics import ColumnStatistics, column_statistics

MICRODATA, TABLE = "microdata", "table"
#: Number of columns whose statistics are computed in parallel; each column needs up to three times its size
#: in memory.
COLUMNS_AT_ONCE = 2
#: Type: function that computes the statistics of one column from its name.
OfColumn = Callable[[str], ColumnStatistics]
#: Type: function that applies an `OfColumn` to several columns and returns the results.
ForEach = Callable[[OfColumn, Sequence[str]], list[ColumnStatistics]]


def few_at_once(function: OfColumn, names: Sequence[str]) -> list[ColumnStatistics]:
    """Compute the statistics of columns in threads, at most `COLUMNS_AT_ONCE` columns at a time."""
    with ThreadPoolExecutor(COLUMNS_AT_ONCE) as threads:
        return list(threads.map(function, names))


def describe(
    folder: Path,
    manifest: Mapping[str, Any],
    checksums: Mapping[str, str],
    for_each: ForEach = few_at_once,
) -> tuple[str, ...]:
    """Write the description files of a staged release and return their names.

    Parameters
    ----------
    folder : Path
        Folder with every file that `checksums` names.
    manifest : mapping
        Manifest of the release, without its list of files.
    checksums : mapping of file name to SHA-256
        Checksums of the data files.
    for_each : callable
        Called with a picklable function of a column's name and with names of columns; returns the results of
        the function.
    """
    statistics = (
        {MICRODATA: _record_statistics(folder, manifest, for_each)} if manifest.get("columns") else {}
    )
    exchanged = _write_tables(folder, manifest) if manifest["tables"] else []
    every = {**checksums, **{name: _checksum(folder / name) for name in exchanged}}
    package = descriptor(folder, manifest, every, statistics)
    (folder / DESCRIPTOR).write_text(json.dumps(package, indent=2), encoding="utf-8")
    page = public_page(folder, manifest, statistics.get(MICRODATA, ()))
    (folder / PAGE).write_text(page, encoding="utf-8")
    return (PAGE, DESCRIPTOR, *exchanged)


def _write_tables(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    from microguard.pipelines.description.sdmx import write_sdmx

    return write_sdmx(folder, manifest)


def _record_statistics(
    folder: Path, manifest: Mapping[str, Any], for_each: ForEach
) -> tuple[ColumnStatistics, ...]:
    files = sorted((folder / MICRODATA).rglob("*.parquet"))
    weights = [column["name"] for column in manifest["columns"] if column["role"] == "weight"]
    weight = manifest.get("method", {}).get("weighted_by") or (weights[0] if weights else None)
    partition = partition_field(manifest)
    statistics_of_column = partial(column_statistics, files, weight=weight, partition=partition)
    return tuple(for_each(statistics_of_column, [column["name"] for column in manifest["columns"]]))


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
