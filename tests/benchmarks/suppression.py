"""Cell suppression: gaps of reference and generated tables, and the same tables by pytauargus if installed.

Every pattern of microguard passes the audit. Times are CPU seconds of one process, the audit included; gap =
cost / lower bound - 1. Contributors who know a primary exactly, because they are its only ones, do not count.
"""

from __future__ import annotations

import os
import platform
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from microguard.pipelines.engine.versions import deciding_versions, in_words, microguard_version
from microguard.sdc.cta.table.relations import TOTAL, Dimension
from microguard.sdc.suppression import KINDS, Suppression, SuppressionProblem, audit, suppress

from tests.benchmarks.parts import Parts, say
from tests.benchmarks.table import Table
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
#: Generated tables that are searched by one small program for each primary.
LARGE: dict[str, tuple[tuple[tuple[int, ...], ...], int]] = {
    "10.10.5 x 9.10": (((10, 10, 5), (9, 10, 1)), 100_000),
    "10.10.10 x 10.10.10": (((10, 10, 10), (10, 10, 10)), 1_000_000),
}
PAGE = Path(__file__).parents[2] / "docs/benchmarks/suppression.md"
#: Generated tables that are also protected from contributors.
_ATTACKED = ("3.4 x 3.3 x 4", "5.6 x 4.4 x 4")


def run(quick: bool = False) -> Iterator[Table]:
    """Return the tables: reference files, the business survey next to pytauargus, generated tables.

    A full run writes each one into the page of the manual as soon as it is measured. A repeated run does not
    measure again what the same code finished before.
    """
    parts = Parts(f"suppression{'_quick' * quick}", rooms=("sdc", "tests/benchmarks/tabular"))
    for table in _tables(parts, quick):
        if not quick:
            PAGE.write_text(page([table], PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        yield table


def _tables(parts: Parts, quick: bool) -> Iterator[Table]:
    if (REFERENCE_FOLDER / "business_survey.csv").is_file():
        yield reference_tables(parts, quick)
        yield survey_tables(parts, list(SURVEY)[: 2 if quick else None])
    yield generated_tables(parts, list(GENERATED)[: 1 if quick else None])
    if not quick:
        yield large_tables(parts, list(LARGE))


def page(tables: list[Table], before: str = "") -> str:
    """Return the page of the manual; tables of the page before that were not measured again stay."""
    where = (
        f"*Command:* `microguard benchmark suppression`. *Machine:* {os.cpu_count()} cores, "
        f"{platform.machine()}, shared, one thread used. *Version:* {microguard_version()}, "
        f"{in_words(deciding_versions())}. *Date:* {datetime.now(UTC).date()}."
    )
    sections = {part.split("\n", 1)[0]: part.rstrip("\n") for part in before.split("\n## ")[1:]}
    for table in tables:
        sections[table.title] = (
            f"{table.title}\n{where}\n\n{table.markdown().split(chr(10) * 2, 1)[1].strip()}"
        )
    lead = " ".join((__doc__ or "").split("\n\n")[1].split())
    return "\n\n".join(["# Cell suppression", lead, *(f"## {part}" for part in sections.values())]) + "\n"


def measured(
    parts: Parts, name: str, problem: SuppressionProblem, attackers: tuple[str, ...]
) -> tuple[Suppression, float, float]:
    """Suppress and audit a table, and return the CPU seconds and the largest memory of the process, MB."""

    def suppressed() -> tuple[Suppression, float]:
        answer = suppress(problem, attackers=attackers)
        return answer, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    (answer, memory), seconds = parts.answer(name, suppressed)
    assert answer.audit.protected
    assert answer.lower_bound <= answer.cost * (1 + 1e-9)
    return answer, seconds, memory


def reference_tables(parts: Parts, quick: bool) -> Table:
    """Return cost and bound of the reference tables, by number and by value."""
    rows: list[tuple[object, ...]] = []
    for name, build in (
        ("activity x size", turnover_problem),
        ("activity x region x size", regional_problem),
    ):
        if quick and build is regional_problem:
            continue
        for costs in COSTS:
            problem = build(costs)
            answer, seconds, _ = measured(parts, f"{name}, {costs}", problem, OUTSIDER)
            figures = (int(answer.suppressed.sum()), answer.cost, answer.lower_bound, _percent(answer))
            rows.append((name, costs, *_size(problem), *figures, answer.stopped_by, seconds))
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
    return Table("Turnover, dominance (1, 85), 3 businesses, outsider", columns, rows)


def survey_tables(parts: Parts, names: list[str]) -> Table:
    """Return the cost of protection from contributors, and what contributors learn after pytauargus."""
    rows: list[tuple[object, ...]] = []
    for name in names:
        problem = survey_problem(name)
        for who, attackers in (("outsider", OUTSIDER), ("all attackers", KINDS)):
            answer, seconds, _ = measured(parts, f"{name}, {who}", problem, attackers)
            rows.append(_row(name, who, problem, answer.suppressed, seconds, _percent(answer)))
        for how in ("OPT(1)", "MOD(1,5,1,1,1)") if find_spec("pytauargus") else ():
            suppressed, seconds = by_pytauargus(name, problem, how)
            if suppressed is not None:
                rows.append(_row(name, f"pytauargus {how}", problem, suppressed, seconds, None))
        say(name)
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
    return Table("Business survey, NK(1, 85), FREQ(3, 20), costs by value", columns, rows, note)


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
    # its solver writes files into the current folder
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
        except Exception as error:  # errors of any kind: the row states that there is no answer
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
    # codes are padded to one width
    codes = hidden[columns].astype(str).apply(lambda column: column.str.strip())
    keys = {
        tuple(0 if code == TOTAL else int(code[1:]) for code in row)
        for row in codes.itertuples(index=False, name=None)
    }
    return np.array([tuple(row) in keys for row in survey_nodes(name).tolist()]) | problem.primary


def generated_tables(parts: Parts, names: list[str]) -> Table:
    """Return gap and time of generated hierarchical tables of three dimensions."""
    return _generated(parts, "Generated hierarchical tables, costs by value", names, GENERATED)


def large_tables(parts: Parts, names: list[str]) -> Table:
    """Return gap, time and memory of tables that no program covers as a whole."""
    return _generated(parts, "Large generated tables of two hierarchies, costs by value", names, LARGE)


def _generated(
    parts: Parts, title: str, names: list[str], tables: dict[str, tuple[tuple[tuple[int, ...], ...], int]]
) -> Table:
    rows: list[tuple[object, ...]] = []
    for name in names:
        branchings, units = tables[name]
        problem = generated_problem(branchings, units, 1)
        for who, attackers in (("outsider", OUTSIDER), ("all attackers", KINDS)):
            if attackers is KINDS and name not in _ATTACKED:
                continue
            answer, seconds, memory = measured(parts, f"{name}, {who}", problem, attackers)
            figures = int(answer.suppressed.sum()), _percent(answer)
            rows.append((name, who, *_size(problem), *figures, answer.stopped_by, seconds, memory))
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
    return Table(title, columns, rows)


def _size(problem: SuppressionProblem) -> tuple[int, int]:
    return problem.cells, int(problem.primary.sum())


def _percent(answer: Suppression) -> float | None:
    return None if answer.gap is None else 100 * answer.gap


def _row(
    name: str,
    who: str,
    problem: SuppressionProblem,
    suppressed: np.ndarray,
    seconds: float,
    gap: float | None,
) -> tuple[object, ...]:
    found = audit(problem, suppressed)
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
