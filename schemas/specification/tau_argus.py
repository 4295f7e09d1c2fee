"""tau-ARGUS metadata (`.rda`, `.hrc`) of a table or of microdata, converted to keys of a specification.

Metadata describe microdata if they have no `<SEPARATOR>` (fields at fixed positions), or if they contain a
weight, holding or request: see `tau_argus_microdata`.

The metadata fill `[input]`, `[variables]` and `[table]`. Keys written in the specification take precedence.
The keywords of a field are converted as follows:

| keyword | becomes |
|---|---|
| `<RECODEABLE>` with `<TOTCODE>` | a dimension and its total mark (`table.totals`) |
| `<HIERCODELIST>` with `<HIERLEADSTRING>` | `table.parents` |
| `<HIERLEVELS>` | `table.code_widths` |
| `<NUMERIC>`, `<DECIMALS>` | `table.value` (of several, name one), `table.decimals` (0 if missing) |
| `<NUMERIC> <SHADOW>` | `table.shadow`, the sums to which the rules apply |
| `<FREQUENCY>` | `table.contributors`; without `<NUMERIC>`, a table of counts |
| `<MAXSCORE>`, `<COST>` | `table.largest`, `table.costs` |
| `<LOWERPL>`, `<UPPERPL>` | `table.lower_protection`, `table.upper_protection` |
| `<STATUS>`, `<SAFE>`, `<UNSAFE>`, `<PROTECT>` | `table.status`: safe, sensitive, fixed; or S, U, P |

`<CODELIST>` (labels) and `<DISTANCE>` (costs of suppression by the distance of codes) are not read. Codes for
missing values are treated as ordinary codes. The status E marks an empty cell; with a value it is refused.
The decimal mark is detected in the first lines of the table. Keywords that are not supported are refused by
name.

References
----------
de Wolf et al. 2014, tau-ARGUS User's Manual 4.1, sections 5.1.4 (metadata) and 5.2 (hierarchies).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, islice
from pathlib import Path, PureWindowsPath
from typing import Any

from microguard.schemas.errors import SpecificationError
from microguard.schemas.paths import expanded
from microguard.schemas.specification.toml_text import merged

TOTAL = "Total"
"""Default total mark, if the metadata name none."""
LEAD = "@"
STATUS_OF = {"<SAFE>": ("S", "safe"), "<UNSAFE>": ("U", "sensitive"), "<PROTECT>": ("P", "fixed")}
"""Default code of each status, with its meaning."""
EMPTY = "E"
"""Status of an empty cell."""
NUMBERS = {
    "": "value",
    "<COST>": "costs",
    "<COSTVAR>": "costs",
    "<LOWERPL>": "lower_protection",
    "<UPPERPL>": "upper_protection",
    "<SHADOW>": "shadow",
}
"""What follows `<NUMERIC>`, and its key."""
FIELDS = {
    "<RECODEABLE>": "dimension",
    "<RECODABLE>": "dimension",
    "<FREQUENCY>": "contributors",
    "<MAXSCORE>": "largest",
    "<STATUS>": "status",
    "<WEIGHT>": "weight",
    "<HOLDING>": "holding",
    "<REQUEST>": "request",
}
KEYS_OF_RECORDS = ("weight", "holding", "request")
"""Keys of fields that only microdata have."""
DETAILS = (
    "<TOTCODE>",
    "<CODELIST>",
    "<HIERARCHICAL>",
    "<HIERCODELIST>",
    "<HIERLEADSTRING>",
    "<DECIMALS>",
    "<DISTANCE>",
)
LEVELS = "<HIERLEVELS>"
HEAD_LINES = 20
"""Number of lines of the table from which its decimal mark is detected."""
_COMMA = re.compile(r"-?\d+,\d+")
_TOKEN = re.compile(r'"([^"]*)"|(\S+)')


@dataclass
class Field:
    """Field of a line of the table; its attributes are filled while its keywords are read."""

    name: str
    key: str = ""
    details: dict[str, str] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()
    """Numbers after the name: for microdata, the position, the width and the codes for missing values."""
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """All words after a keyword that has several."""


def described(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the content of a specification with the keys that the file of `input.metadata` states.

    Raises
    ------
    SpecificationError
        If a file cannot be read, or contains keywords that are not supported.
    """
    given = content.get("input")
    if not isinstance(given, dict) or not isinstance(given.get("metadata"), str):
        return content
    path = folder / expanded(given["metadata"])
    encoding = given.get("encoding", "utf-8")
    encoding = encoding if isinstance(encoding, str) else "utf-8"
    head, fields = fields_of(path, encoding)
    written = content.get("table")
    table = written if isinstance(written, dict) else {}
    if is_microdata(head, fields, table):
        from microguard.schemas.specification.tau_argus_microdata import content_of_microdata

        described = content_of_microdata(head, fields, table, path, encoding)
    else:
        described = _content(head, fields, path, encoding)
    source = given.get("path")
    if isinstance(source, str) and _has_decimal_comma(
        folder / expanded(source), described["input"], encoding
    ):
        described["input"]["decimal"] = ","
    return merged(described, content)


