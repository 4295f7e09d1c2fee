"""What the tasks report about their blocks, added up, and as the evidence keeps it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.errors import ProtectionFailed, SpecificationError
from sdc.measures.moments import Moments


@dataclass(frozen=True)
class BlockReports:
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


def collected(reports: Iterable[str], numeric: int) -> BlockReports:
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
    return BlockReports(
        [report for report in blocks if report["status"] == "done"],
        moments,
        {report["block"] for report in blocks if report["status"] == "too few"},
    )


def block_table(protections: Mapping[str, BlockReports]) -> pa.Table:
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
