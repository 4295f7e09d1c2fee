"""Leave-one-out table of the local search and of the lower bound of controlled tabular adjustment.

Each part is disabled in turn. The objective of the search is compared with that of the complete search, and
with the best one that any run found. The bound is compared with the complete one. A part is kept if its
absence costs objective, bound or time. Times are CPU seconds of one process.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.annealing.local_search import REFINEMENT_CONSTRAINTS
from microguard.sdc.cta.effort import Budget, budget
from microguard.sdc.cta.program.bounds import relaxation_bound, unavoidable_bound
from microguard.sdc.cta.program.constraint_classes import disjoint_classes
from microguard.sdc.cta.program.exact import Proof
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.table.check import check
from microguard.sdc.solver import Status

from microguard import __version__
from tests.benchmarks.table import Table
from tests.benchmarks.tabular.grids import random_table
from tests.benchmarks.tabular.hierarchies import HIERARCHIES, hierarchical_table
from tests.benchmarks.tabular.reference_tables import SURVEY_TABLES, survey_table, turnover_table
from tests.benchmarks.tabular.timed import done
from tests.reference import REFERENCE_FOLDER

_CTA = "microguard.sdc.cta"
#: Maximum wall-clock seconds of one run; no run on these tables reaches them.
LIMIT = 300.0
GRIDS = ((20, 20), (25, 25), (5, 5, 5), (8, 8, 8), (10, 10, 10))
TREES = ("8.6 x 5.9", "4.5 x 3.3 x 4.2", "3.3 x 3 x 3.3 x 3")
Off = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Instance:
    """A table to adjust: its name, its mode, and a function that builds it from a seed."""

    name: str
    mode: Any
    build: Callable[[int], CellTable]


@dataclass(frozen=True)
class Part:
    """A part of the method.

    Attributes
    ----------
    name : str
    used : function of a budget and a problem
        Whether the complete method uses the part there; where it does not, nothing is run.
    off : function without arguments
        A context in which the part is switched off.
    """

    name: str
    used: Callable[[Budget, Problem], bool]
    off: Off


def instances(quick: bool = False) -> list[Instance]:
    """Random grids, generated hierarchies and, if the files are present, the reference tables."""
    chosen = [
        Instance("x".join(map(str, shape)), "exact", partial(random_table, shape))
        for shape in (GRIDS[:1] if quick else GRIDS)
    ]
    for name in TREES[:1] if quick else TREES:
        branchings, occupied = HIERARCHIES[name]
        build = partial(_tree, branchings, occupied)
        chosen.append(Instance(name, "at-least", build))
    if not quick and (REFERENCE_FOLDER / "turnover_activity_size.csv").is_file():
        chosen.append(Instance("turnover", "at-least", lambda _: turnover_table()))
    if not quick and (REFERENCE_FOLDER / "business_survey.csv").is_file():
        chosen += [
            Instance(f"survey {name}", "at-least", partial(_survey, name)) for name in list(SURVEY_TABLES)[:2]
        ]
    return chosen


def run(quick: bool = False) -> Iterator[Table]:
    """Yield the tables of the search and of the bound at efforts standard and thorough."""
    seeds = (1,) if quick else (1, 2)
    for table in (
        random_table((6, 6), 1),
        random_table((6, 6, 8), 1),
        hierarchical_table(((3, 3), (3, 2)), 1, occupied=0.6),
    ):
        adjust(table, effort="fast")  # compiles the kernels
    for effort in ("standard",) if quick else ("standard", "thorough"):
        yield search_table(instances(quick), effort, seeds)
        yield bound_table(instances(quick), effort, seeds)


def search_table(chosen: list[Instance], effort: str, seeds: tuple[int, ...]) -> Table:
    """Compare the objective and time of the search without each part with those of the complete search."""
    rows: list[tuple[object, ...]] = []
    for instance in chosen:
        tables = [instance.build(seed) for seed in seeds]
        problem = Problem.from_table(tables[0], instance.mode)
        used = [part for part in SEARCH_PARTS if part.used(budget(problem, effort), problem)]
        runs = {"": [_searched(instance, table, effort) for table in tables]}
        for part in used:
            with part.off():
                runs[part.name] = [_searched(instance, table, effort) for table in tables]
        rows += _compared(instance.name, runs)
        done(f"search, {instance.name}, {effort}", sum(each[1] for all_ in runs.values() for each in all_))
    columns = (
        "table",
        "without",
        "gap to the best %",
        "mean change %",
        "largest change %",
        "CPU s",
        "CPU ratio",
    )
    return Table(f"Search without each part, effort {effort}, seeds {seeds}", columns, rows, _machine())


def _compared(name: str, runs: dict[str, list[tuple[float, float]]]) -> Iterator[tuple[object, ...]]:
    best = np.min([[value for value, _ in each] for each in runs.values()], axis=0)
    complete = np.array([value for value, _ in runs[""]])
    seconds = sum(spent for _, spent in runs[""])
    for part, results in runs.items():
        objective = np.array([value for value, _ in results])
        change = 100 * (objective / complete - 1)
        spent = sum(each for _, each in results)
        gap = float(np.mean(100 * (objective / best - 1)))
        yield (
            name,
            part or "(complete)",
            gap,
            float(change.mean()),
            float(change.max()),
            spent,
            spent / seconds,
        )


def bound_table(chosen: list[Instance], effort: str, seeds: tuple[int, ...]) -> Table:
    """Compare the lower bound and its time without each part with those of the complete bound."""
    rows: list[tuple[object, ...]] = []
    for instance in chosen:
        problems = [Problem.from_table(instance.build(seed), instance.mode) for seed in seeds]
        used = [part for part in BOUND_PARTS if part.used(budget(problems[0], effort), problems[0])]
        runs = {"": [_bounded(problem, effort) for problem in problems]}
        for part in used:
            with part.off():
                runs[part.name] = [_bounded(problem, effort) for problem in problems]
        complete = np.array([value for value, _ in runs[""]])
        seconds = sum(spent for _, spent in runs[""])
        for name, results in runs.items():
            change = 100 * (1 - np.array([value for value, _ in results]) / complete)
            spent = sum(each for _, each in results)
            rows.append(
                (
                    instance.name,
                    name or "(complete)",
                    float(change.mean()),
                    float(change.max()),
                    spent,
                    spent / seconds,
                )
            )
        done(f"bound, {instance.name}, {effort}", sum(each[1] for all_ in runs.values() for each in all_))
    columns = ("table", "without", "mean loss of the bound %", "largest loss %", "CPU s", "CPU ratio")
    return Table(f"Lower bound without each part, effort {effort}, seeds {seeds}", columns, rows, _machine())


def _searched(instance: Instance, table: CellTable, effort: str) -> tuple[float, float]:
    """Return objective and CPU seconds of the search alone, without branch and bound or a lower bound."""
    no_proof = Proof(None, 0, timed_out=False)
    with ExitStack() as stack:
        stack.enter_context(
            patch(f"{_CTA}.adjust._lower_bound", lambda problem, *_: unavoidable_bound(problem))
        )
        stack.enter_context(patch(f"{_CTA}.adjust.branch_and_bound", lambda *_: no_proof))
        start = time.process_time()
        answer = adjust(table, mode=instance.mode, effort=effort, time_limit=LIMIT)
        seconds = time.process_time() - start
    assert check(table, answer.values, instance.mode).sound, "a solution failed the independent check"
    return answer.objective, seconds


def _bounded(problem: Problem, effort: str) -> tuple[float, float]:
    allowed = budget(problem, effort)
    start = time.process_time()
    bound = relaxation_bound(problem, LIMIT, allowed.plane_work, allowed.cell_work)
    return bound.value, time.process_time() - start


def _tree(branchings: tuple[tuple[int, ...], ...], occupied: float, seed: int) -> CellTable:
    return hierarchical_table(branchings, seed, occupied=occupied)


def _survey(name: str, _: int) -> CellTable:
    return survey_table(name)


def _machine() -> str:
    day = time.strftime("%Y-%m-%d")
    return f"microguard {__version__}, {platform.machine()}, Python {platform.python_version()}, {day}."


def _without(*targets: tuple[str, Any]) -> Off:
    """Replace attributes of modules below `sdc.cta`."""

    @contextmanager
    def context() -> Iterator[None]:
        with ExitStack() as stack:
            for target, replacement in targets:
                stack.enter_context(patch(f"{_CTA}.{target}", replacement))
            yield

    return context


def _with_search(**fields: object) -> Off:
    """Change fields of the local search's budget."""

    def changed(problem: Problem, effort: str) -> Budget:
        allowed = budget(problem, effort)
        return replace(allowed, search=replace(allowed.search, **fields))  # type: ignore[arg-type]

    return _without(("adjust.budget", changed))


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _beliefs(allowed: Budget, _: Problem) -> bool:
    return allowed.search.belief_rounds > 0