def is_microdata(head: Mapping[str, str], fields: list[Field], table: Mapping[str, Any]) -> bool:
    """Return whether metadata describe records: by fixed positions, by keywords of records, or because the
    specification states so.
    """
    own = any(each.key in KEYS_OF_RECORDS for each in fields)
    fixed = "<SEPARATOR>" not in head and any(len(each.numbers) > 1 for each in fields)
    return fixed or own or table.get("source") == "microdata"


def _has_decimal_comma(path: Path, layout: Mapping[str, Any], encoding: str) -> bool:
    """Return whether a value in the first lines of a table has a comma and none has a point."""
    delimiter = layout.get("delimiter", ",")
    try:
        with open(path, encoding=encoding, newline="") as file:
            rows = list(islice(csv.reader(file, delimiter=delimiter), HEAD_LINES))
    except (OSError, ValueError, LookupError, csv.Error):  # the reader of the table reports this fault
        return False
    texts = [text.strip() for row in rows for text in row]
    return delimiter != "," and any(_COMMA.fullmatch(text) for text in texts)


def _content(head: Mapping[str, str], fields: list[Field], path: Path, encoding: str) -> dict[str, Any]:
    dimensions = [each for each in fields if each.key == "dimension"]
    totals = {each.name: each.details.get("<TOTCODE>", TOTAL) for each in dimensions}
    total = next(iter(totals.values()), TOTAL)
    table: dict[str, Any] = {
        "source": "cells",
        "tables": [[each.name for each in dimensions]],
        "total": total,
        "totals": {name: mark for name, mark in totals.items() if mark != total},
        "parents": parents_of_fields(dimensions, path, encoding),
        "code_widths": widths_of_fields(dimensions, path),
        "tau_argus": True,
    }
    by_key = {key: [each for each in fields if each.key == key] for key in {each.key for each in fields}}
    for key, named in by_key.items():
        if key not in ("dimension", "largest", "value") and len(named) > 1:
            raise refused(path, f"has {len(named)} fields for table.{key}, expected one")
        if key not in ("dimension", "largest"):
            table[key] = named[0].name
    table["largest"] = [each.name for each in by_key.get("largest", [])]
    values = by_key.get("value", [])
    if len(values) > 1:
        del table["value"]  # the specification must name one of them
    elif values:
        table["decimals"] = whole(values[0].details.get("<DECIMALS>", "0"), path, "<DECIMALS>")
    elif not values and "contributors" in table:
        table |= {"kind": "frequency", "value": table.pop("contributors")}
    if "status" in table:
        codes = {head.get(keyword, code): status for keyword, (code, status) in STATUS_OF.items()}
        table["statuses"] = {EMPTY: "empty", **codes}
    variables = {
        each.name: {"role": "other", "kind": "nominal" if each.key in ("dimension", "status") else "numeric"}
        for each in fields
    }
    layout = {"format": "csv", "columns": [each.name for each in fields]}
    if "<SEPARATOR>" in head:
        layout["delimiter"] = head["<SEPARATOR>"]
    return {"input": layout, "variables": variables, "table": table}


