"""tau-ARGUS files of what is known of single cells (`.hst`), as rows of `pipelines.tables.a_priori`.

One line a cell and action: the codes in the order of the dimensions, then ``s`` (safe), ``u`` (sensitive),
``p`` (fixed: published as it is), ``c`` and a cost, or ``pl`` and the levels down and up. A cell with levels
is sensitive: rules of ours know no levels of safe cells.

References
----------
de Wolf et al. 2014, tau-ARGUS User's Manual 4.1, section 5.6.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from schemas.errors import InputRejected

SUFFIX = ".hst"
SEPARATORS = ";,\t"
"""The first of them that stands in the file separates its fields."""
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
    """One row a cell: its codes and what all its lines say together, as text.

    Raises
    ------
    InputRejected
        Where a line has an action or a number of fields that is none, or contradicts one before.
    OSError, ValueError
        Where the file cannot be read.
    """
    text = path.read_text(encoding="utf-8-sig")
    separator = next((each for each in SEPARATORS if each in text), SEPARATORS[0])
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for number, fields in enumerate(csv.reader(text.splitlines(), delimiter=separator), start=1):
        if not fields:
            continue
        codes, rest = tuple(fields[: len(dimensions)]), [each.strip() for each in fields[len(dimensions) :]]
        action = rest[0].lower() if rest else ""
        amounts = 0 if action in ("s", "u", "p") else len(ACTIONS.get(action, ()))
        if action not in ACTIONS or len(rest) != 1 + amounts or not all(rest):
            raise InputRejected(
                f"Line {number} of table.a_priori is no line of a tau-ARGUS file: expected "
                f"{len(dimensions)} code(s), then s, u, p, c and a cost, or pl and two levels."
            )
        said = dict(zip(ACTIONS[action], rest[1:], strict=True)) if amounts else {}
        if action in _STATUS:
            said["status"] = _STATUS[action]
        cell = cells.setdefault(codes, {})
        if any(cell.get(name, value) != value for name, value in said.items()):
            raise InputRejected(f"Line {number} of table.a_priori contradicts a line before it on its cell.")
        cell |= said
    columns = [*dimensions, "status", "lower_protection", "upper_protection", "cost"]
    rows = [{**dict(zip(dimensions, codes, strict=True)), **said} for codes, said in cells.items()]
    return pd.DataFrame(rows, columns=columns).fillna("")
