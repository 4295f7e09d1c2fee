"""Count the records of a release that contradict the recodes which its manifest states.

Protected numbers are rounded means of recoded values, so that only their bands can be compared.
"""

from __future__ import annotations

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
    """Return the number of contradicting records of each recoded variable that can be compared.

    Parameters
    ----------
    keys : mapping of name to column of the view ``microdata``
    """
    roles = {each["name"]: each.get("role") for each in manifest["columns"]}
    counts = {}
    for recode in manifest["recodes"]:
        name = recode["variable"]
        protected = roles[name] == "quasi_identifier"
        wrong = " OR ".join(f"coalesce({each}, false)" for each in _wrong(keys[name], recode, protected))
        if wrong:
            counts[name] = number(engine, f"SELECT count(*) FILTER ({wrong}) FROM {MICRODATA}")
    return counts


def _wrong(key: str, recode: Mapping[str, Any], protected: bool) -> Iterator[str]:
    """Yield SQL conditions that no recoded value can meet."""
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
            limit, slack = ends[end], ROUNDING * abs(ends[end])
            yield f"{known} {sign} * ({value} - {limit!r}) > {slack!r}"
    if "round_to" in recode:
        step = float(recode["round_to"])
        apart, size = (
            f"abs({value} - {step!r} * round({value} / {step!r}))",
            f"greatest(abs({value}), {step!r})",
        )
        at_end = "".join(f" AND abs({value} - {end!r}) > {ROUNDING * abs(end)!r}" for end in ends.values())
        yield f"{known} {apart} > {ROUNDING} * {size}{at_end}"
    elif not ends and "level" not in recode:  # further recodes may produce a value that equals a missing code
        for code in recode.get("missing", ()):
            text = isinstance(code, str)
            yield f"CAST({key} AS VARCHAR) = {quoted_text(code)}" if text else f"{value} = {float(code)!r}"


def _labels(bands: list[float]) -> list[str]:
    limits = [str(int(each)) if each == int(each) else repr(float(each)) for each in bands]
    inner = [f"{low} to under {high}" for low, high in pairwise(limits)]
    return [f"under {limits[0]}", *inner, f"{limits[-1]} and over"]