def _refined(allowed: Budget, problem: Problem) -> bool:
    three_way = disjoint_classes(problem).max(initial=-1) > 1
    return _beliefs(allowed, problem) and three_way and problem.constraints.shape[0] <= REFINEMENT_CONSTRAINTS


def _sensitive_margins(problem: Problem) -> bool:
    summation = problem.summation
    return summation is not None and not np.isin(problem.sensitive, summation.internal).all()


_LOCAL = "annealing.local_search"
SEARCH_PARTS = (
    Part("belief propagation", _beliefs, _without(("effort._belief_runs", lambda *_: 0))),
    Part("refinement", _refined, _without((f"{_LOCAL}.REFINEMENT_CONSTRAINTS", 0))),
    Part("annealing on cuts", lambda b, p: b.search.cuts is not None, _with_search(cuts=None)),
    Part("flips", lambda b, p: not b.search.blocks, _without((f"{_LOCAL}.flip_by_duals", _nothing))),
    Part("flips by blocks", lambda b, p: b.search.blocks, _with_search(blocks=False)),
    Part("optimised blocks", lambda b, p: b.search.block_work > 0, _with_search(block_work=0.0)),
    Part("neighbourhoods", lambda b, p: b.search.neighbourhoods > 0, _with_search(neighbourhoods=0)),
    Part(
        "annealing on internal cells",
        lambda b, p: b.search.internal_moves > 0 and _sensitive_margins(p),
        _with_search(internal_moves=0.0),
    ),
    Part(
        "descents on internal cells",
        lambda b, p: not b.search.internal_moves and _sensitive_margins(p),
        _without((f"{_LOCAL}._start_on_internal_cells", _nothing)),
    ),
)
BOUND_PARTS = (
    Part("cell cuts", lambda b, p: b.cell_work > 0, _without(("program.bounds._add_cell_cuts", _nothing))),
    Part("three widths", lambda b, p: True, _without(("program.bounds.MOST_CONSTRAINTS", (450,)))),
    Part("four perturbations", lambda b, p: True, _without(("program.bounds.PERTURBATIONS", (0.1,)))),
    Part("nested cell cuts", lambda b, p: True, _without(("program.cell_cuts.MOST_NESTED", 1))),
    Part("plane cuts", lambda b, p: b.plane_work > 0, _without(("program.bounds.planes_of", lambda _: []))),
    Part(
        "optimised cost splitting",
        lambda b, p: b.plane_work > 0,
        _without(("program.cost_splitting.CostSplitting.next_split", _nothing)),
    ),
    Part(
        "program with directions",
        lambda b, p: not p.mirrored,
        _without(("program.bounds._relaxed", lambda *_: SimpleNamespace(status=Status.FAILED))),
    ),
)
