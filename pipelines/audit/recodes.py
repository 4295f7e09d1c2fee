"""Count of the records of a release that contradict the recodes stated in its manifest.

Protected numbers are rounded means of recoded values, so that only their bands can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import duckdb
from microguard.pipelines.audit.partitions import MICRODATA
from microguard.pipelines.guarantees.queries import number, quoted_text

#: Relative error of a limit in a column of 32-bit numbers.
ROUNDING = 1e-6


def contradictions(
    engine: duckdb.DuckDBPyConnection, manifest: Mapping[str, Any], keys: Mapping[str, str]
) -> dict[str, int]:
    """Return the number of contradicting records for each recoded variable that can be compared.

    Parameters
    ----------
    keys : mapping of name to column of the view ``microdata``
    """
    roles = {each["name"]: each.get("role") for each in manifest["columns"]}
    kinds = {each["name"]: str(each["type"]) for each in manifest["columns"]}
    counts = {}
    for recode in manifest["recodes"]:
        name = recode["variable"]
        protected = roles[name] == "quasi_identifier"
        wrong = " OR ".join(
            f"coalesce({each}, false)" for each in _wrong(keys[name], recode, protected, _half(kinds[name]))
        )
        if wrong:
            counts[name] = number(engine, f"SELECT count(*) FILTER ({wrong}) FROM {MICRODATA}")
    return counts


def _half(kind: str) -> float:
    """Return the rounding error of limits: half a unit of the last digit of a decimal type, otherwise 0."""
    found = re.fullmatch(r"decimal\d*\(\d+, ?(-?\d+)\)", kind)
    return 0.5 * 10.0 ** -int(found[1]) if found else 0.0


def _wrong(key: str, recode: Mapping[str, Any], protected: bool, half: float) -> Iterator[str]:
    """Yield SQL conditions that are true only for values that contradict the recode."""
    if "bands" in recode:
        labels = ", ".join(map(quoted_text, _labels(recode["bands"])))
        yield f"{key} NOT IN ({labels})"
    if protected or "bands" in recode:
        return
    value = f"TRY_CAST({key} AS DOUBLE)"
    known = f"isfinite({value}) AND"
    ends = {each: float(recode[each]) for each in ("top_code", "bottom_code") if each in recode}
    for end, sign in (("top_code", 1), ("bottom_code", -1)):
        if end in ends:
            limit, slack = ends[end], max(half, ROUNDING * abs(ends[end]))
            yield f"{known} {sign} * ({value} - {limit!r}) > {slack!r}"
    if "round_to" in recode:
        step = float(recode["round_to"])
        apart, size = (
            f"abs({value} - {step!r} * round({value} / {step!r}))",
            f"greatest(abs({value}), {step!r})",
        )
        at_end = "".join(
            f" AND abs({value} - {end!r}) > {max(half, ROUNDING * abs(end))!r}" for end in ends.values()
        )
        yield f"{known} {apart} > greatest({half!r}, {ROUNDING} * {size}){at_end}"
    elif not ends and "level" not in recode:  # a further recode may produce a value that is a missing code
        for code in recode.get("missing", ()):
            shown = f"CAST({key} AS VARCHAR)"  # booleans are not numbers
            text = isinstance(code, str)
            number_shown = f"TRY_CAST({shown} AS DOUBLE) = "
            yield f"{shown} = {quoted_text(code)}" if text else f"{number_shown}{float(code)!r}"


def _labels(bands: list[float]) -> list[str]:
    limits = [str(int(each)) if each == int(each) else repr(float(each)) for each in bands]
    inner = [f"{low} to under {high}" for low, high in pairwise(limits)]
    return [f"under {limits[0]}", *inner, f"{limits[-1]} and over"]
