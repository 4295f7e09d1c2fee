"""Combine the reports of the tasks about their blocks, and convert them to a table for the evidence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.schemas.errors import ProtectionFailed, SpecificationError
from microguard.sdc.measures.moments import Moments

#: Scope of a lower bound in a report: the blocks or the whole file.
OF_BLOCK, OF_FILE = "block, given the blocking", "whole file"
#: Number of the most frequent reasons of failed blocks that an error states.
NAMED_REASONS = 3


@dataclass(frozen=True)
class BlockReports:
    """Reports of the tasks about one clustering.

    Attributes
    ----------
    blocks : list of dict
        One report for each block, in the order of blocks.
    moments : Moments
        Moments of the numeric variables, in standardised units.
    too_few : set of int
        Blocks with fewer units, or fewer values of a sensitive variable, than every cluster needs.
    lacking_values : set of int
        The blocks of `too_few` that have enough units but too few values.
    whole_file : dict or None
        A report of the whole file, if it was protected by blocks of combinations and has a bound.
    """

    blocks: list[dict[str, Any]]
    moments: Moments
    too_few: set[int] = field(default_factory=set)
    lacking_values: set[int] = field(default_factory=set)
    whole_file: dict[str, Any] | None = None

    @property
    def of_file(self) -> dict[str, Any] | None:
        """Return the report with a bound for the whole file, or None."""
        return self.whole_file or next(
            (each for each in self.blocks if each.get("bound_of") == OF_FILE), None
        )

    @property
    def records(self) -> int:
        """Return the number of records covered by the proofs; a release with another number has no proof."""
        parts = self.blocks if self.whole_file is None else [self.whole_file]
        return sum(report["records"] for report in parts)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the reports of the blocks, and the report of the whole file if there is one."""
        return self.blocks if self.whole_file is None else [*self.blocks, self.whole_file]


def collected(reports: Iterable[str], numeric: int) -> BlockReports:
    """Combine the reports of all tasks.

    Raises
    ------
    SpecificationError
        If the method does not support what the specification requires.
    ProtectionFailed
        If neither the method nor its fallback could protect a block.
    """
    parsed = [json.loads(report) for report in reports]
    blocks = sorted((report for report in parsed if "block" in report), key=lambda report: report["block"])
    unsupported = next((report for report in blocks if report["status"] == "unsupported"), None)
    if unsupported is not None:
        raise SpecificationError(
            f"The method cannot meet the specification. {unsupported['why']}. Choose another "
            "method.algorithm or method.effort, or leave both at their defaults."
        )
    failed = [report for report in blocks if report["status"] == "failed"]
    if failed:
        reasons = Counter(str(report["why"]) for report in failed)
        commonest = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))[:NAMED_REASONS]
        listed = "; ".join(f"{reason} ({count})" for reason, count in commonest)
        if len(reasons) > NAMED_REASONS:
            listed += f"; and {len(reasons) - NAMED_REASONS} more reasons"
        raise ProtectionFailed(
            f"{len(failed)} of {len(blocks)} blocks could not be protected: {listed}. Nothing was published. "
            "Choose another method.algorithm or blocking.max_records, or a smaller k or diversity, and run "
            "this again: finished blocks are kept."
        )
    here = in_words(deciding_versions())
    elsewhere = [report for report in blocks if report.get("software", here) != here]
    if elsewhere:
        raise ProtectionFailed(
            f"{len(elsewhere)} of {len(blocks)} blocks were computed by other versions than this run names: "
            f"expected {here}, found {elsewhere[0]['software']}. Other versions may give other values, so "
            "that the release could not be made again. Install the same versions on all machines, and call "
            "this again. Nothing was published."
        )
    parts = [report for report in parsed if "moments" in report]
    moments = Moments.none(numeric)
    for part in sorted(parts, key=lambda report: report["first_block"]):
        moments = moments + Moments(*(np.array(array) for array in part["moments"]))
    lacking_values = {report["block"] for report in blocks if report["status"] == "too few values"}
    return BlockReports(
        [report for report in blocks if report["status"] == "done"],
        moments,
        {report["block"] for report in blocks if report["status"] == "too few"} | lacking_values,
        lacking_values,
        next((report for report in parsed if "whole_file" in report), None),
    )


def block_table(protections: Mapping[str, BlockReports]) -> pa.Table:
    """Return the block reports as a table; a row without a block describes the whole file."""
    rows = [
        {
            "clustering": name,
            "block": report.get("block"),
            "records": report["records"],
            "clusters": report.get("clusters"),
            "algorithm": report.get("algorithm"),
            "objective": report.get("objective"),
            "lower_bound": report.get("lower_bound"),
            "gap": report.get("gap"),
            "bound_kind": report.get("bound_kind"),
            **_bound(report),
            "sse_written": report.get("sse"),
            "optimal": report.get("optimal", False),
            "certificates": json.dumps(report.get("certificates", []), sort_keys=True),
            "stopped_by": report.get("stopped_by"),
            "work": json.dumps(report.get("work", {}), sort_keys=True),
            "sse_by_heuristic": json.dumps(report.get("sse_by_heuristic", {}), sort_keys=True),
            "software": report.get("software"),
            "fallback": report.get("fallback"),
            "why": report.get("why"),
            "resumed": report.get("resumed", False),
            "seconds": report["seconds"],
        }
        for name, protection in protections.items()
        for report in protection.rows
    ]
    return pa.Table.from_pylist(rows, schema=_BLOCKS)


def _bound(report: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the scope of the lower bound, or the reason why there is none: a heuristic, or no time."""
    if report.get("lower_bound") is not None:
        return {"bound_of": report.get("bound_of", OF_BLOCK), "unproved": None}
    return {"bound_of": None, "unproved": "time" if report.get("stopped_by") == "time" else "heuristic"}


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
        ("bound_kind", pa.string()),
        ("bound_of", pa.string()),
        ("unproved", pa.string()),
        ("sse_written", pa.float64()),
        ("optimal", pa.bool_()),
        ("certificates", pa.string()),
        ("stopped_by", pa.string()),
        ("work", pa.string()),
        ("sse_by_heuristic", pa.string()),
        ("software", pa.string()),
        ("fallback", pa.string()),
        ("why", pa.string()),
        ("resumed", pa.bool_()),
        ("seconds", pa.float64()),
    ]
)
