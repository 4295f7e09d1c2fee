"""Write published tables as SDMX-CSV 1.0, an exchange format of statistical offices, with one line per cell.

The first column is the dataflow, the last is the observation. A missing value has SDMX's code for unknown.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from microguard.pipelines.description.statistics import display_text

FOLDER = "sdmx"
DATAFLOW, OBSERVATION, UNKNOWN = "DATAFLOW", "OBS_VALUE", "_U"
AGENCY = "MICROGUARD"
#: The attributes for the status of a cell, with codes of CL_OBS_STATUS and CL_CONF_STATUS. Confidential cells
#: are all alike: primary and secondary ones are not told apart.
STATUS, CONFIDENTIALITY = "OBS_STATUS", "CONF_STATUS"
STATUSES = {"published": "A", "suppressed": "Q"}
CONFIDENTIALITIES = {"published": "F", "suppressed": "C"}


def write_sdmx(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Write every published table of a release as SDMX-CSV, and return the names of the files."""
    names = []
    for table in manifest["tables"]:
        name = f"{FOLDER}/{Path(table['file']).stem}.csv"
        (folder / FOLDER).mkdir(exist_ok=True)
        text = sdmx_csv(folder / table["file"], str(manifest["name"]), manifest.get("suppressed", False))
        (folder / name).write_text(text, encoding="utf-8", newline="")
        names.append(name)
    return names


def sdmx_csv(path: Path, flow: str, suppressed: bool = False) -> str:
    """Return one table as SDMX-CSV.

    Parameters
    ----------
    path : Path
        Parquet file; the last column is the value, the others are dimensions.
    flow : str
        Name of the dataflow.
    suppressed : bool
        Whether the last column is the status, and the one before it the value.
    """
    with pq.ParquetFile(path) as file:
        content = file.read()
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    measured = [OBSERVATION, STATUS, CONFIDENTIALITY] if suppressed else [OBSERVATION]
    dimensions = content.column_names[: -2 if suppressed else -1]
    lines.writerow([DATAFLOW, *identifiers(dimensions), *measured])
    dataflow = f"{AGENCY}:{identifiers([flow])[0]}(1.0)"
    columns = [
        [UNKNOWN if value is None else display_text(value) for value in column.to_pylist()]
        for column in content.columns
    ]
    if suppressed:
        statuses = columns.pop()
        columns += [[codes[value] for value in statuses] for codes in (STATUSES, CONFIDENTIALITIES)]
    for row in zip(*columns, strict=True):
        lines.writerow([dataflow, *row])
    return text.getvalue()


def identifiers(names: Sequence[str]) -> list[str]:
    """Convert names to SDMX identifiers of letters, digits and ``_``; equal results are numbered."""
    result: list[str] = []
    for name in names:
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).upper()
        taken = [plain, *(f"{plain}_{number}" for number in range(2, len(names) + 2))]
        reserved = {DATAFLOW, OBSERVATION, STATUS, CONFIDENTIALITY, *result}
        result.append(next(each for each in taken if each not in reserved))
    return result
