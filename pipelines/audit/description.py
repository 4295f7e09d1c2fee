"""Audit of a release's descriptor and public page, which must agree with its files and manifest."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import duckdb
import pyarrow.parquet as pq

DESCRIPTOR, PAGE = "datapackage.json", "report.html"
#: Codes of SDMX for the status of a cell: observation, confidentiality.
_STATUSES = {"published": ("A", "F"), "suppressed": ("Q", "C")}
#: Columns of SDMX-CSV 2.0 before the codes and after them, and identifiers of dimensions and dataflows.
_REFERENCE = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
_OBSERVATION = ("OBS_VALUE", "OBS_STATUS", "CONF_STATUS")
_IDENTIFIER = re.compile("[A-Z][A-Z0-9_]*")
_DATAFLOW = re.compile(r"MICROGUARD:[A-Z][A-Z0-9_]*\(1\.0\)")
_STRUCTURE = "sdmx/structure.xml"
_NAMESPACE = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure}"
#: Relative tolerance of sums of floats, which may be added in another order.
TOLERANCE = 1e-9
#: Largest double.
LARGEST = 1.7976931348623157e308
#: Probabilities of the quartiles.
QUARTILES = (0.25, 0.5, 0.75)
#: Pattern of a link to an external resource; loading it would disclose the page's readers to another server.
_LOADS = re.compile(
    r"<(?:script|link|img|iframe|object)\b|<[^>]*\b(?:src|href)\s*=(?!['\x22]#)|<style[^<]*(?:url\(|@import)",
    re.IGNORECASE,
)


def files_of_description(stems: Iterable[str]) -> set[str]:
    """Return the names of the descriptive files of a release whose tables have these names."""
    return {DESCRIPTOR, PAGE, _STRUCTURE, *(f"sdmx/{stem}.csv" for stem in stems)}


def faults(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Return the faults of the descriptor and the public page, one sentence each."""
    package = json.loads((folder / DESCRIPTOR).read_text(encoding="utf-8"))
    page = (folder / PAGE).read_text(encoding="utf-8")
    resources = {each["path"]: each for each in package["resources"]}
    described_files = {
        name: file for name, file in manifest["files"].items() if name not in (DESCRIPTOR, PAGE)
    }
    discrepancies = []
    if package["id"] != manifest["release_id"] or manifest["release_id"] not in page:
        discrepancies.append("the descriptor or the page belongs to another release")
    if set(resources) != set(described_files):
        discrepancies.append("the descriptor lists other files than the manifest")
    elif any(_differs(folder, resources[name], file) for name, file in described_files.items()):
        discrepancies.append(
            "the checksum, size, number of rows or a column of a file differs from the descriptor"
        )
    suppressed = bool(manifest.get("suppressed"))
    exchanged = [table for table in manifest["tables"] if _sdmx(table) in described_files]
    if any(_rewritten(folder, table, suppressed) for table in exchanged):
        discrepancies.append("the cells of an SDMX-CSV file differ from those of its table")
    if _STRUCTURE in described_files and _misnamed(folder):
        discrepancies.append("the SDMX structure message names a code differently from its value")
    if _STRUCTURE in described_files and exchanged and _has_other_codes(folder, manifest, suppressed):
        discrepancies.append("the SDMX structure message has other codes than the tables")
    if _LOADS.search(page):
        discrepancies.append("the page loads an external resource")
    return discrepancies


def _differs(folder: Path, resource: Mapping[str, Any], file: Mapping[str, Any]) -> bool:
    if (
        resource["hash"] != f"sha256:{file['sha256']}"
        or resource.get("bytes", file["bytes"]) != file["bytes"]
    ):
        return True
    path = folder / resource["path"]
    if path.suffix != ".parquet":
        return False
    columns = [(entry.name, str(entry.type)) for entry in pq.read_schema(path)]
    declared = [(each["name"], each["arrow"]) for each in resource["schema"]["fields"]]
    values = [f"{name}={value}" for name, value in resource.get("partition", {}).items()]
    if values and values != [unquote(path.parent.name)]:
        return True
    return resource["rows"] != pq.read_metadata(path).num_rows or declared != columns


