"""Measure a protected table: all measures and verdicts, which only the agency sees.

``quality.json`` has the sections ``release``, ``counts``, ``stages`` and ``verdicts`` of
`pipelines.evidence.evidence`, and these:

table
    cells, lines, margins, sensitive, unit (value of one unit of the last digit), totals_summed_anew (given
    totals that differed from the sum of their parts by rounding), largest_difference; by table: dimensions;
    moved (cells with another value), largest_change (in values), grand_total_change (relative, signed),
    telling_unit (unit that divides all original values but not all protected values; else left out).
adjustment
    objective, lower_bound, unavoidable, excess (cost times change, in values), bound_kind, gap, optimal,
    algorithm, stopped_by, work, solver (with its version), history (linear programs solved, objective);
    relaxed: cells by step of table.relax, capacity added in values, whether the relaxation is minimal; none
    if nothing was relaxed.
attacker
    examined, of, sampled, narrowest, median, widest (width of the interval over the larger protection level;
    none if no cell is sensitive), below_protection, below_unit (intervals narrower than the unit of
    publication or the least level), not_judged (sensitive cells that were to be examined and have no interval
    to compare with a level). For magnitudes: determined (cells whose direction can be inferred),
    direction_error (least and median error of the best guess given the direction, over the protected share of
    the guess), direction_odds. For counts: base, least (the smallest count that may be known), posterior (by
    true count 0, 1, ... for each published value 0, base, twice the base), moved (cells, in the same layout),
    largest_posterior.
fit
    by table, for its finest cells: dimensions, cells, mean_before, mean_after; slope, intercept and
    correlation of the regression of protected on original values, and their variance_ratio; none if values do
    not vary.
changes
    by size of the cell: cells, sensitive cells, median and largest relative change.
metrics
    metrics that the gate limits: attacker_interval, intervals_below_unit, cells_not_judged, total_adjustment,
    cell_adjustment, grand_total_change (its size), gap; posterior for counts; directions_determined,
    direction_error, direction_odds for magnitudes; statistics_lost if table.preserve names any.
written
    results of the verification of the written files.

``cells.parquet`` has every cell with its number (to which messages refer; a total with a single part has the
number of that part): codes, original and published value, contributors, levels of the rule, interval that an
attacker can compute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from microguard.pipelines.engine.versions import deciding_versions
from microguard.pipelines.evidence import table_plots
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.disclosure_audit import attacks
from microguard.pipelines.tables.preserved import fits, lost_statistics
from microguard.pipelines.tables.problem import TableProblem
from microguard.pipelines.tables.total_changes import change_sentence, change_summary
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import Adjustment
from microguard.sdc.cta.disclosure_audit import Intervals

_CLASSES = 12
"""Classes of size that changes are shown by."""
_WIDTH_DIGITS = 9
"""Digits of a width in levels: more of them are the solver's, and would refuse a width of just one level."""


@dataclass(frozen=True)
class TableComparison:
    """Original cells next to adjusted ones: the input of every measure of a table."""

    table: Table
    cells: Cells
    problem: TableProblem
    adjustment: Adjustment
    intervals: Intervals

    @cached_property
    def sections(self) -> dict[str, Any]:
        """Return all measures, by section."""
        return measured(self.cells, self.problem, self.adjustment, self.intervals, self.table)


