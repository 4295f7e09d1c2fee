"""Records of a frame that violate each edit rule, counted in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_

from microguard.pipelines.engine.column_names import column
from microguard.schemas.specification.rules import (
    AllOf,
    Among,
    AnyOf,
    Comparison,
    Condition,
    Missing,
    Not,
    Rule,
    Variable,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

_COMPARED = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def violations(frame: DataFrame, rules: Mapping[str, Rule]) -> dict[str, int]:
    """Count the records that violate each rule, which means that its condition is true and its consequence is
    not.

    A comparison with a missing value is neither true nor false, as in SQL, and is not a violation.
    """
    if not rules:
        return {}
    counts = [f.count_if(broken(rule)).alias(str(i)) for i, rule in enumerate(rules.values())]
    row = frame.agg(*counts).first()
    assert row is not None
    return {name: int(row[str(i)]) for i, name in enumerate(rules)}


def broken(rule: Rule) -> Column:
    """Return for each record whether it violates a rule; never NULL."""
    not_then = ~_expression(rule.then)
    both = not_then if rule.given is None else _expression(rule.given) & not_then
    return f.coalesce(both, f.lit(False))


def _expression(condition: Condition) -> Column:
    match condition:
        case Comparison(variable, sign, other):
            return _COMPARED[sign](*_comparable(variable, other))
        case Among(variable, values):
            return reduce(or_, [eq(*_comparable(variable, value)) for value in values])
        case Missing(variable):
            return column(variable.name).isNull()
        case Not(inside):
            return ~_expression(inside)
        case AllOf(parts):
            return reduce(and_, map(_expression, parts))
        case AnyOf(parts):
            return reduce(or_, map(_expression, parts))


def _comparable(variable: Variable, other: Variable | str | float) -> tuple[Column, Column]:
    """Cast both sides of a comparison to a common type, text or number; text that is not a number becomes
    missing.
    """
    value = column(variable.name)
    if isinstance(other, Variable):
        return value, column(other.name)
    if isinstance(other, str):
        return value.cast("string"), f.lit(other)
    return value.try_cast("double"), f.lit(other)