def _sdmx(table: Mapping[str, Any]) -> str:
    return f"sdmx/{Path(table['file']).stem}.csv"


def _rewritten(folder: Path, table: Mapping[str, Any], suppressed: bool) -> bool:
    """Return whether the lines of the SDMX-CSV file differ from the cells of the table file, in the same
    order.
    """
    with open(folder / _sdmx(table), encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    content = pq.read_table(folder / table["file"])
    columns = [list(map(_text, column.to_pylist())) for column in content.columns]
    statuses = columns.pop() if suppressed else ["published"] * len(content)
    flags = [[_STATUSES[str(status)][place] for status in statuses] for place in (0, 1)]
    if header[0] == "DATAFLOW":  # SDMX-CSV 1.0, written by earlier versions of microguard
        cells = [["_U" if each is None else each for each in column] for column in columns]
        cells += flags if suppressed else []
        return [line[1:] for line in lines] != [list(row) for row in zip(*cells, strict=True)]
    if _labelled_otherwise(header, lines):
        return True
    columns[-1] = ["NaN" if value is None else value for value in columns[-1]]
    last = len(columns) - 1
    found = [[*map(_value_of_code, line[3 : 3 + last]), *line[3 + last :]] for line in lines]
    return found != [list(row) for row in zip(*columns, *flags, strict=True)]


def _labelled_otherwise(header: list[str], lines: list[list[str]]) -> bool:
    """Return whether the header, or the columns before the codes, have other texts than SDMX requires."""
    begins, ends = len(_REFERENCE), len(header) - len(_OBSERVATION)
    fixed = (*header[:begins], *header[ends:]) == (*_REFERENCE, *_OBSERVATION)
    flows = {line[1] for line in lines}
    return (
        not (fixed and all(map(_IDENTIFIER.fullmatch, header[begins:ends])))
        or any((line[0], line[2]) != ("dataflow", "I") for line in lines)
        or len(flows) > 1
        or not all(map(_DATAFLOW.fullmatch, flows))
    )


def _value_of_code(code: str) -> str | None:
    """Return the value that an SDMX code represents: ``$`` and two digits encode a byte, ``_U`` a missing
    value.
    """
    if code == "_U":
        return None
    return unquote(code.replace("$", "%"), errors="strict") if code != "$" else ""


def _text(value: Any) -> str | None:
    return None if value is None else str(value.isoformat() if hasattr(value, "isoformat") else value)


def _misnamed(folder: Path) -> bool:
    """Return whether the structure message gives a code a name other than the code's value."""
    message = ElementTree.parse(folder / _STRUCTURE)
    for codelist in message.iter(f"{_NAMESPACE}Codelist"):
        if codelist.get("id") in ("CL_OBS_STATUS", "CL_CONF_STATUS"):
            continue
        for code in codelist.iter(f"{_NAMESPACE}Code"):
            value, name = _value_of_code(code.get("id", "")), code[0].text
            if value is not None and value.strip() and value.isprintable() and name != value:
                return True
    return False


def _has_other_codes(folder: Path, manifest: Mapping[str, Any], suppressed: bool) -> bool:
    """Return whether the code lists of the structure message have other codes than the tables."""
    known: dict[str, set[str | None]] = {}
    for table in manifest["tables"]:
        if (folder / _sdmx(table)).read_bytes().startswith(b"DATAFLOW"):
            return False  # SDMX-CSV 1.0, written by earlier versions of microguard
        content = pq.read_table(folder / table["file"])
        for name in content.column_names[: -2 if suppressed else -1]:
            known.setdefault(name, set()).update(map(_text, content[name].unique().to_pylist()))
    message = ElementTree.parse(folder / _STRUCTURE)
    listed = [
        {_value_of_code(code.get("id", "")) for code in codelist.iter(f"{_NAMESPACE}Code")}
        for codelist in message.iter(f"{_NAMESPACE}Codelist")
        if codelist.get("id") not in ("CL_OBS_STATUS", "CL_CONF_STATUS")
    ]
    return listed != list(known.values())


def wrong_statistics(engine: duckdb.DuckDBPyConnection, folder: Path, columns: Mapping[str, str]) -> int:
    """Count the columns whose statistics in the descriptor differ from those computed from the view
    ``microdata``.

    Parameters
    ----------
    columns : mapping of name to column of the view
    """
    package = json.loads((folder / DESCRIPTOR).read_text(encoding="utf-8"))
    described = [each for each in package["resources"] if each["path"].startswith("microdata/")]
    fields = [field for resource in described for field in resource["schema"]["fields"]]
    if "partitionedBy" in package:
        fields.append(package["partitionedBy"])
    wrong = {field["name"] for field in fields if not _field_holds(engine, columns[field["name"]], field)}
    return len(wrong)


def _field_holds(engine: duckdb.DuckDBPyConnection, column: str, field: Mapping[str, Any]) -> bool:
    """Return whether the statistics and the list of values stated for a column agree with its records."""
    listed = field.get("constraints", {}).get("enum")
    if listed is not None:
        found = engine.execute(
            f"SELECT DISTINCT CAST({column} AS VARCHAR) FROM microdata WHERE {column} IS NOT NULL"
        ).fetchall()
        if {value for (value,) in found} != set(listed):
            return False
    return _holds(engine, column, field["statistics"])


def _holds(engine: duckdb.DuckDBPyConnection, column: str, declared: Mapping[str, Any]) -> bool:
    ((values, missing),) = engine.execute(
        f"SELECT count({column}), count(*) - count({column}) FROM microdata"
    ).fetchall()
    if (values, missing) != (declared["values"], declared["missing"]):
        return False
    if "mean" not in declared:
        return True
    number, size = f"CAST({column} AS DOUBLE)", _size(declared)
    share = f"{number} / {size!r}"  # sums of large numbers are too large for a double
    statistics = engine.execute(
        f"SELECT min({share}), max({share}), avg({share}), sum({share}) FROM microdata "
        f"WHERE isfinite({number})"
    ).fetchone()
    keys = ("minimum", "maximum", "mean", "total")
    if not _ordered_as_stated(engine, number, declared):
        return False
    return statistics is not None and all(
        math.isclose(actual, float(declared[key]) / size, rel_tol=TOLERANCE, abs_tol=slack)
        for key, actual, slack in zip(keys, statistics, (*[TOLERANCE] * 3, TOLERANCE * values), strict=True)
        if key in declared  # a total that is too large for a double is not stated
    )


def _ordered_as_stated(engine: duckdb.DuckDBPyConnection, number: str, declared: Mapping[str, Any]) -> bool:
    """Return whether the stated quartiles are those of the finite values, and the stated standard deviation
    is close to theirs.

    Arrow and DuckDB convert a decimal to doubles that differ in the last bits.
    """
    slack = TOLERANCE * _size(declared)
    limits = [
        (max(float(value) - slack, -LARGEST), min(float(value) + slack, LARGEST))
        for value in declared.get("quartiles", ())
    ]
    places = ", ".join(
        f"count(*) FILTER ({number} < {low!r}), count(*) FILTER ({number} <= {high!r})"
        for low, high in limits
    )
    ((values, deviation, *counts),) = engine.execute(
        f"SELECT count(*), stddev_samp({number} / {_size(declared)!r}), {places or 0} FROM microdata "
        f"WHERE isfinite({number})"
    ).fetchall()
    for share, below, until in zip(QUARTILES, counts[::2], counts[1::2], strict=False):
        if not below < max(1, math.ceil(share * values)) <= until:
            return False
    stated = float(declared.get("deviation", 0.0)) / _size(declared)
    return "deviation" not in declared or math.isclose(deviation or 0.0, stated, rel_tol=1e-6, abs_tol=1e-6)


def _size(declared: Mapping[str, Any]) -> float:
    """Return the largest absolute value; values divided by it have finite squares.

    Of values below the least normal number, deviations have no digits that could be compared.
    """
    largest = max(abs(float(declared["minimum"])), abs(float(declared["maximum"])))
    return max(largest, sys.float_info.min) if largest else 1.0
