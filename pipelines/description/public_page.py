"""Render the public page of a release: its content, guarantee and limits, without the original data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import Markup
from microguard.pipelines.description.accessible_page import accessible_page
from microguard.pipelines.description.recodes import recode_text
from microguard.pipelines.description.statistics import ColumnStatistics, display_text

PAGE = "report.html"
#: Maximum number of cells that the page lists for one table and for all tables; all cells are in the files.
MOST_CELLS, MOST_CELLS_TOGETHER = 300, 6_000
#: Names that are displayed with a hyphen.
_HYPHENED = {"quasi_identifier": "quasi-identifier"}
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class ShownTable:
    """A published table on the page.

    Attributes
    ----------
    file : str
    title : str
    columns : tuple of str
    cells : int
    rows : tuple of tuple of str
        Rows in the order of the file; empty if there are too many.
    """

    file: str
    title: str
    columns: tuple[str, ...]
    cells: int
    rows: tuple[tuple[str, ...], ...]


def public_page(folder: Path, manifest: Mapping[str, Any], columns: Sequence[ColumnStatistics]) -> str:
    """Return the page as HTML without external resources.

    Parameters
    ----------
    folder : Path
        Folder of the release.
    manifest : mapping
    columns : sequence of ColumnStatistics
        Statistics of the microdata; empty for a release of tables.
    """
    page = (
        _environment()
        .get_template("public_page.html")
        .render(
            release=manifest,
            roles={column["name"]: column for column in manifest.get("columns", ())},
            columns=columns,
            tables=list(_tables(folder, manifest)),
            style=Markup((_HERE / "public_page.css").read_text(encoding="utf-8")),
        )
    )
    return accessible_page(page)


@cache
def _environment() -> jinja2.Environment:
    """Return the template environment; templates are compiled once per process."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FileSystemLoader(_HERE)
    )
    environment.globals |= {
        "n": _count,
        "g": _number,
        "words": _words,
        "recoded": recode_text,
        "listed": _listed,
    }
    return environment


def _tables(folder: Path, manifest: Mapping[str, Any]) -> Iterator[ShownTable]:
    left = MOST_CELLS_TOGETHER
    for table in manifest["tables"]:
        path = folder / table["file"]
        cells = pq.read_metadata(path).num_rows
        shown = cells <= min(MOST_CELLS, left)
        left -= cells if shown else 0
        names = tuple(pq.read_schema(path).names)
        rows = _rows(pq.ParquetFile(path).read()) if shown else ()
        title = " by ".join(table.get("variables") or table["columns"])
        yield ShownTable(table["file"], title, names, cells, rows)


def _rows(content: pa.Table) -> tuple[tuple[str, ...], ...]:
    none = "suppressed" if "status" in content.column_names else "missing"
    columns = [
        [none if value is None else display_text(value) for value in column.to_pylist()]
        for column in content.columns
    ]
    return tuple(zip(*columns, strict=True))


def _listed(column: ColumnStatistics) -> Sequence[tuple[str, int]]:
    """Return values with their frequencies: numbers in ascending order, other values by frequency."""
    values = column.frequencies or ()
    return values if column.numbers is None else sorted(values, key=lambda each: float(each[0]))


def _count(value: int) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _number(value: float) -> str:
    return f"{value:,.6g}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _words(name: str) -> str:
    return _HYPHENED.get(name, name.replace("_", " "))
