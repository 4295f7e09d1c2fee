"""Audit of a release's CSV file: DuckDB compares its records with the Parquet files, in the same order."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
from microguard.pipelines.guarantees.queries import number, quoted_text

#: Types for which Arrow and DuckDB may write the same value as different texts.
_WRITTEN_OTHERWISE = ("FLOAT", "DOUBLE", "DECIMAL", "TIME", "DATE")
#: Significant digits of a text or number, as SQL.
_DIGITS = "rtrim(ltrim(regexp_replace(regexp_replace({0}, '[eE].*$', ''), '[^0-9]', '', 'g'), '0'), '0')"
#: Most digits that Arrow writes for a 32-bit number, a time of day and a timestamp in nanoseconds.
_MOST_DIGITS = {"FLOAT": 9, "TIMESTAMP": 23, "TIME": 15}
#: Most digits after the point of a second; DuckDB rounds further ones. Some of its versions read nanoseconds
#: with a time zone as microseconds.
_FRACTION = {"TIMESTAMP_NS": 9, "TIMESTAMPTZ_NS": 9, "TIMESTAMP": 6}
#: Text of a day of any year.
_DAY = "-?[0-9]{4,7}-[0-9]{2}-[0-9]{2}"
#: Decimals of which DuckDB casts no text with an exponent: no decimal has a further digit for `_differs`.
_FINEST = "DECIMAL(38,38)"
#: First and last values of types, which DuckDB shows so but reads from no text, and their texts.
_INFINITE = ("-infinity", "infinity")
_OF_MICROSECONDS = ("-290308-12-21T19:59:05.224193", "294247-01-10T04:00:54.775807")
_OF_NANOSECONDS = ("1677-09-21T00:12:43.145224193", "2262-04-11T23:47:16.854775807")
_ENDS = {
    "DATE": {
        "5877642-06-23 (BC)": "-5877641-06-23",
        **dict(zip(_INFINITE, ("-5877641-06-24", "5881580-07-11"), strict=True)),
    },
    "TIMESTAMP": dict(zip(_INFINITE, _OF_MICROSECONDS, strict=True)),
    "TIMESTAMP WITH TIME ZONE": dict(zip(_INFINITE, (f"{each}Z" for each in _OF_MICROSECONDS), strict=True)),
    "TIMESTAMP_NS": dict(zip(_INFINITE, _OF_NANOSECONDS, strict=True)),
    "TIMESTAMPTZ_NS": dict(zip(_INFINITE, (f"{each}Z" for each in _OF_NANOSECONDS), strict=True)),
}
#: Maximum size of a record in bytes.
LONGEST = 2**24


def wrong_records(
    engine: duckdb.DuckDBPyConnection, folder: Path, manifest: Mapping[str, Any], keys: Sequence[str]
) -> int:
    """Count the records of the CSV file that differ from the record of ``microdata`` at the same position.

    A quoted field is text, even if it is empty; an empty field without quotes is a missing value. If the file
    cannot be read or has other columns, all records are counted.

    Parameters
    ----------
    keys : sequence of str
        Columns of the view ``microdata``, in the order of the manifest.
    """
    path, records = folder / manifest["csv"]["file"], int(manifest["records"])
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        header = next(csv.reader(file), [])
    if header != [column["name"] for column in manifest["columns"]]:
        return records
    texts = [f"t{position}" for position in range(len(keys))]
    columns = ", ".join(f"{name}: 'VARCHAR'" for name in texts)
    engine.execute(
        "CREATE OR REPLACE VIEW as_text AS SELECT * FROM read_csv("
        f"{quoted_text(str(path))}, auto_detect = false, header = true, delim = ',', quote = '\"', "
        f"escape = '\"', nullstr = '', allow_quoted_nulls = false, max_line_size = {LONGEST}, "
        f"columns = {{{columns}}}, new_line = '\\r\\n')"  # the name of a column may have a line feed
    )
    different = " OR ".join(
        _differs(text, key, _type(engine, key)) for text, key in zip(texts, keys, strict=True)
    )
    try:
        return number(
            engine,
            "SELECT count(*) FROM (SELECT true AS one, * FROM microdata) POSITIONAL JOIN "
            f"(SELECT true AS other, * FROM as_text) WHERE one IS NULL OR other IS NULL OR {different}",
        )
    except duckdb.Error:  # the text of the error is not shown, because it may quote a record
        return records


def _differs(text: str, key: str, kind: str) -> str:
    """Return the SQL condition that a text differs from the value: further digits would be a disclosure."""
    shown = f"CAST({key} AS VARCHAR)"
    if kind.startswith("DECIMAL"):  # of decimals without digits before the point DuckDB writes no 0 there
        shown = f"regexp_replace({shown}, '^(-?)[.]', '\\10.')"
    other = f"{shown} IS DISTINCT FROM {text}"
    if not kind.startswith(_WRITTEN_OTHERWISE):
        return other
    read_as = _with_a_digit_before_the_point(kind)
    differs = f"TRY_CAST({text} AS {read_as}) IS DISTINCT FROM {key} OR ({text} IS NULL) <> ({key} IS NULL)"
    if kind == _FINEST:
        apart = f"abs(TRY_CAST({text} AS DOUBLE) - CAST({key} AS DOUBLE)) > 1e-9 * abs(CAST({key} AS DOUBLE))"
        differs = (
            f"{_DIGITS.format(text)} IS DISTINCT FROM {_DIGITS.format(shown)} OR coalesce({apart}, true)"
        )
    if kind in _ENDS:
        texts = " ".join(
            f"WHEN {quoted_text(end)} THEN {quoted_text(each)}" for end, each in _ENDS[kind].items()
        )
        differs = f"({differs}) AND {text} IS DISTINCT FROM CASE {shown} {texts} END"
    if kind == "DATE":  # DuckDB writes (BC) after a year before 1, and all others a minus sign before it
        differs += f" OR NOT regexp_full_match({text}, {quoted_text(_DAY)})"
        return f"{other} AND (year({key}) BETWEEN 1 AND 9999 OR {differs})"
    digits = _DIGITS.format(text)
    if kind == "DOUBLE":
        differs += f" OR {digits} IS DISTINCT FROM {_DIGITS.format(f'CAST({key} AS VARCHAR)')}"
    most = next((number for name, number in _MOST_DIGITS.items() if kind.startswith(name)), None)
    if most is not None:
        differs += f" OR length({digits}) > {most}"
    if kind in _FRACTION:
        differs += f" OR length(regexp_extract({text}, '[.]([0-9]*)', 1)) > {_FRACTION[kind]}"
    if kind.startswith("DECIMAL"):
        return f"{other} AND ({text} NOT LIKE '%E%' OR {differs})"
    return differs


def _with_a_digit_before_the_point(kind: str) -> str:
    """Return a decimal type that also has a digit before the point: DuckDB casts no 1E-8 to DECIMAL(8,8)."""
    found = re.fullmatch(r"DECIMAL\(([0-9]+),([0-9]+)\)", kind)
    if found is None or found[1] != found[2] or kind == _FINEST:
        return kind
    return f"DECIMAL({int(found[1]) + 1},{found[2]})"


def _type(engine: duckdb.DuckDBPyConnection, key: str) -> str:
    """Return the DuckDB type of a column in the view."""
    ((kind,),) = engine.execute(
        "SELECT data_type FROM duckdb_columns() WHERE table_name = 'microdata' AND column_name = ?", [key]
    ).fetchall()
    return str(kind)
