"""Control tables before and after: chi-square and errors, by table and by dimension."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.specification.consistency import FREQUENCY

Table = tuple[str, ...]


def compared(before: Mapping[Table, pa.Table], after: Mapping[Table, pa.Table]) -> list[dict[str, Any]]:
    """Section ``tables``: chi-square and errors of each control table.

    Chi-square is over the cells with an original count. A cell that was empty and no longer is counts as
    a false positive, with denominator 1, apart.
    """
    return [_one_table(table, before[table], after[table]) for table in before]


def _one_table(table: Table, before: pa.Table, after: pa.Table) -> dict[str, Any]:
    old, new = _aligned(table, before, after)
    error = new - old
    occupied = old > 0
    counts = np.unique(np.abs(error), return_counts=True)
    return {
        "variables": list(table),
        "dimension": len(table),
        "cells": int(np.count_nonzero(occupied)),
        "chi2": float(np.sum(error[occupied] ** 2 / old[occupied])),
        "max_absolute_error": int(np.abs(error).max(initial=0)),
        "max_relative_error": float(np.max(np.abs(error[occupied]) / old[occupied], initial=0.0)),
        "false_positives": int(np.count_nonzero(~occupied)),
        "chi2_false_positives": float(np.sum(error[~occupied].astype(np.float64) ** 2)),
        "errors": {str(size): int(count) for size, count in zip(*counts, strict=True)},
    }


def _aligned(table: Table, before: pa.Table, after: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the same cells; grouping, unlike joining, counts NULL as a value."""
    names = [f"v{position}" for position in range(len(table))]
    parts = []
    for cells, columns in ((before, ("old", "new")), (after, ("new", "old"))):
        keys = {name: cells[variable] for name, variable in zip(names, table, strict=True)}
        zeros = pa.array(np.zeros(len(cells), np.int64))
        parts.append(
            pa.table(keys | {columns[0]: cells[FREQUENCY], columns[1]: zeros}).select([*names, "old", "new"])
        )
    joined = pa.concat_tables(parts).group_by(names).aggregate([("old", "sum"), ("new", "sum")])
    return joined["old_sum"].to_numpy(), joined["new_sum"].to_numpy()


def by_dimension(tables: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Section ``by_dimension``: sums and maxima over the tables of a dimension."""
    found: dict[str, dict[str, Any]] = {}
    for dimension in sorted({table["dimension"] for table in tables}):
        own = [table for table in tables if table["dimension"] == dimension]
        errors: Counter[str] = Counter()
        for table in own:
            errors.update(table["errors"])
        found[str(dimension)] = {
            "tables": len(own),
            **{
                name: sum(table[name] for table in own)
                for name in ("cells", "chi2", "false_positives", "chi2_false_positives")
            },
            **{
                name: max(table[name] for table in own)
                for name in ("max_absolute_error", "max_relative_error")
            },
            "errors": dict(sorted(errors.items(), key=lambda item: int(item[0]))),
        }
    return found