def measured(
    cells: Cells, problem: TableProblem, adjustment: Adjustment, intervals: Intervals, table: Table
) -> dict[str, Any]:
    """Return all measures of a protected table against the original, in values."""
    unit = 10.0**-table.digits
    rule = problem.by_rule
    sensitive, sizes = rule.sensitive, np.abs(rule.values)
    change = np.abs(adjustment.deviations[problem.variables])
    free = ~sensitive & (sizes > 0)
    total = float(sizes.sum())
    judged = judged_intervals(intervals, problem)
    widths = judged.widths
    cost_unit = 1.0 if table.costs == "inverse" else unit
    attacked = attacks(problem, adjustment, intervals)
    published = adjustment.values[problem.variables]
    fitted = fits(cells, table, published)
    summary = change_summary(cells, table, published)
    return {
        "table": {
            "cells": len(cells),
            "lines": rule.constraints,
            "margins": int(np.unique(rule.relations.indices[rule.relations.data < 0]).size),
            "sensitive": int(sensitive.sum()),
            "unit": unit,
            "totals_summed_anew": cells.totals_summed_anew,
            "largest_difference": cells.largest_difference * unit,
            "tables": [list(dimensions) for dimensions in table.tables],
            **summary,
        },
        "adjustment": {
            **{name: getattr(adjustment, name) * cost_unit for name in _IN_VALUES},
            **{name: getattr(adjustment, name) for name in _AS_THEY_ARE},
            "work": asdict(adjustment.work),
            "solver": f"HiGHS, highspy {deciding_versions()['highspy']}",
            "relaxed": _relaxed(problem, unit),
            "history": [[step, objective * cost_unit] for step, objective in adjustment.history],
        },
        "attacker": {
            "examined": len(intervals.cells),
            "of": int(problem.known.sensitive.sum()),
            "sampled": intervals.sampled,
            "narrowest": float(widths.min()) if len(widths) else None,
            "median": float(np.median(widths)) if len(widths) else None,
            "widest": float(widths.max()) if len(widths) else None,
            "below_protection": int(np.sum(widths < 1)),
            "below_unit": judged.below_unit,
            "not_judged": judged.missing,
            "widths": np.sort(widths).tolist(),
            **attacked.section,
        },
        "fit": fitted,
        "changes": by_size(sizes * unit, change * unit, sensitive),
        "metrics": {
            **({"attacker_interval": float(widths.min())} if len(widths) else {}),
            "intervals_below_unit": float(judged.below_unit),
            "cells_not_judged": float(judged.missing),
            "total_adjustment": float(change.sum()) / total if total else 0.0,
            "cell_adjustment": float(np.max(change[free] / sizes[free], initial=0.0)),
            "grand_total_change": abs(summary["grand_total_change"]),
            "gap": adjustment.gap,
            **(
                {"statistics_lost": float(lost_statistics(fitted, table))}
                if table.preserve.model_fields_set
                else {}
            ),
            **attacked.metrics,
        },
    }


def _relaxed(problem: TableProblem, unit: float) -> dict[str, Any] | None:
    """Return the relaxed cells by step, and whether the relaxation is minimal; None without relaxation."""
    relaxation = problem.relaxation
    if relaxation is None:
        return None
    return {"cells": dict(relaxation.cells), "added": relaxation.added * unit, "least": relaxation.least}


_IN_VALUES = ("objective", "lower_bound", "unavoidable", "excess")
_AS_THEY_ARE = ("bound_kind", "gap", "optimal", "algorithm", "stopped_by")


@dataclass(frozen=True, eq=False)
class JudgedIntervals:
    """Compare the intervals of the examined cells with levels and with the unit of publication.

    Attributes
    ----------
    widths : (k,) widths over the larger protection level, for cells that have such a level
    below_unit : intervals narrower than the unit of publication, or than the least level
    missing : sensitive cells that should have been examined and have no entry in `widths`
    """

    widths: np.ndarray
    below_unit: int
    missing: int


def judged_intervals(intervals: Intervals, problem: TableProblem) -> JudgedIntervals:
    """Compare intervals with levels and with the unit; without negative values, intervals start at 0.

    The unit is that of the last published digit (1 here), or the smallest level of a sensitive cell, if that
    is larger. For rounding it is base - 1: the widest interval of the values that are less than a base away
    from a published 0. Every cell that is sensitive by the rule must be examined. For drawn counts the totals
    are an exception: their parts are examined instead.
    """
    known = problem.known
    lower = intervals.lower if np.any(known.values < 0) else np.maximum(intervals.lower, 0.0)
    width = intervals.upper - lower
    level = np.maximum(known.lower_protection, known.upper_protection)[intervals.cells]
    levelled = level > 0
    moves = problem.moves
    if moves is not None and moves.everywhere:
        unit = moves.base - 1.0
    else:
        unit = max(1.0, float(level[levelled].min())) if levelled.any() else 1.0
    missing = int(np.sum(~levelled))
    if not intervals.sampled:
        missing += int(known.sensitive.sum()) - len(intervals.cells)
    if moves is None:
        by_rule = np.unique(problem.variables[problem.by_rule.sensitive])
        missing += int(np.sum(~known.sensitive[by_rule]))
    return JudgedIntervals(
        widths=np.round(width[levelled] / level[levelled], _WIDTH_DIGITS),
        below_unit=int(np.sum(np.round(width, _WIDTH_DIGITS) < unit)),
        missing=missing,
    )


