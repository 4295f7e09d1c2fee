"""Public page of a release: its content, guarantee and limits, without original data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import Markup
from microguard.pipelines.description.recodes import recode_text
from microguard.pipelines.description.statistics import ColumnStatistics, display_text

PAGE = "report.html"
#: Maximum number of cells that the page shows, for one table and for all tables; the files contain all cells.
MOST_CELLS, MOST_CELLS_TOGETHER = 300, 6_000
#: Numbers from this one on are shown with an exponent.
LARGEST = 1e15
#: Names that the page shows with a hyphen.
_HYPHENED = {"quasi_identifier": "quasi-identifier"}
_HERE = Path(__file__).parent
_HEADING = re.compile(r"<h2>(?P<text>.*?)</h2>", re.DOTALL)
_PIECE = re.compile(
    r"<h[23](?: [^>]*)?>(?P<heading>.*?)</h[23]>|<table[^>]*>(?P<caption>\s*<caption)?"
    r"|<summary>(?P<summary>.*?)</summary>|(?P<closed></details>)"
    r"|<th(?=[ >])(?P<scope>[^>]*scope=)?",
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True)
class ShownTable:
    """A published table as the page shows it.

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
        "shown": _shown,
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
    """Format a number with six digits, without an exponent up to the largest amounts of statistics."""
    short = f"{value:,.6g}"
    if "e+" in short and abs(value) < LARGEST:
        short = f"{float(short):,.0f}"
    return short.replace(",", "\N{NARROW NO-BREAK SPACE}")


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _words(name: str) -> str:
    return _HYPHENED.get(name, name.replace("_", " "))


def accessible_page(html: str) -> str:
    """Add a table of contents to a page, and captions and scopes to its tables.

    A heading `h2` gets an anchor, and the list replaces the element ``<nav></nav>``. A table without a
    caption gets the text of the heading above it, or of its ``<summary>``, for screen readers. Nothing else
    is changed.
    """
    titles: list[str] = []

    def anchored(match: re.Match[str]) -> str:
        titles.append(match["text"])
        return f'<h2 id="part-{len(titles)}">{match["text"]}</h2>'

    html = _HEADING.sub(anchored, html)
    items = "".join(
        f'<li><a href="#part-{number}">{_TAG.sub("", title)}</a></li>'
        for number, title in enumerate(titles, 1)
    )
    nav = f'<nav aria-label="Contents"><ul>{items}</ul></nav>' if titles else ""
    return _with_captions(html.replace("<nav></nav>", nav, 1))


def _with_captions(html: str) -> str:
    """Give each table the caption of the heading or summary above it, and each header cell a scope."""
    heading, summary = "Table", ""

    def completed(match: re.Match[str]) -> str:
        nonlocal heading, summary
        found = match.group()
        if match["heading"] is not None:
            heading = _TAG.sub("", match["heading"]).strip()
            return found
        if match["summary"] is not None or match["closed"]:
            summary = _TAG.sub("", match["summary"] or "").strip()
            return found
        if found.startswith("<table"):
            caption = "" if match["caption"] else f'<caption class="heard">{summary or heading}</caption>'
            return f"{found}{caption}"
        return found if match["scope"] else f'<th scope="col"{found[3:]}'

    return _PIECE.sub(completed, html)
