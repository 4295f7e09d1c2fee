"""Recognition of a finished table of cells, and draft of its `[table]` for the verb adjust.

A column with a total mark is a dimension. Its codes nest by their first characters, or by levels one below
the other in the file, each of which adds up to the total. Numeric columns are recognised by their names and
by properties that hold in every cell: contributors are whole numbers, a largest contribution is at most the
value.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from microguard.pipelines.drafting.arrow_types import is_flat
from microguard.pipelines.drafting.cell_status import OBSERVATION, SDMX, cell_status
from microguard.pipelines.drafting.counting import K
from microguard.pipelines.drafting.sniff import Source
from microguard.pipelines.drafting.table import quoted, toml_key

TOTALS = frozenset(
    ["total", "_t", "totals", "all", "alles", "insgesamt", "ensemble", "totale", "totaal", "yhteensä"]
) | {"i alt"}
"""Total marks in lower case; Eurostat and SDMX write _T."""
_CONTRIBUTORS = re.compile(
    r"(?i)^(n|nb.*|n_?obs.*|freq.*|count.*|obs|effectif.*|contributors?|firms|number.*)$"
)
_LARGEST = re.compile(r"(?i)(^|_)(max\d*|top_?\d+|largest\d*|maxscore)$|_max$")
#: Codes of SDMX and Eurostat for numbers of persons, households, enterprises and other units.
_UNITS = frozenset(
    [
        "NR",
        "NUMBER",
        "N",
        "PS",
        "PERS",
        "PER",
        "PN",
        "HH",
        "HSHD",
        "ENT",
        "ENTR",
        "LE",
        "EST",
        "LKAU",
        "COUNT",
    ]
)
#: Type: function that returns whether the values of some codes add up to a given value.
AddsUp = Callable[[list[str], float], bool]
MOST_ROWS = 2_000_000
#: Maximum relative difference between a total and the sum of its parts that counts as rounding, in addition
#: to half a unit of the last digits.
_RELATIVE = 1e-6


@dataclass
class FinishedTable:
    """Roles of the columns of a finished table.

    Attributes
    ----------
    totals : mapping of a dimension to its total mark
    value : str or None
        Column of the values; None of counts alone.
    contributors : str or None
    largest : list of str, the largest first
    status : str or None, with statuses: its codes and their meaning
    parents : mapping of a dimension to code -> parent
    open_dimensions : list of str
        Dimensions whose codes do not add up to the total, flat or nested.
    named_parents : mapping of an open dimension to code -> parent, as the source of the table names them
    others : list of str
        Columns that are left out.
    incomplete : set of str
        Columns of `others` that have numbers, but not in every cell.
    decimal_comma : bool
        Whether numbers have a decimal comma.
    absent : int
        Number of cells of the source without a value.
    """

    totals: dict[str, str]
    value: str | None = None
    contributors: str | None = None
    largest: list[str] = field(default_factory=list)
    status: str | None = None
    statuses: Mapping[str, str] = field(default_factory=dict)
    parents: dict[str, dict[str, str]] = field(default_factory=dict)
    open_dimensions: list[str] = field(default_factory=list)
    named_parents: dict[str, dict[str, str]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    incomplete: set[str] = field(default_factory=set)
    decimal_comma: bool = False
    absent: int = 0


def draft_finished_table(
    source: Source,
    parents: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    totals: Mapping[str, str] = MappingProxyType({}),
    absent: int = 0,
) -> str | None:
    """Return the draft of a finished table; None if the input is not a table of cells.

    Parameters
    ----------
    parents : mapping of dimension to code to parent
        Parents that the source of the table names, for dimensions whose sums do not show them.
    totals : mapping of dimension to code
        Total marks that the source of the table names.
    absent : int
        Number of cells of the source without a value. If there are any, totals must add up exactly: otherwise
        a missing small part of a total would count as 0, and the difference as rounding.
    """
    frame = _frame(source)
    table = None if frame is None else recognised(frame, totals)
    if frame is None or table is None:
        return None
    table.absent = absent
    for name in table.open_dimensions:
        codes, total = set(frame[name]), table.totals[name]
        table.named_parents[name] = {
            code: above
            for code, above in parents.get(name, {}).items()
            if {code, above} <= codes and total not in (code, above)
        }
    return "\n".join(_lines(source, table)) + "\n"


def recognised(
    frame: pd.DataFrame, named_totals: Mapping[str, str] = MappingProxyType({})
) -> FinishedTable | None:
    """Return the roles of the columns of a table; None if the rows are not cells.

    Parameters
    ----------
    frame : DataFrame
        All columns as text.
    named_totals : mapping of dimension to code
        Total marks that the source of the table names.
    """
    totals = {}
    for name in frame:
        codes = set(frame[name].dropna())
        marks = {code for code in codes if is_total(code)} or codes & {named_totals.get(str(name))}
        if len(marks) == 1:
            totals[str(name)] = marks.pop()
    grand = np.ones(len(frame), bool)
    for name, mark in totals.items():
        grand &= (frame[name] == mark).to_numpy()
    if not totals or grand.sum() != 1 or frame.duplicated(list(totals)).any():
        return None
    table, rest = FinishedTable(totals), [str(name) for name in frame if name not in totals]
    numbers = {name: _numbers(frame[name]) for name in rest}
    numeric = {name: each for name, each in numbers.items() if each is not None}
    table.others = [name for name in rest if name not in numeric]
    for name in table.others:
        known = frame[name][frame[name].fillna("").str.strip() != ""]
        if len(known) and _numbers(known) is not None:
            table.incomplete.add(name)
    table.decimal_comma = any(frame[name].str.contains(",", regex=False).any() for name in numeric)
    found = cell_status(frame, table.others)
    if found is not None:
        table.status, table.statuses = found
        table.others.remove(table.status)
    _numbers_of(table, numeric)
    if table.value is None and table.contributors is None:
        return None
    amounts = numeric[table.value or table.contributors or ""]
    ruled = table.contributors is not None or table.largest or table.status is not None
    if table.value == OBSERVATION and not ruled and _are_counts(frame, amounts):
        table.value, table.contributors = None, OBSERVATION
    for name in totals:
        _nest(table, frame, name, amounts)
    return table


def _are_counts(frame: pd.DataFrame, amounts: np.ndarray) -> bool:
    """Return whether whole numbers are counts: the units column has a single code, which is one of `_UNITS`.

    `UNIT_MULT` of SDMX is the power of ten of the unit: thousands of persons are no counts.
    """
    units = [set(frame[name].str.upper()) for name in frame if str(name).upper() in ("UNIT", "UNIT_MEASURE")]
    counted = len(units) == 1 and len(units[0]) == 1 and units[0] <= _UNITS
    counted &= all(set(frame[name]) <= {"0", ""} for name in frame if str(name).upper() == "UNIT_MULT")
    return counted and not (amounts % 1).any() and bool(amounts.min() >= 0)


def is_total(code: str) -> bool:
    """Return whether a code is a total mark, such as Total, TOTAL_EAST or _T."""
    plain = code.strip().lower()
    return plain in TOTALS or re.match(r"total[ _-]", plain) is not None


def _numbers_of(table: FinishedTable, numeric: Mapping[str, np.ndarray]) -> None:
    """Assign the numeric columns to the roles value, contributors and largest contributions."""
    left = dict(numeric)
    whole = {name for name, each in left.items() if np.all(each == np.rint(each)) and np.all(each >= 0)}
    named = [name for name in left if _CONTRIBUTORS.search(name) and name in whole]
    if named:
        table.contributors = named[0]
        del left[named[0]]
    largest = [name for name in left if _LARGEST.search(name)]
    values = [OBSERVATION] if OBSERVATION in left else [name for name in left if name not in largest]
    # a column of years is not a value
    values.sort(key=lambda name: bool(left[name].min() == left[name].max()))
    if values:
        table.value = values[0]
        sizes = np.abs(left[table.value])
        table.largest = [
            name
            for name in sorted(largest, key=lambda each: -float(left[each].sum()))
            if np.all(left[name] <= sizes * (1 + _RELATIVE) + _RELATIVE)
        ]
    table.others += [name for name in left if name not in (table.value, *table.largest)]


def _nest(table: FinishedTable, frame: pd.DataFrame, name: str, amounts: np.ndarray) -> None:
    """Find the parent of each code of a dimension, from cells in which all other dimensions are totals."""
    inside = np.ones(len(frame), bool)
    for other, mark in table.totals.items():
        if other != name:
            inside &= (frame[other] == mark).to_numpy()
    codes = frame[name][inside].str.strip().tolist()
    values = dict(zip(codes, amounts[inside].tolist(), strict=True))
    total = values.pop(table.totals[name].strip())
    digits = max((len(repr(each).partition(".")[2]) for each in values.values()), default=0)
    unit = 0.5 * 10.0 ** -min(digits, 9) if digits and any(v != int(v) for v in values.values()) else 0.5
    listed = [code for code in codes if code in values]

    def adds_up(parts: list[str], whole: float) -> bool:
        found = sum(values[part] for part in parts)
        return bool(parts) and abs(found - whole) <= unit * (len(parts) + 1) + _RELATIVE * abs(whole)

    if adds_up(listed, total):
        return
    prefixed = {code: above for code in listed if (above := _prefix(code, values)) is not None}
    tops = [code for code in listed if code not in prefixed]
    children = {
        above: [code for code in listed if prefixed.get(code) == above] for above in prefixed.values()
    }
    if adds_up(tops, total) and all(adds_up(parts, values[above]) for above, parts in children.items()):
        table.parents[name] = prefixed
        return
    for order in (listed, sorted(listed)):
        levels = list(_runs(order, total, adds_up))
        if sum(map(len, levels)) == len(order):
            found = _between(levels, values, adds_up)
            if found is not None:
                table.parents[name] = found
                return
    table.open_dimensions.append(name)


def _prefix(code: str, values: Mapping[str, float]) -> str | None:
    """Return the longest other code with which a code begins."""
    return next((code[:end] for end in range(len(code) - 1, 0, -1) if code[:end] in values), None)


def _runs(order: list[str], total: float, adds_up: AddsUp) -> Iterator[list[str]]:
    """Split codes into consecutive runs that each add up to the total: the levels of a classification."""
    run: list[str] = []
    for code in order:
        run.append(code)
        if adds_up(run, total):
            yield run
            run = []


def _between(levels: list[list[str]], values: Mapping[str, float], adds_up: AddsUp) -> dict[str, str] | None:
    """Map each code to its parent at the level above: the code whose value equals the sum of a run of
    codes.
    """
    parents: dict[str, str] = {}
    for above, below in pairwise(levels):
        left = list(below)
        for code in above:
            run: list[str] = []
            while left and not adds_up(run, values[code]):
                run.append(left.pop(0))
            if not adds_up(run, values[code]):
                return None
            parents |= dict.fromkeys(run, code)
        if left:
            return None
    return parents


def _numbers(texts: pd.Series) -> np.ndarray | None:
    plain = texts.fillna("").str.strip()
    comma = plain.str.contains(",", regex=False).any() and not plain.str.contains(".", regex=False).any()
    found = pd.to_numeric(plain.str.replace(",", ".", regex=False) if comma else plain, errors="coerce")
    numbers: np.ndarray = found.to_numpy(float)
    return None if np.isnan(numbers).any() else numbers


def _frame(source: Source) -> pd.DataFrame | None:
    """Read a file as text; None if it is not a single CSV or Parquet file of moderate size."""
    if len(source.files) != 1:
        return None
    path = source.files[0]
    if source.format == "parquet":
        if not all(is_flat(each.type) for each in source.schema):
            return None  # cells have no nested or binary values, whose bytes may be no text
        if pq.read_metadata(path).num_rows > MOST_ROWS:
            return None
        return pd.read_parquet(path).astype("string").astype(object)
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding=source.encoding, newline="") as file:
            rows = csv.reader(file, delimiter=source.delimiter, quotechar=source.quote)
            header = next(rows)
            listed = [row for _, row in zip(range(MOST_ROWS), rows, strict=False)]
    except (OSError, UnicodeError, csv.Error, StopIteration):
        return None
    if any(len(row) != len(header) for row in listed) or len(set(header)) < len(header):
        return None
    return pd.DataFrame(listed, columns=header, dtype=object)


def _lines(source: Source, table: FinishedTable) -> Iterator[str]:
    counts = table.value is None
    sdmx = [name for name in table.others if name in SDMX]
    yield "# Draft by microguard from the cells of a finished table, for microguard adjust. Read each line."
    yield from ("", "[release]", f"name = {quoted(plain_name(source.path))}", f"k = {K}", "")
    yield from ("[input]", f"path = {quoted(source.written)}", f'format = "{source.format}"')
    if source.format == "csv":
        yield f"delimiter = {quoted(source.delimiter)}"
        yield f'encoding = "{source.encoding}"'
        if table.decimal_comma:
            yield 'decimal = ","'
    yield from ("", "[variables]")
    for name in table.totals:
        yield f'{toml_key(name)} = {{ role = "other", kind = "nominal" }}    # a dimension with a total mark'
    numbers = [name for name in (table.value, table.contributors, *table.largest) if name is not None]
    for name in numbers:
        yield f'{toml_key(name)} = {{ role = "other", kind = "numeric" }}'
    if table.status is not None:
        yield f'{toml_key(table.status)} = {{ role = "other", kind = "nominal" }}'
    for name in table.others:
        lacking = "numbers that some cells lack" if name in table.incomplete else "not recognised"
        why = "of SDMX" if name in sdmx else lacking
        yield f'{toml_key(name)} = {{ role = "identifier" }}    # {why}: left out'
    yield from ("", "[table]", 'source = "cells"')
    yield f"value = {quoted(table.value or table.contributors or '')}"
    if counts:
        yield 'kind = "frequency"    # counts of units'
    if counts and table.status is not None:
        yield 'method = "suppression"    # other methods for counts do not protect single cells'
    yield f"tables = [[{', '.join(map(quoted, table.totals))}]]"
    yield f"total = {quoted(first := next(iter(table.totals.values())))}"
    others = {name: mark for name, mark in table.totals.items() if mark != first}
    if table.absent:
        yield f"tolerance = 0    # {table.absent:,} cell(s) of the source have no value: no total needs one"
    if others:
        marks = ", ".join(f"{toml_key(name)} = {quoted(mark)}" for name, mark in others.items())
        yield f"totals = {{ {marks} }}"
    if not counts and table.contributors is not None:
        yield f"contributors = {quoted(table.contributors)}"
    if table.largest:
        yield f"largest = [{', '.join(map(quoted, table.largest))}]"
        yield "dominance = { n = 1, k = 85 }" if len(table.largest) == 1 else "p_percent = 10"
    if table.status is not None:
        yield f"status = {quoted(table.status)}"
        pairs = ", ".join(f"{quoted(code)} = {quoted(word)}" for code, word in table.statuses.items())
        yield f"statuses = {{ {pairs} }}"
    if not counts and table.contributors is None and not table.largest and table.status is None:
        yield "# A rule is missing: name a column in contributors, largest, lower_protection or status."
    for name in table.open_dimensions:
        if not table.named_parents[name]:
            yield f"# Codes of {quoted(name)} do not add up to the total. State the parents, for example:"
            yield f'# parents = {{ {toml_key(name)} = {{ PART = "WHOLE" }} }}'
    why = "by the sums of the cells"
    for name, parents in (table.parents | table.named_parents).items():
        if name in table.named_parents:
            why = "named by the source; the sums of the cells do not show them"
        if parents:
            yield from ("", f"[table.parents.{toml_key(name)}]    # {why}")
            yield from (f"{toml_key(code)} = {quoted(above)}" for code, above in parents.items())
    yield from ("", "[publish]", f"path = {quoted('lake/' + plain_name(source.path))}")
    yield f"evidence = {quoted('evidence/' + plain_name(source.path))}"


def plain_name(path: Path) -> str:
    """Convert the name of a file to a valid release name."""
    return re.sub(r"[^\w.-]+", "_", path.name.split(".")[0]).strip("_.-")[:50] or "release"
