"""Summary of columns that protection does not change: their content, and the ranges of sensitive numbers.

Content and ranges are the same before and after protection. They are computed once, by strata, in a pass over
the original records that has another purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from microguard.pipelines.engine.row_hash import ROWS, contents_in, hash_halves
from microguard.pipelines.intake.numeric_parsing import Range, range_columns, ranges_in
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class UntouchedColumns:
    """Summary of columns that are published unchanged.

    Attributes
    ----------
    names : tuple of str
    content : (int, int)
        Number of records, and sum of the hashes of these columns (`engine.row_hash.contents`).
    ranges : mapping of sensitive variable to Range
        Variables that cannot be numbers, dates or times are left out.
    """

    names: tuple[str, ...]
    content: tuple[int, int]
    ranges: Mapping[str, Range]


def untouched_columns(
    frame: DataFrame, names: list[str], specification: Specification
) -> dict[str, tuple[Column, str]]:
    """Return the columns and aggregates from which `untouched_from_sums` computes the summary."""
    content = {name: (half, "sum") for name, half in hash_halves(names).items()}
    return content | range_columns(frame, _sensitive(frame, specification), specification)


def untouched_from_sums(
    parts: pa.Table, frame: DataFrame, names: list[str], specification: Specification
) -> UntouchedColumns:
    """Combine the aggregates of `untouched_columns` over strata; ``records`` contains their numbers of
    records.
    """
    totals = {name: sum(filter(None, parts[name].to_pylist())) for name in hash_halves(names)}
    totals[ROWS] = sum(parts["records"].to_pylist())
    values = {name: parts[name].to_pylist() for name in parts.column_names if name.startswith("__")}
    ranges = ranges_in(values, frame, _sensitive(frame, specification), specification)
    return UntouchedColumns(tuple(names), contents_in(totals, 1)[0], ranges)


def _sensitive(frame: DataFrame, specification: Specification) -> list[str]:
    return [name for name in specification.sensitive if name in frame.columns]
