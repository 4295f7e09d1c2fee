"""Reproduce figures 1 to 4 of Cox 2005: the percent error of its heuristics by size of table.

The paper prints its figures as curves without numbers, so we compare them with its text. As in the paper, an
error is relative to the optimum if it is known, and otherwise to the best known solution, which is rarely
that of a heuristic here. Every heuristic ends by its own count of programs, nodes and solver steps, so that
the errors do not depend on the machine. Finished tables are kept for the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from microguard.sdc.algorithms.adjustment import ADJUSTMENT
from microguard.sdc.cta import Adjustment, CellTable
from microguard.sdc.cta.cox2005.alternate import alternate
from microguard.sdc.cta.cox2005.hybrid import HybridParams, hybrid
from microguard.sdc.cta.cox2005.random_directions import best_of_random
from microguard.sdc.cta.effort import budget
from microguard.sdc.cta.methods import Task
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import Search
from microguard.sdc.cta.rounding import round_deviations
from microguard.sdc.cta.table.check import check
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.stop import Deadline

from tests.benchmarks.paper_pages import Measured, Section, curves
from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table
from tests.benchmarks.tabular.grids import random_table
from tests.benchmarks.tabular.timed import timed

#: Groups of the paper's hybrid in Figures 1 and 2.
GROUPS = 16
Run = Callable[[Search, int], object]


@dataclass(frozen=True)
class Figure:
    """The data of one figure.

    Attributes
    ----------
    title : str
    shapes : shapes of the tables, of which a quick run uses the first `quick`
    series : tuple of names of `HEURISTICS`
    note : str
        Statement of the paper about the figure.
    """

    title: str
    shapes: tuple[tuple[int, ...], ...]
    quick: int
    series: tuple[str, ...]
    note: str


def _named(name: str) -> Run:
    """Return a method as `adjust` runs it at effort standard."""

    def run(search: Search, seed: int) -> object:
        return ADJUSTMENT[name].solve(Task(search, "standard", budget(search.problem, "standard"), seed))

    return run


HEURISTICS: dict[str, Run] = {
    "alternate": lambda search, seed: search.evaluate(alternate(search.problem)),
    "random-100": lambda search, seed: best_of_random(search, 100, np.random.default_rng(seed)),
    "random-1000": lambda search, seed: best_of_random(search, 1000, np.random.default_rng(seed)),
    f"hybrid-{GROUPS}": lambda search, seed: hybrid(search, HybridParams(group_counts=(GROUPS,))),
    "hybrid-swaps": _named("hybrid-swaps"),
    "scatter-search": _named("scatter-search"),
    "learning": _named("learning"),
}
_SIMPLE = ("alternate", "random-100", "random-1000", f"hybrid-{GROUPS}")
FIGURES = (
    Figure(
        "Figure 1 of Cox 2005: hybrid on two-dimensional tables, error in percent",
        tuple((n, n) for n in (4, 6, 8, 10, 12, 15, 20, 25)),
        2,
        _SIMPLE,
        "The paper: hybrid is superior to the others in about the time of random-1000.",
    ),
    Figure(
        "Figure 2 of Cox 2005: hybrid on 10x10xN tables, error in percent",
        tuple((10, 10, n) for n in (3, 5, 8, 10, 15, 20)),
        1,
        _SIMPLE,
        "The paper: errors to the best heuristic, in almost every case hybrid; 76 minutes at 10x10x20.",
    ),
    Figure(
        "Figure 3 of Cox 2005: scatter search with hybrid and swaps on cubes, error in percent",
        tuple((n, n, n) for n in (5, 6, 7, 8, 10, 12)),
        1,
        (f"hybrid-{GROUPS}", "hybrid-swaps", "scatter-search"),
        "The paper: the best of 9 to 16 groups; swaps improve hybrid by about 10 %.",
    ),
    Figure(
        "Figure 4 of Cox 2005: learning on two-dimensional tables, error in percent",
        tuple((n, n) for n in (4, 6, 8, 10, 12, 15, 18, 20, 25)),
        2,
        (f"hybrid-{GROUPS}", "hybrid-swaps", "learning"),
        "The paper: learning is 9.6 % above a lower bound at 25x25, other heuristics at least 50 %.",
    ),
)


def figures(parts: Parts, quick: bool, seeds: tuple[int, ...]) -> list[Section]:
    """Return one table per figure with one row per size, as medians over the seeds."""
    effort = "fast" if quick else "standard"
    return [
        Section(
            figure.title.partition(" of ")[0],
            partial(
                series,
                parts,
                figure,
                figure.shapes[: figure.quick] if quick else figure.shapes,
                seeds,
                effort,
            ),
        )
        for figure in FIGURES
    ]


def series(
    parts: Parts, figure: Figure, shapes: tuple[tuple[int, ...], ...], seeds: tuple[int, ...], effort: str
) -> Measured:
    """Return the errors of the heuristics of a figure, relative to the best solution and the lower bound.

    Parameters
    ----------
    effort : effort of the reference search for the optimum or best solution, and for the bound
    """
    rows: list[tuple[object, ...]] = []
    for shape in shapes:
        found = [_measured(parts, figure, shape, seed, effort) for seed in seeds]
        runs = [one for one, _ in found]
        errors = [[one.above[name] for one in runs if name in one.above] for name in figure.series]
        medians = [float(np.median(each)) if each else None for each in errors]
        gap, proved = float(np.median([one.gap for one in runs])), sum(one.proved for one in runs)
        seconds = float(np.median([each for _, each in found]))
        rows.append((_name(shape), *medians, gap, f"{proved} of {len(runs)}", seconds))
    columns = ("table", *figure.series, "best known to bound %", "best is optimal", "CPU s a table")
    note = f"{figure.note} Medians of {len(seeds)} table(s). No limit counts the clock."
    x = np.array([np.prod([int(n) for n in str(row[0]).split("x")]) for row in rows], dtype=float)
    lines = {
        name: (x, np.array([row[1 + place] for row in rows], dtype=float))
        for place, name in enumerate(figure.series)
    }
    plot = curves({"": lines}, "internal cells", "error, %")
    return Measured(Table(figure.title, columns, rows, note), plot)


@dataclass(frozen=True)
class Errors:
    """Return the percentage by which each heuristic exceeds the best solution, and this solution the lower
    bound.
    """

    above: dict[str, float]
    gap: float
    proved: bool


def _measured(
    parts: Parts, figure: Figure, shape: tuple[int, ...], seed: int, effort: str
) -> tuple[Errors, float]:
    """Return the errors of one table, and the CPU seconds of the heuristics and of our search.

    Our search of a table is shared by the figures.
    """
    (ours, _), searched = parts.answer(
        f"reference {_name(shape)} {seed}",
        partial(timed, random_table(shape, seed), "exact", "auto", effort, None),
    )
    errors, compared = parts.answer(
        f"{figure.title.partition(':')[0]} {_name(shape)} {seed}",
        partial(_errors, figure.series, shape, seed, ours),
    )
    return errors, searched + compared


def _errors(names: tuple[str, ...], shape: tuple[int, ...], seed: int, ours: Adjustment) -> Errors:
    """Run the heuristics on one table, and compare them with our search."""
    table = random_table(shape, seed)
    objectives = {name: heuristic(table, name, seed) for name in names}
    found = {name: objective for name, objective in objectives.items() if objective is not None}
    best = min([ours.objective, *found.values()])
    assert best >= ours.lower_bound * (1 - 1e-9), "a heuristic has an objective below a proved bound"
    above = {name: _percent_above(objective, best) for name, objective in found.items()}
    return Errors(above, _percent_above(best, ours.lower_bound), ours.optimal)


def _name(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _percent_above(objective: float, reference: float) -> float:
    """Round to four decimals, because further decimals are solver tolerances."""
    return round(100 * (objective / reference - 1), 4) + 0.0


def heuristic(table: CellTable, name: str, seed: int) -> float | None:
    """Return the checked objective of a heuristic; None if it found no feasible directions."""
    problem = Problem.from_table(table, "exact")
    search = Search(problem, Deadline.after(None))
    HEURISTICS[name](search, seed)
    if search.best is None or not search.best.feasible:
        return None
    summation = Summation.from_relations(table.relations)
    deviations, _ = round_deviations(table, summation, search.best.deviations * problem.unit, "exact")
    assert check(table, table.values + deviations, "exact").sound, "a solution failed the independent check"
    return float(table.costs @ np.abs(deviations))
