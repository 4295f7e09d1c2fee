"""Describe a release to its readers: a page and a descriptor, made of the release alone.

What is given is a folder with the files as they will be published, and the public manifest. This room imports
nothing that has seen an original record (an import contract holds it), so that nothing else can be shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.description.descriptor import DESCRIPTOR, descriptor
from pipelines.description.public_page import PAGE, public_page
from pipelines.description.statistics import ColumnStatistics, column_statistics

DESCRIPTION = (PAGE, DESCRIPTOR)
MICRODATA, TABLE = "microdata", "table"


def describe(folder: Path, manifest: Mapping[str, Any], checksums: Mapping[str, str]) -> None:
    """Write `DESCRIPTION` into the folder of a release that is not public yet.

    Parameters
    ----------
    folder : Path
        With every file that `checksums` names.
    manifest : mapping
        Of the release, its list of files excepted.
    checksums : mapping of file name to SHA-256
        Of the files with data.
    """
    statistics = {MICRODATA: _of_records(folder, manifest)} if manifest.get("columns") else {}
    package = descriptor(folder, manifest, checksums, statistics)
    (folder / DESCRIPTOR).write_text(json.dumps(package, indent=2), encoding="utf-8")
    page = public_page(folder, manifest, statistics.get(MICRODATA, ()))
    (folder / PAGE).write_text(page, encoding="utf-8")


def _of_records(folder: Path, manifest: Mapping[str, Any]) -> tuple[ColumnStatistics, ...]:
    files = sorted((folder / MICRODATA).glob("*.parquet"))
    weights = [column["name"] for column in manifest["columns"] if column["role"] == "weight"]
    weight = weights[0] if weights else None
    return tuple(column_statistics(files, column["name"], weight=weight) for column in manifest["columns"])
