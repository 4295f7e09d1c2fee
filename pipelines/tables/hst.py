"""A priori files of tau-ARGUS (`.hst`), read as rows for `pipelines.tables.a_priori`.

A line has one action for one cell: the codes in the order of the dimensions, then ``s`` (safe), ``u``
(sensitive), ``p`` (fixed: published unchanged), ``c`` and a cost, or ``pl`` and the lower and upper
protection levels. A cell with levels is sensitive, because a safe cell has no levels in this file.

References
----------
de Wolf et al. 2014, tau-ARGUS User's Manual 4.1, section 5.6.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from microguard.schemas.errors import InputRejected

SUFFIX = ".hst"
SEPARATORS = ";,\t"
"""Possible separators of fields; the first of them that occurs in the file is used."""
ACTIONS = {
    "s": ("status",),
    "u": ("status",),
    "p": ("status",),
    "c": ("cost",),
    "pl": ("lower_protection", "upper_protection"),
}
"""What each action fills."""
_STATUS = {"s": "safe", "u": "sensitive", "p": "fixed", "pl": "sensitive"}


def read_hst(path: Path, dimensions: Sequence[str]) -> pd.DataFrame:
    """Return one row of text for each cell, with its codes and the entries of all its lines.

    Raises
    ------
    InputRejected
        If a line has an unknown action or a wrong number of fields, or contradicts an earlier line.
    OSError, ValueError
        If the file cannot be read.
    """
    text = path.read_text(encoding="utf-8-sig")
    separator = next((each for each in SEPARATORS if each in text), SEPARATORS[0])
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for number, fields in enumerate(csv.reader(text.splitlines(), delimiter=separator), start=1):
        if not fields:
            continue
        codes, words = (
            tuple(each.strip() for each in fields[: len(dimensions)]),
            [each.strip() for each in fields[len(dimensions) :]],
        )
        action = words[0].lower() if words else ""
        amounts = 0 if action in ("s", "u", "p") else len(ACTIONS.get(action, ()))
        if action not in ACTIONS or len(words) != 1 + amounts or not all(words):
            raise InputRejected(
                f"Line {number} of table.a_priori: expected {len(dimensions)} code(s), then s, u, p, c and "
                "a cost, or pl and two levels; found another line. Correct it."
            )
        entry = dict(zip(ACTIONS[action], words[1:], strict=True)) if amounts else {}
        if action in _STATUS:
            entry["status"] = _STATUS[action]
        cell = cells.setdefault(codes, {})
        if any(cell.get(name, value) != value for name, value in entry.items()):
            raise InputRejected(
                f"Line {number} of table.a_priori contradicts an earlier line about the same cell. Remove "
                "one of the two."
            )
        cell |= entry
    columns = [*dimensions, "status", "lower_protection", "upper_protection", "cost"]
    rows = [{**dict(zip(dimensions, codes, strict=True)), **entry} for codes, entry in cells.items()]
    return pd.DataFrame(rows, columns=columns).fillna("")
