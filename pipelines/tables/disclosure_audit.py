"""Knowledge of an attacker who knows the method, its parameters and every published number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.tables.problem import CountMoves, TableProblem
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import Adjustment
from microguard.sdc.cta.controlled_rounding.multiples import UNBIASED
from microguard.sdc.cta.counts.posterior import count_posterior
from microguard.sdc.cta.disclosure_audit import Intervals, attacker_intervals
from microguard.sdc.cta.rules.secret_factor import LARGEST_FACTOR


@dataclass(frozen=True)
class Attacks:
    """Entries of the section ``attacker``, and the metrics that the gate limits."""

    section: Mapping[str, Any]
    metrics: Mapping[str, float]


def intervals_of(
    problem: TableProblem, adjustment: Adjustment, table: Table, *, most_cells: int, seed: int
) -> Intervals:
    """Compute the attacker's interval of each sensitive cell, or of a sample drawn by `seed`."""
    return attacker_intervals(
        problem.known,
        adjustment.values,
        largest_factor=LARGEST_FACTOR if table.levels == "secret" else 1.0,
        most_cells=most_cells,
        seed=seed,
        relative=problem.moves is None and table.levels == "secret",
        directions=problem.moves is None,
    )


def attacks(problem: TableProblem, adjustment: Adjustment, intervals: Intervals) -> Attacks:
    """Return the measures that apply to the method by which the table was protected."""
    if problem.moves is not None:
        return _of_counts(problem, adjustment, problem.moves)
    if not len(intervals.cells):
        return Attacks({}, {})
    return _of_magnitudes(problem, intervals)


def _of_counts(problem: TableProblem, adjustment: Adjustment, moves: CountMoves) -> Attacks:
    still_or_drawn = problem.known.sensitive | (problem.known.values == 0)
    counts = problem.known.values[still_or_drawn]
    shown = np.rint(adjustment.values[still_or_drawn])
    # a linear program makes no random draws
    finished = moves.everywhere and adjustment.algorithm not in UNBIASED
    posterior = count_posterior(counts, shown, moves.base, moves.odds, least=moves.least, as_moved=finished)
    section = {
        "base": moves.base,
        "least": moves.least,
        "posterior": posterior.odds.tolist(),
        "moved": posterior.moved.T.tolist(),
        "largest_posterior": posterior.largest,
    }
    return Attacks(section, {"posterior": posterior.largest})


def _of_magnitudes(problem: TableProblem, intervals: Intervals) -> Attacks:
    known = problem.known
    level = np.maximum(known.lower_protection, known.upper_protection)[intervals.cells]
    sizes = np.abs(known.values[intervals.cells])
    measured = level > 0
    middle = np.abs(intervals.known_upper + intervals.known_lower)[measured] / 2
    half = (intervals.known_upper - intervals.known_lower)[measured] / 2
    share = level[measured] / np.maximum(sizes, level)[measured]
    error = half / np.maximum(middle * share, 1e-300)
    determined = int(np.sum(intervals.determined[measured]))
    section = {
        "determined": determined,
        "direction_error": {
            "least": float(error.min()) if len(error) else None,
            "median": float(np.median(error)) if len(error) else None,
        },
        "direction_odds": intervals.odds,
    }
    metrics = {"directions_determined": float(determined), "direction_odds": intervals.odds}
    return Attacks(section, metrics | ({"direction_error": float(error.min())} if len(error) else {}))
