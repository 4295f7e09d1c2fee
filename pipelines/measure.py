"""Measure what protection did: loss, control tables, risk after, linkage. Additive and exact.

Sums over records were made in the seam, per block, in units that all blocks share; here they are added
up, in the order of the blocks. Tables are counted in Spark before and after.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.block import Scale
from schemas.consistency import FREQUENCY
from schemas.errors import ProtectionFailed, SpecificationError
from schemas.specification import Specification
from sdc.moments import Moments

Table = tuple[str, ...]

#: Dominance is counted whether the gate limits it or not: one contributor above 85 percent of the total.
USUAL_DOMINANCE = (1, 85.0)


@dataclass(frozen=True)
class Protection:
    """What the tasks reported about one clustering.

    Attributes
    ----------
    blocks : list of dict
        One report a block, by block.
    moments : Moments
        Of the numeric variables, in standardised units.
    """

    blocks: list[dict[str, Any]]
    moments: Moments
    too_few: set[int] = field(default_factory=set)


def collected(reports: Iterable[str], numeric: int) -> Protection:
    """Reports of all tasks, added up.

    Raises
    ------
    SpecificationError
        Where the method cannot carry what was asked for.
    ProtectionFailed
        Where a block could be protected by neither the method nor its fallback.
    """
    parsed = [json.loads(report) for report in reports]
    blocks = sorted((report for report in parsed if "block" in report), key=lambda report: report["block"])
    unsupported = next((report for report in blocks if report["status"] == "unsupported"), None)
    if unsupported is not None:
        raise SpecificationError(
            f"The method cannot do what the specification asks for. {unsupported['why']}."
        )
    failed = [report for report in blocks if report["status"] == "failed"]
    if failed:
        reasons = Counter(str(report["why"]) for report in failed)
        listed = "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
        raise ProtectionFailed(
            f"{len(failed)} of {len(blocks)} blocks could not be protected: {listed}. Nothing was published. "
            "Choose another method.algorithm or blocking.max_records, and call this again: "
            "finished blocks are kept."
        )
    parts = [report for report in parsed if "moments" in report]
    moments = Moments.none(numeric)
    for part in sorted(parts, key=lambda report: report["first_block"]):
        moments = moments + Moments(*(np.array(array) for array in part["moments"]))
    return Protection(
        [report for report in blocks if report["status"] == "done"],
        moments,
        {report["block"] for report in blocks if report["status"] == "too few"},
    )


def loss(protection: Protection, scales: Mapping[str, Scale]) -> dict[str, Any]:
    """Section ``loss`` of one clustering."""
    moments = protection.moments
    return {
        "sse": float(moments.sse.sum()),
        "sst": float(moments.sst.sum()),
        "information_loss": moments.information_loss,
        "objective": _total(protection, "objective"),
        "lower_bound": _total(protection, "lower_bound"),
        "whole_file_lower_bound": _total(protection, "file_bound"),
        "by_variable": {
            name: float(sse / sst) if sst > 0 else 0.0
            for name, sse, sst in zip(scales, moments.sse, moments.sst, strict=True)
        },
    }


def _total(protection: Protection, name: str) -> float | None:
    """Sum over the blocks, None where a block has no such number."""
    found = [report[name] for report in protection.blocks if report.get(name) is not None]
    return math.fsum(found) if len(found) == len(protection.blocks) else None


def moments_of(protection: Protection, scales: Mapping[str, Scale]) -> dict[str, dict[str, float]]:
    """Section ``moments``: means and variances in the units of the variables."""
    means, variances = protection.moments.means(), protection.moments.variances()
    return {
        name: {
            "mean_before": float(scale.mean + scale.divisor * means[0][i]),
            "mean_after": float(scale.mean + scale.divisor * means[1][i]),
            "variance_before": float(scale.divisor**2 * variances[0][i]),
            "variance_after": float(scale.divisor**2 * variances[1][i]),
        }
        for i, (name, scale) in enumerate(scales.items())
    }


def correlations_of(protection: Protection, scales: Mapping[str, Scale]) -> dict[str, Any]:
    """Section ``correlations``; None where a variable is constant."""
    before, after = protection.moments.correlations()
    return {"variables": list(scales), "before": _matrix(before), "after": _matrix(after)}


def _matrix(values: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


def dominance_rule(specification: Specification) -> tuple[int, float]:
    """The (n, k) rule that clusters are counted by: the gate's, or the usual one where it has none."""
    rule = specification.quality.dominance
    return USUAL_DOMINANCE if rule is None else (rule.n, rule.k)


def dominance_of(
    protection: Protection, names: Iterable[str], specification: Specification
) -> dict[str, dict[str, float]]:
    """Section ``dominance``: the rule, clusters, and those that fail it, by variable."""
    n, k = dominance_rule(specification)
    clusters = sum(report["clusters"] for report in protection.blocks)
    return {
        name: {
            "n": n,
            "k": k,
            "clusters": clusters,
            "failing": sum(report["dominated"][name] for report in protection.blocks),
        }
        for name in names
    }


def diversity_of(protections: Mapping[str, Protection], sensitive: Iterable[str]) -> dict[str, int]:
    """Least number of distinct values of each sensitive variable in a cluster, where it was asked for."""
    reports = [
        report["diversity"]
        for protection in protections.values()
        for report in protection.blocks
        if "diversity" in report
    ]
    return {name: min(report[name] for report in reports) for name in sensitive if reports}


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


def block_table(protections: Mapping[str, Protection]) -> pa.Table:
    """The block reports as the evidence keeps them."""
    rows = [
        {
            "clustering": name,
            "block": report["block"],
            "records": report["records"],
            "clusters": report.get("clusters"),
            "algorithm": report.get("algorithm"),
            "objective": report.get("objective"),
            "lower_bound": report.get("lower_bound"),
            "gap": report.get("gap"),
            "sse_written": report.get("sse"),
            "optimal": report.get("optimal", False),
            "stopped_by": report.get("stopped_by"),
            "work": json.dumps(report.get("work", {}), sort_keys=True),
            "fallback": report.get("fallback"),
            "why": report.get("why"),
            "resumed": report.get("resumed", False),
            "seconds": report["seconds"],
        }
        for name, protection in protections.items()
        for report in protection.blocks
    ]
    return pa.Table.from_pylist(rows, schema=_BLOCKS)


_BLOCKS = pa.schema(
    [
        ("clustering", pa.string()),
        ("block", pa.int64()),
        ("records", pa.int64()),
        ("clusters", pa.int64()),
        ("algorithm", pa.string()),
        ("objective", pa.float64()),
        ("lower_bound", pa.float64()),
        ("gap", pa.float64()),
        ("sse_written", pa.float64()),
        ("optimal", pa.bool_()),
        ("stopped_by", pa.string()),
        ("work", pa.string()),
        ("fallback", pa.string()),
        ("why", pa.string()),
        ("resumed", pa.bool_()),
        ("seconds", pa.float64()),
    ]
)
