"""Audit of a release that is partitioned by region: each folder contains the records of one region.

Folders are named as in Hive (``microdata/region=north/part-00000.parquet``), with percent-encoded characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
from microguard.pipelines.guarantees.queries import FILE, number, show

MICRODATA = "microdata"
#: Column of the view that contains the folder name of a record.
FOLDER = "folder"
#: View of the records without the column that is stored in the folder names.
ROWS = "rows_of_files"


def record_files(folder: Path) -> list[Path]:
    """Return the record files of a release in the order of their records."""
    return sorted((folder / MICRODATA).rglob("*.parquet"))


def partition_field(manifest: Mapping[str, Any]) -> pa.Field | None:
    """Return the partition column in the manifest; None if the release is not partitioned."""
    name = manifest.get("partitioned_by")
    types = {column["name"]: column["type"] for column in manifest["columns"]}
    return None if name is None else pa.field(name, pa.type_for_alias(types[name]))


def show_records(
    engine: duckdb.DuckDBPyConnection, folder: Path, manifest: Mapping[str, Any], keys: Sequence[str]
) -> None:
    """Create the view ``microdata`` with the manifest's columns as `keys`, and `FOLDER` if the release is
    partitioned.
    """
    files, partition = record_files(folder), partition_field(manifest)
    if partition is None:
        show(engine, MICRODATA, files, keys)
        return
    place = [column["name"] for column in manifest["columns"]].index(partition.name)
    value = f"url_decode(split_part({FOLDER}, '=', 2))"
    kind = "BIGINT" if pa.types.is_integer(partition.type) else "VARCHAR"
    inside = [key for position, key in enumerate(keys) if position != place]
    show(engine, ROWS, files, inside, f"regexp_extract({FILE}, '([^/]*)/[^/]*$', 1) AS {FOLDER}")
    engine.execute(
        f"CREATE OR REPLACE VIEW {MICRODATA} AS SELECT {FOLDER}, CAST({value} AS {kind}) AS {keys[place]}, "
        f"{', '.join(inside)} FROM {ROWS}"
    )


def partition_faults(
    engine: duckdb.DuckDBPyConnection,
    folder: Path,
    manifest: Mapping[str, Any],
    keys: Mapping[str, str],
) -> list[str]:
    """Return the faults of the partition folders, one sentence each.

    Parameters
    ----------
    keys : mapping of name to column of the view ``microdata``
    """
    partition, k = str(manifest["partitioned_by"]), int(manifest["guarantee"].get("k", 1))
    folders = {path.parent for path in record_files(folder)}
    named = [each for each in folders if each.name.partition("=")[0] == partition]
    outside = sum(each.parent != folder / MICRODATA for each in named) + len(folders) - len(named)
    faults = [f"{outside} folders of records are no partitions by {partition}"] if outside else []
    if len({unquote(each.name) for each in named}) < len(named):
        faults.append(f"two folders have the same value of {partition}")
    for group in manifest["guarantee"].get("groups", ()):
        columns = ", ".join([FOLDER, *(keys[name] for name in group["variables"])])
        rare = number(
            engine,
            f"SELECT count(DISTINCT {FOLDER}) FROM (SELECT {FOLDER} FROM {MICRODATA} GROUP BY {columns} "
            f"HAVING count(*) < {k})",
        )
        if rare:
            faults.append(f"{rare} folders have a combination of {group['name']} with fewer than {k} records")
        if partition not in group["with_region"]:
            faults.append(f"{group['name']} is not protected by {partition}")
    return faults