def fields_of(path: Path, encoding: str) -> tuple[dict[str, str], list[Field]]:
    """Return the keywords of the whole file, and its fields in order."""
    head: dict[str, str] = {}
    fields: list[Field] = []
    for number, line in _lines(path, encoding):
        keyword, *rest = (quoted or bare for quoted, bare in _TOKEN.findall(line))
        first = rest[0] if rest else ""
        if not keyword.startswith("<"):
            fields.append(Field(keyword, numbers=tuple(rest)))
        elif keyword == "<SEPARATOR>" or keyword in STATUS_OF:
            head[keyword] = first
        elif fields and keyword == "<NUMERIC>" and first in NUMBERS:
            fields[-1].key = fields[-1].key or NUMBERS[first]
        elif fields and keyword in FIELDS:
            fields[-1].key = FIELDS[keyword]
            fields[-1].words[keyword] = tuple(rest)
        elif fields and keyword == LEVELS:
            fields[-1].words[keyword] = tuple(rest)
        elif fields and keyword in DETAILS:
            fields[-1].details[keyword] = first
        else:
            raise refused(path, f"has {keyword} in line {number}, which is no keyword of table metadata")
    nothing = [each.name for each in fields if not each.key]
    if nothing or not fields:
        raise refused(path, f"does not state the content of {', '.join(nothing) or 'the fields'}")
    return head, fields


def parents_of_fields(dimensions: Iterable[Field], path: Path, encoding: str) -> dict[str, dict[str, str]]:
    """Return the parents of the codes of each field with a hierarchy file."""
    parents = {}
    for each in dimensions:
        if "<HIERCODELIST>" in each.details:
            lead = each.details.get("<HIERLEADSTRING>") or LEAD
            parents[each.name] = parents_of(_beside(path, each.details["<HIERCODELIST>"]), lead, encoding)
        elif "<HIERARCHICAL>" in each.details and LEVELS not in each.words:
            raise refused(
                path, (f"declares {each.name} as <HIERARCHICAL> without a <HIERCODELIST> or {LEVELS}")
            )
    return parents


def widths_of_fields(dimensions: Iterable[Field], path: Path) -> dict[str, list[int]]:
    """Return the number of characters of each level, coarse to fine, for each field with level widths."""
    widths = {}
    for each in dimensions:
        if LEVELS in each.words and "<HIERCODELIST>" not in each.details:
            steps = [whole(step, path, LEVELS) for step in each.words[LEVELS]]
            widths[each.name] = list(accumulate(step for step in steps if step))
    return widths


def parents_of(path: Path, lead: str = LEAD, encoding: str = "utf-8") -> dict[str, str]:
    """Return the parent of each code in a `.hrc` file, in which the lead strings before a code determine its
    depth.

    Raises
    ------
    SpecificationError
        If a code occurs twice, or is more than one level deeper than the code before it.
    """
    above: list[str] = []
    parents: dict[str, str] = {}
    seen: set[str] = set()
    for number, line in _lines(path, encoding):
        depth, code = 0, line.strip()
        while code.startswith(lead):
            depth, code = depth + 1, code.removeprefix(lead).strip()
        if depth > len(above) or code in seen or not code:
            raise refused(path, f"has a code in line {number} that is repeated, empty or too deep")
        seen.add(code)
        if depth:
            parents[code] = above[depth - 1]
        above = [*above[:depth], code]
    return parents


def _beside(path: Path, name: str) -> Path:
    """Return the path of a file that the metadata name: the path as written, or a file in the folder of the
    metadata.
    """
    written = path.parent / name
    return written if written.is_file() else path.parent / PureWindowsPath(name).name


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig" if encoding == "utf-8" else encoding)
    except (OSError, UnicodeDecodeError, LookupError):
        raise refused(path, "cannot be read; correct its path or input.encoding") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line


def whole(text: str, path: Path, what: str) -> int:
    """Parse a whole number in the metadata."""
    if not text.isdecimal():
        raise refused(path, f"has {what} that are no whole number")
    return int(text)


def refused(path: Path, what: str) -> SpecificationError:
    """Return the error for a refused metadata file."""
    return SpecificationError(f"The file {path.name} of input.metadata {what}. Correct the file.")
