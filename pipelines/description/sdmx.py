"""Published tables in SDMX, the data exchange standard of statistical offices.

Every table is one dataflow with its own data structure. The structure message (SDMX-ML 2.1) has the
dataflows, the data structures, and the concepts and code lists of the release. A table is a file of SDMX-CSV
2.0 with one line per cell. Each cell has an observation status and a confidentiality status; a suppressed
cell has no value.

A code of SDMX consists of letters, digits, ``_``, ``@`` and ``-``. Every other byte of a value (UTF-8) is
written as ``$`` and two hexadecimal digits, so that the value can be read back; in the code list the value is
the name of the code.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.description.sdmx_structure import Flow, Variable, structure_message
from microguard.pipelines.description.statistics import display_text

FOLDER, STRUCTURE = "sdmx", "structure.xml"
AGENCY, VERSION = "MICROGUARD", "1.0"
#: Columns before the dimensions of a table, and columns after them: the observation with its attributes.
REFERENCE, OBSERVATION = ("STRUCTURE", "STRUCTURE_ID", "ACTION"), "OBS_VALUE"
#: Attributes for the status of a cell, with codes of CL_OBS_STATUS and CL_CONF_STATUS. Primary and secondary
#: confidential cells have the same code.
STATUS, CONFIDENTIALITY = "OBS_STATUS", "CONF_STATUS"
STATUSES = {"published": "A", "suppressed": "Q"}
CONFIDENTIALITIES = {"published": "F", "suppressed": "C"}
#: Code of a missing value of a dimension (SDMX: unknown); a value equal to this text is written with an
#: escape.
UNKNOWN, EMPTY = "_U", "$"
#: SDMX-CSV value of an observation that is missing intentionally.
NOT_A_NUMBER = "NaN"
_OF_CODES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@-")
_RESERVED = {*REFERENCE, "SERIES_KEY", "OBS_KEY", OBSERVATION, STATUS, CONFIDENTIALITY}


def write_sdmx(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Write the structure message and all published tables of a release; return the names of the files.

    Parameters
    ----------
    folder : Path
        Folder of the release, with the Parquet files of the tables.
    manifest : mapping
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    suppressed = bool(manifest.get("suppressed", False))
    stems = [Path(table["file"]).stem for table in manifest["tables"]]
    flows = identifiers([f"{manifest['name']}_{stem}" for stem in stems])
    contents = [_read(folder / table["file"]) for table in manifest["tables"]]
    dimensions = [content.column_names[: -2 if suppressed else -1] for content in contents]
    names = list(dict.fromkeys(name for each in dimensions for name in each))
    variable_ids = dict(zip(names, identifiers(names), strict=True))
    codes: dict[str, dict[str, str]] = {name: {} for name in names}
    written = []
    for content, flow, stem, own in zip(contents, flows, stems, dimensions, strict=True):
        for name in own:
            codes[name] |= {code(value): _label(value) for value in content[name].unique().to_pylist()}
        text = sdmx_csv(content, flow, [variable_ids[name] for name in own], suppressed)
        written.append(f"{FOLDER}/{stem}.csv")
        (folder / written[-1]).write_text(text, encoding="utf-8", newline="")
    message = structure_message(
        str(manifest["release_id"]),
        str(manifest["name"]),
        [
            Flow(flow, ", ".join([*own, content.column_names[len(own)]]), [variable_ids[n] for n in own])
            for content, flow, own in zip(contents, flows, dimensions, strict=True)
        ],
        [Variable(variable_ids[name], name, codes[name]) for name in names],
    )
    written.append(f"{FOLDER}/{STRUCTURE}")
    (folder / written[-1]).write_bytes(message)
    return written


def sdmx_csv(content: pa.Table, flow: str, dimensions: Sequence[str], suppressed: bool = False) -> str:
    """Return one table as SDMX-CSV.

    Parameters
    ----------
    content : pyarrow.Table
        Dimensions, then the value, then the status if `suppressed`.
    flow : str
        Identifier of the dataflow.
    dimensions : sequence of str
        Identifiers of the dimensions.
    suppressed : bool
        Whether the last column is the status.
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*REFERENCE, *dimensions, OBSERVATION, STATUS, CONFIDENTIALITY])
    columns = [list(map(code, column.to_pylist())) for column in content.columns[: len(dimensions)]]
    values = content.column(len(dimensions)).to_pylist()
    columns.append([NOT_A_NUMBER if value is None else display_text(value) for value in values])
    statuses = content.columns[-1].to_pylist() if suppressed else ["published"] * len(content)
    columns += [[codes[status] for status in statuses] for codes in (STATUSES, CONFIDENTIALITIES)]
    reference = ["dataflow", f"{AGENCY}:{flow}({VERSION})", "I"]
    for row in zip(*columns, strict=True):
        lines.writerow([*reference, *row])
    return text.getvalue()


def code(value: Any) -> str:
    """Return the code of a value of a dimension; different texts have different codes."""
    if value is None:
        return UNKNOWN
    text = display_text(value).encode()
    if text == UNKNOWN.encode():
        return f"${text[0]:02X}{UNKNOWN[1:]}"
    return "".join(chr(byte) if byte in _OF_CODES else f"${byte:02X}" for byte in text) or EMPTY


def identifiers(names: Sequence[str]) -> list[str]:
    """Convert names to SDMX identifiers of letters, digits and ``_``; append numbers where they would be
    equal.
    """
    result: list[str] = []
    for name in names:
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).upper()
        plain = plain if plain[:1].isalpha() else f"V{plain}"
        taken = [plain, *(f"{plain}_{number}" for number in range(2, len(names) + 2))]
        result.append(next(each for each in taken if each not in {*_RESERVED, *result}))
    return result


def _label(value: Any) -> str:
    """Return a value as the name of its code, without characters that XML does not allow."""
    if value is None:
        return "Unknown"
    text = "".join(c if c.isprintable() else "\ufffd" for c in display_text(value))
    return text if text.strip() else "Empty text"


def _read(path: Path) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read()
