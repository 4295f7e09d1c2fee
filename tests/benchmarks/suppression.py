"""Cell suppression: gaps of reference and generated tables, and the same tables by pytauargus if installed.

Every pattern of microguard passes the audit. Times are CPU seconds of one process, the audit included; gap =
cost / lower bound - 1. Contributors who know a primary exactly, because they are its only ones, do not count.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from microguard.sdc.cta.table.relations import TOTAL, Dimension
from microguard.sdc.suppression import KINDS, Audit, Suppression, SuppressionProblem, audit, suppress

from tests.benchmarks.parts import Parts, say
from tests.benchmarks.table import Table
from tests.benchmarks.tabular.suppression_page import Plan, measure_rows
from tests.benchmarks.tabular.suppression_tables import (
    SURVEY,
    Costs,
    generated_problem,
    regional_problem,
    survey_nodes,
    survey_problem,
    survey_records,
    turnover_problem,
)
from tests.reference import REFERENCE_FOLDER

OUTSIDER = ("outsider",)
COSTS: tuple[Costs, ...] = ("number", "value")
#: Numbers of children by level and dimension, and units, of generated tables.
GENERATED: dict[str, tuple[tuple[tuple[int, ...], ...], int]] = {
    "3.4 x 3.3 x 4": (((3, 4), (3, 3), (4,)), 3_000),
    "5.6 x 4.4 x 4": (((5, 6), (4, 4), (4,)), 15_000),
    "6.8 x 5.5 x 4.3": (((6, 8), (5, 5), (4, 3)), 150_000),
}
#: Generated tables that are searched by one small program for each primary cell.
LARGE: dict[str, tuple[tuple[tuple[int, ...], ...], int]] = {
    "10.10.5 x 9.10": (((10, 10, 5), (9, 10, 1)), 100_000),
    "10.10.10 x 10.10.10": (((10, 10, 10), (10, 10, 10)), 1_000_000),
    "10.10.16 x 10.10.16": (((10, 10, 16), (10, 10, 16)), 1_000_000),
    "10.10.20 x 10.10.20": (((10, 10, 20), (10, 10, 20)), 1_000_000),  # more than a million cells
}
#: Generated tables that are also protected from contributors.
_ATTACKED = ("3.4 x 3.3 x 4", "5.6 x 4.4 x 4")
#: Rows that take longer are measured last, in this order, the most important rows for a published page first.
LONG = (
    "10.10.16 x 10.10.16, outsider",
    "a88 x nuts2 x size, outsider",
    "a88 x nuts2 x size, pytauargus MOD(1,5,1,1,1)",
    "a88 x nuts2 x size, pytauargus OPT(1)",
    "a88 x nuts3 x size, pytauargus MOD(1,5,1,1,1)",
    "a88 x nuts3 x size, pytauargus OPT(1)",
    "a10 > a21 > a88 x nuts2 x size, outsider",
    "a10 > a21 > a88 x nuts2 x size, pytauargus MOD(1,5,1,1,1)",
    "a10 > a21 > a88 x nuts2 x size, pytauargus OPT(1)",
    "3.4 x 3.3 x 4, outsider",
    "10.10.5 x 9.10, outsider",
    "a88 x nuts2 x size, all attackers",
    "a88 x nuts3 x size, outsider",
    "a88 x nuts3 x size, all attackers",
    "a10 > a21 > a88 x nuts2 x size, all attackers",
    "5.6 x 4.4 x 4, outsider",
    "activity x region x size, number",
    "activity x region x size, value",
    "3.4 x 3.3 x 4, all attackers",
    "5.6 x 4.4 x 4, all attackers",
    "6.8 x 5.5 x 4.3, outsider",
    "10.10.20 x 10.10.20, outsider",
    "10.10.10 x 10.10.10, outsider",
)


def run(quick: bool = False) -> Iterator[Table]:
    """Return the tables: reference files, the business survey next to pytauargus, generated tables.

    A full run writes each row into the page of the manual as soon as it is measured, the longest rows last,
    so that a run that is ended leaves a page that names the rows that it lacks. A repeated run does not
    measure again what the same code finished before.
    """
    parts = Parts(f"suppression{'_quick' * quick}", rooms=("sdc", "tests/benchmarks/tabular"))
    yield from measure_rows(_plans(quick), parts, "suppression", LONG, write=not quick)


def _plans(quick: bool) -> list[Plan]:
    plans = []
    if (REFERENCE_FOLDER / "business_survey.csv").is_file():
        plans += [reference_tables(quick), survey_tables(list(SURVEY)[: 2 if quick else None])]
    plans.append(_generated("Generated hierarchical tables, costs by value", GENERATED, 1 if quick else None))
    if not quick:
        plans.append(_generated("Large generated tables of two hierarchies, costs by value", LARGE, None))
    return plans


def measured(problem: SuppressionProblem, attackers: tuple[str, ...]) -> tuple[Suppression, float, float]:
    """Suppress and audit a table, and return the CPU seconds and the largest memory of the process, MB."""
    begin = time.process_time()
    answer = suppress(problem, attackers=attackers)
    seconds = time.process_time() - begin
    assert answer.audit.protected
    assert answer.lower_bound <= answer.cost * (1 + 1e-9)
    return answer, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def reference_tables(quick: bool) -> Plan:
    """Return cost and bound of the reference tables, by number and by value."""

    def row(name: str, build: Callable[[Costs], SuppressionProblem], costs: Costs) -> tuple[object, ...]:
        problem = build(costs)
        answer, seconds, _ = measured(problem, OUTSIDER)
        figures = (int(answer.suppressed.sum()), answer.cost, answer.lower_bound, _percent(answer))
        return (name, costs, *_size(problem), *figures, answer.stopped_by, seconds)

    builds = {"activity x size": turnover_problem, "activity x region x size": regional_problem}
    columns = (
        "table",
        "costs",
        "cells",
        "primaries",
        "suppressed",
        "cost",
        "bound",
        "gap %",
        "stopped by",
        "CPU s",
    )
    rows = {
        f"{name}, {costs}": partial(row, name, build, costs)
        for name, build in list(builds.items())[: 1 if quick else None]
        for costs in COSTS
    }
    return Plan("Turnover, dominance (1, 85), 3 businesses, outsider", columns, rows)


def survey_tables(names: list[str]) -> Plan:
    """Return the cost of protection from contributors, and what contributors infer after pytauargus."""

    def ours(name: str, who: str, attackers: tuple[str, ...]) -> tuple[object, ...]:
        problem = survey_problem(name)
        answer, seconds, _ = measured(problem, attackers)
        found = answer.audit if attackers is KINDS else audit(problem, answer.suppressed)
        return _row(name, who, problem, answer.suppressed, found, seconds, _percent(answer))

    def theirs(name: str, how: str) -> tuple[object, ...]:
        problem = survey_problem(name)
        suppressed, seconds = by_pytauargus(name, problem, how)
        if suppressed is None:
            return (name, f"pytauargus {how}", int(problem.primary.sum()), "fails", *[None] * 7, seconds)
        found = audit(problem, suppressed)
        return _row(name, f"pytauargus {how}", problem, suppressed, found, seconds, None)

    rows: dict[str, Callable[[], tuple[object, ...]]] = {}
    for name in names:
        for who, attackers in (("outsider", OUTSIDER), ("all attackers", KINDS)):
            rows[f"{name}, {who}"] = partial(ours, name, who, attackers)
        for how in ("OPT(1)", "MOD(1,5,1,1,1)") if find_spec("pytauargus") else ():
            rows[f"{name}, pytauargus {how}"] = partial(theirs, name, how)
    columns = (
        "table",
        "protected from",
        "primaries",
        "suppressed",
        "cost",
        "gap %",
        "narrow to outsider",
        "to single",
        "to pair",
        "to unit",
        "known to single",
        "CPU s",
    )
    note = (
        "All patterns are judged by the same audit and levels: 20 % for few businesses, and what the "
        "dominance rule asks. A pattern of lower cost than ours leaves primaries too narrow to the outsider."
    )
    return Plan("Business survey, NK(1, 85), FREQ(3, 20), costs by value", columns, rows, note)


def by_pytauargus(name: str, problem: SuppressionProblem, how: str) -> tuple[np.ndarray | None, float]:
    """Return the pattern of pytauargus and its CPU seconds, or None if it fails.

    Parameters
    ----------
    how : "OPT(1)" or "MOD(1,5,1,1,1)"
        Optimal; modular with its protection of singletons.
    """
    from pytauargus import protect

    dimensions, nodes, turnover = survey_records(name)
    frame = pd.DataFrame(
        {d.name: [f"n{node:04d}" for node in of] for d, of in zip(dimensions, nodes, strict=True)}
    ).assign(turnover=turnover)
    # the solver of pytauargus writes files into the current folder
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        hierarchies = {}
        for dimension in dimensions:
            if (dimension.parents[1:] > 0).any():
                hierarchies[dimension.name] = f"{folder}/{dimension.name}.hrc"
                Path(hierarchies[dimension.name]).write_text("\n".join(_tree(dimension, 0, "")) + "\n")
        start = time.process_time()
        try:
            answer = protect(
                frame,
                [dimension.name for dimension in dimensions],
                response="turnover",
                safety_rules="NK(1,85)|FREQ(3,20)",
                suppress=how,
                hrc=hierarchies or None,
                hierleadstring="@" if hierarchies else None,
                workdir=folder,
            )
        # pytauargus raises errors of any kind; the row then states that there is no result
        except Exception as error:
            say(f"{name}, pytauargus {how}: {type(error).__name__}: {error}")
            return None, time.process_time() - start
        seconds = time.process_time() - start
        cells = pd.DataFrame(answer.tables[0].dataframe())
    return pattern(name, problem, cells), seconds


def _tree(dimension: Dimension, above: int, lead: str) -> Iterator[str]:
    """Return the lines of a hierarchy of tau-ARGUS below a node."""
    for node in np.flatnonzero(dimension.parents == above).tolist():
        yield f"{lead}n{node:04d}"
        yield from _tree(dimension, node, lead + "@")


def pattern(name: str, problem: SuppressionProblem, cells: pd.DataFrame) -> np.ndarray:
    """Return the suppressed cells of a result of pytauargus: status U (primary) and M (secondary)."""
    columns = [levels[-1] for levels in SURVEY[name]]
    hidden = cells[cells["status"].isin(["U", "M"])]
    # pytauargus pads codes to one width
    codes = hidden[columns].astype(str).apply(lambda column: column.str.strip())
    keys = {
        tuple(0 if code == TOTAL else int(code[1:]) for code in row)
        for row in codes.itertuples(index=False, name=None)
    }
    return np.array([tuple(row) in keys for row in survey_nodes(name).tolist()]) | problem.primary


def _generated(
    title: str, tables: dict[str, tuple[tuple[tuple[int, ...], ...], int]], most: int | None
) -> Plan:
    """Return gap, time and memory of generated tables."""

    def row(name: str, who: str, attackers: tuple[str, ...]) -> tuple[object, ...]:
        branchings, units = tables[name]
        problem = generated_problem(branchings, units, 1)
        answer, seconds, memory = measured(problem, attackers)
        figures = int(answer.suppressed.sum()), _percent(answer)
        return (name, who, *_size(problem), *figures, answer.stopped_by, seconds, memory)

    columns = (
        "table",
        "protected from",
        "cells",
        "primaries",
        "suppressed",
        "gap %",
        "stopped by",
        "CPU s",
        "largest memory so far, MB",
    )
    rows = {
        f"{name}, {who}": partial(row, name, who, attackers)
        for name in list(tables)[:most]
        for who, attackers in (("outsider", OUTSIDER), ("all attackers", KINDS))
        if attackers is OUTSIDER or name in _ATTACKED
    }
    return Plan(title, columns, rows)


def _size(problem: SuppressionProblem) -> tuple[int, int]:
    return problem.cells, int(problem.primary.sum())


def _percent(answer: Suppression) -> float | None:
    return None if answer.gap is None else round(100 * answer.gap, 4)


def _row(
    name: str,
    who: str,
    problem: SuppressionProblem,
    suppressed: np.ndarray,
    found: Audit,
    seconds: float,
    gap: float | None,
) -> tuple[object, ...]:
    width = found.highest - found.lowest
    single = found.kinds.index("single")
    known = width[:, single] <= 1e-6 * np.abs(problem.values[found.cells])
    return (
        name,
        who,
        int(problem.primary.sum()),
        int(suppressed.sum()),
        float(problem.costs[suppressed].sum()),
        gap,
        *(int(narrow) for narrow in found.too_narrow.sum(axis=0)),
        int(known.sum()),
        seconds,
    )
