"""Measures of a table with suppressed cells: the loss for readers, and what attackers can still compute.

``quality.json`` has these sections:

table
    As for every table: cells, lines, margins, sensitive, unit, tables.
suppression
    suppressed, secondary (cells), value_suppressed (their share of the value of all cells), share (of the
    cells); cost, lower_bound, gap, optimal, algorithm, stopped_by, solver; none if the method proves no
    bound; levels: the same shares by the number of dimensions that are not summed over.
intervals
    By kind of attacker: attackers (number), narrowest and median (width of the interval over the width that
    the levels require), too_narrow (sensitive cells), known (sensitive cells with an interval of width 0),
    narrower (sensitive cells about which an attacker of this kind knows more than an ordinary reader),
    best_known (numbers of the sensitive cells with the narrowest intervals), exact (if false, intervals that
    contain the levels may be wider than stated: those of contributors, and large tables).

``cells.parquet`` has the status of every cell. For a sensitive cell it also has the interval for each kind of
attacker: that of the best-informed attacker of the kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from microguard.pipelines.engine.versions import deciding_versions
from microguard.pipelines.guarantees.suppressed_table import PUBLISHED
from microguard.pipelines.guarantees.suppressed_table import SUPPRESSED as WITHHELD
from microguard.pipelines.measures.measure import Measure
from microguard.schemas.requirements.requirement import MetricKey
from microguard.sdc.suppression import Audit, SuppressionProblem

if TYPE_CHECKING:
    from microguard.pipelines.tables.cell_method import CellComparison

#: Intervals narrower than this share of the required width count as having width 0.
_NOTHING = 1e-9
#: Maximum difference of relative widths that count as equal.
_EQUAL = 1e-6
#: Maximum number of sensitive cells that are listed by their numbers.
_LISTED = 5


def measured(comparison: CellComparison) -> dict[str, Any]:
    """Return all measures by section; amounts are in values."""
    table, cells, rule = comparison.table, comparison.cells, comparison.by_rule
    unit = 10.0**-table.digits
    sections: dict[str, Any] = {
        "table": {
            "cells": len(cells),
            "lines": rule.constraints,
            "margins": int(np.unique(rule.relations.indices[rule.relations.data < 0]).size),
            "sensitive": int(rule.sensitive.sum()),
            "unit": unit,
            "tables": [list(dimensions) for dimensions in table.tables],
        }
    }
    if comparison.problem is None:
        return sections
    suppressed, sizes = np.isnan(comparison.values), np.abs(cells.units)
    proof = comparison.proof
    cost_unit = unit if table.cost_rule == "value" else 1.0
    sections["suppression"] = {
        **_lost(suppressed, sizes),
        "secondary": int(np.sum(suppressed & ~rule.sensitive)),
        "costs": table.cost_rule,
        "cost": float(comparison.problem.costs[: len(cells)][suppressed].sum()) * cost_unit,
        "lower_bound": None if proof is None else proof.lower_bound * cost_unit,
        **{
            name: None if proof is None else getattr(proof, name)
            for name in ("gap", "optimal", "algorithm", "stopped_by")
        },
        "solver": f"HiGHS, highspy {deciding_versions()['highspy']}",
        "levels": list(_by_level(cells.tabulation.nodes, suppressed, sizes)),
    }
    if comparison.audit is not None:
        sections["intervals"] = intervals_by_attacker(comparison.audit, comparison.problem)
    return sections


def _lost(suppressed: np.ndarray, sizes: np.ndarray) -> dict[str, Any]:
    total = float(sizes.sum())
    return {
        "cells": len(sizes),
        "suppressed": int(suppressed.sum()),
        "share": float(suppressed.mean()) if len(suppressed) else 0.0,
        "value_suppressed": float(sizes[suppressed].sum()) / total if total else 0.0,
    }


def _by_level(nodes: np.ndarray, suppressed: np.ndarray, sizes: np.ndarray) -> Iterator[dict[str, Any]]:
    """Return the loss by the number of dimensions in which a cell has a code."""
    detail = np.count_nonzero(nodes, axis=1)
    for level in np.unique(detail).tolist():
        inside = detail == level
        yield {"dimensions": int(level), **_lost(suppressed[inside], sizes[inside])}


def required_widths(problem: SuppressionProblem, cells: np.ndarray) -> np.ndarray:
    """Return the interval widths that the protection levels require."""
    return np.maximum((problem.lower_level + problem.upper_level)[cells], problem.sliding_level[cells])


def intervals_by_attacker(audited: Audit, problem: SuppressionProblem) -> dict[str, Any]:
    """Return the ratio of interval widths to required widths, by kind of attacker."""
    required = required_widths(problem, audited.cells)
    widths = (audited.highest - audited.lowest) / np.maximum(required, 1e-300)[:, None]
    section = {}
    for column, kind in enumerate(audited.kinds):
        of_kind = widths[:, column]
        some = len(of_kind) > 0
        section[kind] = {
            "attackers": int(audited.attackers[column]),
            # of a contributor, the least interval that all others are proved to exceed
            "exact": audited.exact and kind == "outsider",
            "cells": len(of_kind),
            "narrowest": float(of_kind.min()) if some else None,
            "median": float(np.median(of_kind)) if some else None,
            "too_narrow": int(audited.too_narrow[:, column].sum()),
            "known": int(np.sum(of_kind < _NOTHING)),
            "narrower": int(np.sum(of_kind < widths[:, 0] * (1 - _EQUAL))),
            "best_known": audited.cells[np.argsort(of_kind, kind="stable")[:_LISTED]].tolist(),
        }
    return section


def suppression_columns(comparison: CellComparison) -> dict[str, Any]:
    """Return columns of the private list of cells: status, levels and intervals by kind of attacker."""
    problem, audited = comparison.problem, comparison.audit
    assert problem is not None
    suppressed = np.isnan(comparison.values)
    columns: dict[str, Any] = {
        "sensitive": comparison.by_rule.sensitive,
        "status": np.where(suppressed, WITHHELD, PUBLISHED),
        "lower_protection": np.asarray(problem.lower_level[: len(suppressed)]),
        "upper_protection": np.asarray(problem.upper_level[: len(suppressed)]),
    }
    for column, kind in enumerate(audited.kinds if audited is not None else ()):
        assert audited is not None
        for name, ends in (("lowest", audited.lowest), ("highest", audited.highest)):
            every = np.full(len(suppressed), np.nan)
            own = audited.cells < len(suppressed)  # the other cells belong to earlier tables
            every[audited.cells[own]] = ends[own, column]
            columns[f"{name}_{kind}"] = every
    return columns


class Suppressed(Measure["CellComparison", dict[str, Any]]):
    """Loss of information for readers by suppression."""

    name, section = "suppression", dict[str, Any]

    def compute(self, comparison: CellComparison) -> dict[str, Any] | None:
        """Return the section of this name."""
        return comparison.sections.get(self.name)

    def metrics(self, section: dict[str, Any], comparison: CellComparison) -> dict[MetricKey, float]:
        """Return the shares of cells and of value that are suppressed."""
        return {
            MetricKey("suppressed"): section["share"],
            MetricKey("value_suppressed"): section["value_suppressed"],
        }

    def headline(self, section: dict[str, Any], k: int) -> Iterator[str]:
        """Return a sentence with the loss."""
        yield (
            f"{section['suppressed']:,} of {section['cells']:,} cells are suppressed, "
            f"{100 * section['share']:.3g} %, with {100 * section['value_suppressed']:.3g} % of all values."
        )


class IntervalsLeft(Measure["CellComparison", dict[str, Any]]):
    """Intervals that attackers can compute for suppressed cells."""

    name, section = "intervals", dict[str, Any]

    def compute(self, comparison: CellComparison) -> dict[str, Any] | None:
        """Return the section of this name."""
        return comparison.sections.get(self.name)

    def attacks(self, section: Mapping[str, Any], k: int) -> Iterator[tuple[float, str]]:
        """Return the kind of attacker that learns most."""
        if all(row["narrowest"] is None for row in section.values()):
            yield 0.0, "No cell is sensitive by the rules of the specification."
        for kind, row in section.items():
            if row["narrowest"] is None:
                continue
            learnt = row["too_narrow"] / row["cells"]
            least = "" if row.get("exact", True) else "at least "
            text = (
                f"{_WHO[kind]}: the narrowest interval of a sensitive cell is {least}{row['narrowest']:.3g} "
                f"times as wide as its levels require; {row['too_narrow']:,} of {row['cells']:,} are too "
                "narrow."
            )
            if kind != "outsider" and row["narrowest"] < 1:
                text += " Of their own cells they do not know what others contribute, which may be little."
            yield learnt, text


_WHO = {
    "outsider": "Every reader",
    "single": "The only contributor of a cell",
    "pair": "Two contributors of a cell together",
    "unit": "A contributor who knows all its own amounts",
}
