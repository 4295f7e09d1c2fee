"""Audit the tau-ARGUS files of a release: each `.tab` file has the cells of its table, in the same order."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

FOLDER = "tau-argus"
#: Status of a published and of a suppressed cell.
_STATUSES = {"published": "S", "suppressed": "U"}


def is_cells(name: str) -> bool:
    """Return whether a file of a release contains cells for tau-ARGUS."""
    return name.startswith(f"{FOLDER}/") and name.endswith(".tab")


def is_named_after(name: str, stems: Iterable[str]) -> bool:
    """Return whether the name of a file is that of the cells, fields or a hierarchy of one of the tables."""
    return any(re.fullmatch(rf"{FOLDER}/{re.escape(stem)}(\.tab|\.rda|-[0-9]+\.hrc)", name) for stem in stems)


def differs(folder: Path, table: Mapping[str, Any], total: str) -> bool:
    """Return whether the cells in a table's file differ from the table, or the file does not exist.

    A column may have its own total mark: a text that always stands for the total and is never a code.
    """
    path = folder / FOLDER / f"{Path(table['file']).stem}.tab"
    if not path.is_file():
        return True
    content = pq.read_table(folder / table["file"])
    columns = [_texts(column.to_pylist()) for column in content.columns]
    if len(columns) > len(table["columns"]) + 1:  # the status follows codes and value
        columns[-1] = [_STATUSES[status] for status in columns[-1]]
    expected = [list(line) for line in zip(*columns, strict=True)]
    with open(path, encoding="utf-8", newline="") as file:
        found = list(csv.reader(file, delimiter=";"))
    if [len(line) for line in found] != [len(line) for line in expected]:
        return True
    for place in range(len(table["columns"])):
        ours, theirs = ([line[place] for line in lines] for lines in (expected, found))
        marks = {given for code, given in zip(ours, theirs, strict=True) if code == total}
        if len(marks) > 1 or marks & (set(ours) - {total}):
            return True
        for line, given in zip(expected, theirs, strict=True):
            line[place] = given if line[place] == total else line[place]
    return found != expected


def _texts(values: list[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in values]
