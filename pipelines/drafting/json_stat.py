"""Cells of a JSON-stat table (versions 1 and 2), converted to CSV, which `adjust` reads.

Source: JSON-stat 2.0, https://json-stat.org/full: the values are in row-major order of the dimensions `id`.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from microguard.pipelines.drafting.cell_status import refuse_unsaid
from microguard.pipelines.drafting.finished_table import draft_finished_table, is_total
from microguard.pipelines.drafting.sniff import sniff
from microguard.schemas.errors import InputRejected

#: Names of the value and status columns, as in SDMX-CSV.
VALUE, STATUS = "OBS_VALUE", "OBS_STATUS"
MOST_CELLS = 2_000_000


@dataclass(frozen=True)
class JsonStatTable:
    """The cells of a table.

    Attributes
    ----------
    columns : tuple of str
        Dimensions, without that of several measures; then the measures, or `VALUE`, and `STATUS` if the table
        has statuses.
    rows : list of tuples
        One for each cell that has a value, texts as they are written to CSV.
    parents : mapping of dimension to code to parent
        Parents from `category.child`, without codes whose parent is not in the table.
    totals : mapping of dimension to code
        The code that is a total mark, or whose label is one.
    without_total : tuple of str
        Dimensions with several codes and without a total.
    absent : int
        Number of combinations of codes without a value.
    statuses : frozenset of str
        Statuses of cells that have a value; JSON-stat does not name their standard.
    """

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    parents: dict[str, dict[str, str]]
    totals: dict[str, str]
    without_total: tuple[str, ...]
    absent: int
    statuses: frozenset[str]

    def write(self, path: Path) -> None:
        """Write the cells as CSV in UTF-8; refuse to replace an existing file.

        Raises
        ------
        InputRejected
            If the file exists, or cannot be written.
        """
        try:
            with open(path, "x", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([self.columns, *self.rows])
        except OSError as error:
            raise InputRejected(
                f"--cells: expected a new file in an existing folder; {path.name} cannot be created "
                f"({type(error).__name__}). Name another file."
            ) from None


def draft_of_cells(named: str, cells: str) -> str:
    """Write the cells of a JSON-stat file to a new CSV file, and return the draft of that file.

    Raises
    ------
    InputRejected
        If the input is no JSON-stat table, the file of cells exists, the draft is not of a table, or a
        status may say that a cell is confidential.
    """
    table = read_json_stat(Path(named))
    if table is None:
        raise InputRejected(
            f"--cells: expected a JSON-stat table as input, found {named}, which is no JSON-stat table. "
            "Omit --cells."
        )
    table.write(Path(cells))
    refuse_unsaid(table.statuses, f"{STATUS} of {Path(cells).name}")
    drafted = draft_finished_table(sniff(cells), table.parents, table.totals, table.absent)
    if drafted is None:
        found = "a table without its grand total, or a measure that lacks values"
        if table.without_total:
            found = f"none in {', '.join(table.without_total)}"
        raise InputRejected(
            f"{Path(named).name}: expected a total (Total, _T, ...) in each dimension of several codes, "
            f"found {found}. In {Path(cells).name}, keep one code of such a dimension or add its totals, and "
            "draft that file without --cells."
        )
    return drafted


def read_json_stat(path: Path) -> JsonStatTable | None:
    """Read a JSON-stat file; return None if it is another kind of JSON file.

    Raises
    ------
    InputRejected
        If it is no JSON, holds several tables, has more than `MOST_CELLS` cells, or contradicts itself.
    """
    try:
        content = json.loads(path.read_text("utf-8-sig"), parse_constant=_no_number)
    except (OSError, ValueError, RecursionError):
        raise InputRejected(
            f"{path.name} cannot be read as JSON in UTF-8. Check that the file is complete."
        ) from None
    if not isinstance(content, dict):
        return None
    if (
        content.get("class") == "collection"
        or len([each for each in content.values() if _is_table(each)]) > 1
    ):
        raise InputRejected(
            f"{path.name}: expected one JSON-stat table, found a collection. Save one of its tables "
            "as a file."
        )
    table = next((each for each in (content, *content.values()) if _is_table(each)), None)
    if table is None:
        return None
    try:
        return _read(table)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise InputRejected(
            f"{path.name}: expected JSON-stat whose id, size, category.index and value agree, found others. "
            "Save the table again from its source."
        ) from None


def _no_number(constant: str) -> None:
    """Refuse NaN and Infinity, which Python's parser accepts but JSON does not allow."""
    raise ValueError(constant)