def by_size(sizes: np.ndarray, change: np.ndarray, sensitive: np.ndarray) -> list[dict[str, Any]]:
    """Return the relative change of the cells by class of size, with logarithmic class limits."""
    filled = sizes > 0
    if not filled.any():
        return []
    low, high = np.log10(sizes[filled].min()), np.log10(sizes[filled].max())
    edges = np.logspace(low, high if high > low else low + 1, _CLASSES + 1)
    place = np.clip(np.searchsorted(edges, sizes, side="right") - 1, 0, _CLASSES - 1)
    rows = []
    for position in range(_CLASSES):
        inside = filled & (place == position)
        relative = change[inside] / sizes[inside]
        rows.append(
            {
                "from": float(edges[position]),
                "to": float(edges[position + 1]),
                "cells": int(inside.sum()),
                "sensitive": int(np.sum(inside & sensitive)),
                "median": float(np.median(relative)) if len(relative) else None,
                "largest": float(relative.max()) if len(relative) else None,
            }
        )
    return rows


def _attacker_plots(section: dict[str, Any], k: int) -> dict[str, str]:
    return {"attacker": table_plots.attacker_plot(section["widths"])} if section["widths"] else {}


def _attacks(section: dict[str, Any], k: int) -> Iterator[tuple[float, str]]:
    """Return the measures of the examined sensitive cells."""
    below, examined = section["below_protection"], section["examined"]
    unsafe = max(section.get("below_unit", 0), section.get("not_judged", 0))
    if unsafe:
        text = f"{unsafe:,} of {examined:,} sensitive cells have no interval, or one below the last digit."
        yield unsafe / max(examined, 1), text
    odds, posterior = section.get("direction_odds"), section.get("largest_posterior")
    if not section["of"]:
        yield 0.0, "No cell is sensitive by the rules of the specification."
    if below:
        text = f"{below:,} of {examined:,} sensitive cells keep an interval narrower than their level."
        yield below / max(examined, 1), text
    if odds and section["narrowest"] is not None:
        yield (
            odds,
            f"A guess of the direction in which a sensitive cell was moved is correct in {100 * odds:.3g} % "
            f"of the cases; the narrowest interval of an attacker is {section['narrowest']:.3g} times the "
            "protection level.",
        )
    if posterior:
        yield (
            posterior,
            "An attacker who knows the method can infer a true small count from the published values with a "
            f"probability of {100 * posterior:.3g} % at the most.",
        )


class TableSection(Measure[TableComparison, Any]):
    """A section that is computed together with all others."""

    def __init__(self, name: str, section: Any = dict[str, Any]) -> None:
        self.name, self.section = name, section

    def compute(self, comparison: TableComparison) -> Any:
        """Return the section of this name."""
        return comparison.sections[self.name]


class Attacker(TableSection):
    """Intervals and best guesses of an attacker."""

    def plots(self, section: dict[str, Any], k: int) -> dict[str, str]:
        """Draw the widths of the intervals."""
        return _attacker_plots(section, k)

    def attacks(self, section: dict[str, Any], k: int) -> Iterator[tuple[float, str]]:
        """Return the share of the examined sensitive cells that an attacker discloses."""
        return _attacks(section, k)


class Changes(TableSection):
    """Relative changes of the cells by size."""

    def plots(self, section: list[dict[str, Any]], k: int) -> dict[str, str]:
        """Draw the changes."""
        return {"changes": table_plots.change_plot(section)} if section else {}


class Metrics(TableSection):
    """Metrics that the gate can limit."""

    def metrics(self, section: dict[str, Any], comparison: TableComparison) -> dict[MetricKey, float]:
        """Return all metrics."""
        return {MetricKey(name): value for name, value in section.items()}

    def headline(self, section: dict[str, Any], k: int) -> Iterator[str]:
        """Return the sum of all changes in a sentence."""
        yield f"All changes together are {100 * section['total_adjustment']:.3g} % of all values."


class AdjustmentSection(TableSection):
    """The algorithm of the adjustment, and its proved bound."""

    def plots(self, section: dict[str, Any], k: int) -> dict[str, str]:
        """Draw objective and bound over the search."""
        history = section["history"]
        if len(history) < 2:
            return {}
        return {"history": table_plots.history_plot(history, section["lower_bound"])}


class TableSummary(TableSection):
    """Number of cells and constraints of the table, and its distance from the original table."""

    def headline(self, section: dict[str, Any], k: int) -> Iterator[str]:
        """Return a sentence with the changed cells, the largest change, and the change of the grand total."""
        yield from change_sentence(section)


TABLE = TableSummary("table")
ATTACKER = Attacker("attacker")
FIT = TableSection("fit", list[dict[str, Any]])
CHANGES = Changes("changes", list[dict[str, Any]])
METRICS = Metrics("metrics")
ADJUSTMENT = AdjustmentSection("adjustment")
