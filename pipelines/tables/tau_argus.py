"""Write protected tables as tau-ARGUS files: cells (`.tab`), their fields (`.rda`), hierarchies (`.hrc`).

The files have codes and published values only. In tables with suppressed cells a status follows the value: S
is published, U is suppressed (with an empty value). The files do not show which cells are sensitive.

References
----------
de Wolf et al. 2014, tau-ARGUS User's Manual 4.1, sections 5.1.4 and 5.2.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from microguard.pipelines.guarantees.suppressed_table import PUBLISHED, SUPPRESSED
from microguard.pipelines.guarantees.table_files import STATUS
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.specification.table import Table

FOLDER = "tau-argus"
SEPARATOR = ";"
CODES = {PUBLISHED: "S", SUPPRESSED: "U"}
LEADS = "@#~^"
"""Marks of depth in a hierarchy: the first that no code begins with."""


def write_tau_argus(folder: Path, contents: Mapping[str, pa.Table], table: Table) -> None:
    """Write the files of every table into a folder of a staged release.

    Parameters
    ----------
    contents : file name of a table -> its columns of codes, then its values
    """
    (folder / FOLDER).mkdir()
    for name, content in _with_given_totals(contents, table).items():
        stem = Path(name).stem
        with open(folder / FOLDER / f"{stem}.tab", "w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=SEPARATOR, lineterminator="\n").writerows(cell_lines(content))
        metadata = [f'<SEPARATOR> "{SEPARATOR}"']
        suppressed = content.column_names[-1] == STATUS
        if suppressed:
            metadata += [
                f'{keyword} "{code}"'
                for keyword, code in zip(("<SAFE>", "<UNSAFE>"), CODES.values(), strict=True)
            ]
        for position, dimension in enumerate(content.column_names[: -2 if suppressed else -1]):
            metadata += [
                _quoted(dimension),
                "  <RECODEABLE>",
                f"  <TOTCODE> {_quoted(_total(dimension, table))}",
            ]
            if table.parents.get(dimension):
                codes = sorted(set(content[dimension].to_pylist()) - {_total(dimension, table)})
                lead = _lead(codes)
                lines = [lead * depth + code for depth, code in _tree(codes, table.parents[dimension])]
                hierarchy = f"{stem}-{position + 1}.hrc"
                _write(folder / FOLDER / hierarchy, lines)
                metadata += [
                    "  <HIERARCHICAL>",
                    f'  <HIERCODELIST> "{hierarchy}"',
                    f'  <HIERLEADSTRING> "{lead}"',
                ]
        metadata += [_quoted(table.value_name), "  <NUMERIC>", f"  <DECIMALS> {table.digits}"]
        if suppressed:
            metadata += [_quoted(STATUS), "  <STATUS>"]
        _write(folder / FOLDER / f"{stem}.rda", metadata)


def same_cells(folder: Path, contents: Mapping[str, pa.Table], table: Table) -> bool:
    """Return whether the written `.tab` files have the cells in the given order."""
    for name, content in _with_given_totals(contents, table).items():
        path = folder / FOLDER / Path(name).with_suffix(".tab").name
        with open(path, encoding="utf-8", newline="") as file:
            if list(csv.reader(file, delimiter=SEPARATOR)) != list(cell_lines(content)):
                return False
    return True


def _with_given_totals(contents: Mapping[str, pa.Table], table: Table) -> dict[str, pa.Table]:
    """Return the tables with the total marks of the input (`table.totals`)."""
    marked = dict(contents)
    for name, content in contents.items():
        for position, column in enumerate(content.column_names):
            if column in table.totals:
                mark, codes = table.totals[column], content[column].to_pylist()
                given = pa.array([mark if code == table.total else code for code in codes], pa.string())
                marked[name] = marked[name].set_column(position, column, given)
    return marked


def _total(dimension: str, table: Table) -> str:
    return table.totals.get(dimension, table.total)


def cell_lines(content: pa.Table) -> Iterator[list[str]]:
    """Return codes, value and status of each cell as text, with exact decimals."""
    columns = [
        ["" if value is None else str(value) for value in column.to_pylist()] for column in content.columns
    ]
    if content.column_names[-1] == STATUS:
        columns[-1] = [CODES[value] for value in columns[-1]]
    return map(list, zip(*columns, strict=True))


def _tree(codes: list[str], parents: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Return codes with their depths; each code is followed by its parts."""
    parts: dict[str | None, list[str]] = {}
    for code in codes:
        above = parents.get(code)
        parts.setdefault(above if above in codes else None, []).append(code)
    waiting = [(0, code) for code in reversed(parts.get(None, []))]
    while waiting:
        depth, code = waiting.pop()
        yield depth, code
        waiting += [(depth + 1, part) for part in reversed(parts.get(code, []))]


def _lead(codes: list[str]) -> str:
    for mark in LEADS:
        if not any(code.startswith(mark) for code in codes):
            return mark
    raise ProtectionFailed(
        f"Codes of a dimension begin with each of {LEADS!r}: a tau-ARGUS hierarchy cannot be written. Set "
        "table.tau_argus to false."
    )


def _quoted(text: str) -> str:
    if '"' in text:
        raise ProtectionFailed(
            "A name or the total mark has a quotation mark, which tau-ARGUS files cannot represent. Set "
            "table.tau_argus to false."
        )
    return f'"{text}"'


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
