"""An adjustment, its independent check, and the CPU seconds it took."""

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
    assert check(table, answer.values, mode).sound, "an answer failed the independent check"
    assert answer.lower_bound <= answer.objective * (1 + 1e-9)
    return answer, seconds


def attempt(table: CellTable, method: str) -> tuple[Adjustment, float] | tuple[()]:
    """An answer and its seconds; nothing where the method found none in a minute."""
    try:
        return timed(table, "exact", method, "standard", 60)
    except NoSolutionFound:
        return ()


def done(what: str, seconds: float) -> None:
    """Say on stderr what of a long benchmark is done, and the CPU seconds it took."""
    print(f"{what}: {seconds:.0f} s", file=sys.stderr, flush=True)
