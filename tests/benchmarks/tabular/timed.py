"""Run an adjustment, check it independently, and measure its CPU seconds."""

from __future__ import annotations

import sys
import time

from microguard.sdc.cta import Adjustment, CellTable, adjust
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.cta.table.check import check


def timed(
    table: CellTable, mode: str, algorithm: str, effort: str, limit: float | None
) -> tuple[Adjustment, float]:
    start = time.process_time()
    answer = adjust(table, mode=mode, algorithm=algorithm, effort=effort, time_limit=limit)
    seconds = time.process_time() - start
    assert check(table, answer.values, mode).sound, "a solution failed the independent check"
    assert answer.lower_bound <= answer.objective * (1 + 1e-9)
    return answer, seconds


def attempt(table: CellTable, method: str) -> tuple[Adjustment, float] | tuple[()]:
    """Return a solution and its seconds; None if the method found no solution within a minute."""
    try:
        return timed(table, "exact", method, "standard", 60)
    except NoSolutionFound:
        return ()


def done(what: str, seconds: float) -> None:
    """Print the finished part of a long benchmark and its CPU seconds to standard error."""
    print(f"{what}: {seconds:.0f} s", file=sys.stderr, flush=True)
