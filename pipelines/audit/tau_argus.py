"""Audit of a table's tau-ARGUS files: cells in their order, codes of hierarchies, and described fields."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

FOLDER, SEPARATOR, LEADS = "tau-argus", ";", "@#~^"
#: Status codes of a published and of a suppressed cell.
_STATUSES = {"published": "S", "suppressed": "U"}


def is_named_after(name: str, stems: Iterable[str]) -> bool:
    """Return whether a file name is that of the cells, the fields or a hierarchy of one of the tables."""
    return any(re.fullmatch(rf"{FOLDER}/{re.escape(stem)}(\.tab|\.rda|-[0-9]+\.hrc)", name) for stem in stems)


def differs(folder: Path, table: Mapping[str, Any], total: str) -> bool:
    """Return whether the files of a table are missing or have other cells, codes or fields than the table.

    A column may have its own total mark: a text that always represents the total and is never a code.
    """
    stem, columns = Path(table["file"]).stem, list(table["columns"])
    try:
        with open(folder / FOLDER / f"{stem}.tab", encoding="utf-8", newline="") as file:
            found = list(csv.reader(file, delimiter=SEPARATOR))
        fields = (folder / FOLDER / f"{stem}.rda").read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return True
    content = pq.read_table(folder / table["file"])
    texts = [_texts(column.to_pylist()) for column in content.columns]
    if len(texts) > len(columns) + 1:  # the status follows the codes and the value
        texts[-1] = [_STATUSES[status] for status in texts[-1]]
    expected = [list(line) for line in zip(*texts, strict=True)]
    if [len(line) for line in found] != [len(line) for line in expected]:
        return True
    known = {SEPARATOR, *_STATUSES.values(), *LEADS, *content.column_names}
    for place in range(len(columns)):
        ours, theirs = ([line[place] for line in lines] for lines in (expected, found))
        codes = set(ours) - {total}
        marks = {given for code, given in zip(ours, theirs, strict=True) if code == total}
        if len(marks) > 1 or marks & codes:
            return True
        for line, given in zip(expected, theirs, strict=True):
            line[place] = given if line[place] == total else line[place]
        if not marks:  # only the description contains the total mark if no cell is a total
            fields = [line for line in fields if not re.fullmatch(r'\s*<TOTCODE> "[^"]*"', line)]
        hierarchy = f"{stem}-{place + 1}.hrc"
        if _has_other_codes(folder / FOLDER / hierarchy, codes):
            return True
        known |= {hierarchy, *marks}
    return found != expected or not all(_is_field(line, known) for line in fields)


def _has_other_codes(path: Path, codes: set[str]) -> bool:
    """Return whether a written hierarchy has other codes than its column, or a code more than once."""
    if not path.is_file():
        return False
    lead = next((mark for mark in LEADS if not any(code.startswith(mark) for code in codes)), "")
    lines = [line.lstrip(lead) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    return sorted(lines) != sorted(codes)


def _is_field(line: str, known: set[str]) -> bool:
    """Return whether a line of a description is a keyword, a small number or one of the known texts."""
    found = re.fullmatch(r'\s*(?:<[A-Z]+>)?\s*(?:[0-9]{1,2}|"([^"]*)")?', line)
    return found is not None and (found[1] is None or found[1] in known)


def _texts(values: list[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in values]
