"""Recomputation of derived columns with DuckDB, to count the records of a release that contradict their
formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
from microguard.pipelines.audit.partitions import MICRODATA
from microguard.pipelines.guarantees.queries import number
from microguard.schemas.expressions import Call, Expression, Operation, Term, parse_expression

#: Relative error of a recomputed number, because engines round functions such as logarithms in different
#: ways.
ROUNDING = 1e-9
#: Relative error of a recomputed number in a column of 32-bit floats.
ROUNDING_OF_SINGLE = 1e-6
#: Conditions under which a function has a finite value; for other arguments the value is missing.
_DEFINED = {"log": "{0} > 0", "log10": "{0} > 0", "sqrt": "{0} >= 0", "exp": "{0} < 709.78", "abs": "true"}
_FUNCTIONS = {"log": "ln"}


def contradictions(
    engine: duckdb.DuckDBPyConnection, columns: list[dict[str, Any]], keys: Mapping[str, str]
) -> dict[str, int]:
    """Count the records whose derived columns differ from the expressions in the manifest.

    Parameters
    ----------
    columns : list of dict
        The columns of the manifest; those with ``derived`` are recomputed.
    keys : mapping of name to column of the view ``microdata``

    Returns
    -------
    dict of name to int
        One entry for each derived column.
    """
    counts = {}
    for each in columns:
        if "derived" in each:
            value = _sql(parse_expression(each["derived"]), keys)
            differs = _differs(keys[each["name"]], value, each["type"])
            counts[each["name"]] = number(engine, f"SELECT count(*) FILTER ({differs}) FROM {MICRODATA}")
    return counts


def _differs(key: str, value: str, kind: str) -> str:
    """Return the SQL condition that a value differs from the expected value rounded to its type."""
    expected = f"(CASE WHEN isfinite({value}) THEN {value} END)"
    rounding = ROUNDING_OF_SINGLE if kind == "float" else ROUNDING
    allowed = f"{_half_a_unit(kind)!r} + {rounding} * greatest(abs({expected}), 1)"
    missing = f"({key} IS NULL) <> ({expected} IS NULL)"
    return f"{missing} OR coalesce(abs(CAST({key} AS DOUBLE) - {expected}) > {allowed}, false)"


def _half_a_unit(kind: str) -> float:
    """Return half of the last digit of a type: 0.5 for integers, 0.005 for decimals with two places."""
    if kind.startswith("decimal"):
        return 0.5 * 10.0 ** -int(kind.rstrip(")").rpartition(",")[2])
    return 0.5 if "int" in kind else 0.0


def _sql(expression: Expression, keys: Mapping[str, str]) -> str:
    match expression:
        case Term(name):
            return f"TRY_CAST({keys[name]} AS DOUBLE)"
        case Operation("/", one, other):
            return f"({_sql(one, keys)} / nullif({_sql(other, keys)}, 0))"
        case Operation(sign, one, other):
            return f"({_sql(one, keys)} {sign} {_sql(other, keys)})"
        case Call(function, of):
            inside = _sql(of, keys)
            called = f"{_FUNCTIONS.get(function, function)}({inside})"
            return f"(CASE WHEN {_DEFINED[function].format(inside)} THEN {called} END)"
        case _:
            return f"CAST({float(expression)!r} AS DOUBLE)"