def _is_table(content: object) -> bool:
    return isinstance(content, dict) and "dimension" in content and "value" in content


def _read(table: Mapping[str, Any]) -> JsonStatTable:
    dimensions = table["dimension"]
    names = [str(name) for name in table.get("id", dimensions.get("id"))]
    sizes = [int(size) for size in table.get("size", dimensions.get("size"))]
    codes = [_codes(dimensions[name]["category"]) for name in names]
    number = math.prod(sizes)
    if [len(set(each)) for each in codes] != sizes or number > MOST_CELLS:
        raise ValueError
    values, statuses = _dense(table["value"], number), _dense(table.get("status") or {}, number)
    roles = table.get("role", dimensions.get("role")) or {}
    measures = next(
        (names.index(name) for name in roles.get("metric", ()) if len(codes[names.index(name)]) > 1), None
    )
    kept = [i for i in range(len(names)) if i != measures]
    measured = [VALUE] if measures is None else codes[measures]
    has_status = any(each is not None for each in statuses) and measures is None
    found: dict[tuple[str, ...], dict[str, tuple[str, str]]] = {}
    for cell, value, status in zip(product(*codes), values, statuses, strict=True):
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError
            measure = VALUE if measures is None else cell[measures]
            found.setdefault(tuple(cell[i] for i in kept), {})[measure] = (repr(value), str(status or ""))
    rows = [
        (
            *cell,
            *(each.get(name, ("", ""))[0] for name in measured),
            *((each[VALUE][1],) if has_status else ()),
        )
        for cell, each in found.items()
    ]
    columns = (*(names[i] for i in kept), *measured, *((STATUS,) if has_status else ()))
    if len(set(columns)) < len(columns):
        raise ValueError
    parents = {names[i]: _parents(dimensions[names[i]]["category"], set(codes[i])) for i in kept}
    totals = {names[i]: _totals(dimensions[names[i]]["category"], codes[i]) for i in kept}
    return JsonStatTable(
        columns,
        rows,
        {name: each for name, each in parents.items() if each},
        {name: each[0] for name, each in totals.items() if len(each) == 1},
        tuple(names[i] for i in kept if len(codes[i]) > 1 and len(totals[names[i]]) != 1),
        sum(value is None for value in values),
        frozenset(
            str(status).strip()
            for value, status in zip(values, statuses, strict=True)
            if value is not None and status is not None
        ),
    )


def _codes(category: Mapping[str, Any]) -> list[str]:
    """Return the codes of a dimension in the order of the values; a dimension with one code needs no
    index.
    """
    index = category.get("index", category.get("label"))
    codes = [str(code) for code in index or ()]
    if isinstance(index, Mapping) and "index" in category:
        by_position = {int(position): str(code) for code, position in index.items()}
        return [by_position[position] for position in range(len(codes))]
    if "index" not in category and len(codes) > 1:
        raise ValueError
    return codes


def _totals(category: Mapping[str, Any], codes: Sequence[str]) -> list[str]:
    """Return the codes that are total marks; if there are none, the codes whose labels are total marks."""
    labels = category.get("label") or {}
    return [code for code in codes if is_total(code)] or [
        code for code in codes if is_total(str(labels.get(code, "")))
    ]


def _dense(listed: object, number: int) -> Sequence[Any]:
    """Return one entry per cell from a list, from a mapping by position, or from one entry for all cells."""
    if isinstance(listed, str):
        return [listed] * number
    if isinstance(listed, Mapping):
        entries: list[Any] = [None] * number
        for position, entry in listed.items():
            entries[range(number).index(int(position))] = entry
        return entries
    if not isinstance(listed, list) or len(listed) != number:
        raise ValueError
    return listed


def _parents(category: Mapping[str, Any], codes: set[str]) -> dict[str, str]:
    """Return the parent of each code; return nothing if a code has several parents, because it is then no
    hierarchy.
    """
    pairs = [
        (str(child), str(parent))
        for parent, children in (category.get("child") or {}).items()
        for child in children
        if {str(parent), str(child)} <= codes
    ]
    parents = dict(pairs)
    return parents if len(parents) == len(pairs) else {}
