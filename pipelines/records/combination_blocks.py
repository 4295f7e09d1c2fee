"""Protection of frequencies block by block in tasks, by an algorithm that solves integer programs.

These algorithms can solve some hundred records at a time. A block is a run of similar key combinations of one
region. The chi-square of a block is that of its own records, and its bound holds given the blocking. The
report of the whole file states a bound that holds for every method.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from microguard.pipelines.engine.tasks import in_tasks
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.measures.block_reports import OF_BLOCK, OF_FILE
from microguard.pipelines.records.block import block_seed
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.algorithms.nominal import FREQUENCY, FrequencyAlgorithm
from microguard.sdc.algorithms.safe import SAFE
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.frequency_search.search import protect_frequencies
from microguard.sdc.nominal.methods import ProtectionTask, bounded, protect_counts
from microguard.sdc.nominal.protected_counts import ProtectedCounts
from microguard.sdc.nominal.similarity import Similarity
from pyspark.sql import SparkSession

#: Fallback algorithm for a block on which the requested algorithm fails.
FALLBACK = "local-search"
#: Type: the nominal algorithms that a specification may name.
METHODS: dict[str, FrequencyAlgorithm] = {**FREQUENCY, **SAFE}


@dataclass(frozen=True)
class Task:
    """One block of key combinations in the form in which it is sent to a task."""

    block: int
    frequencies: FrequencyVector
    tables: tuple[tuple[Hashable, ...], ...]
    k: int
    algorithm: str
    seed: int
    effort: Effort = "standard"
    similarity: Similarity | None = None
    parameters: object | None = None


def solved_by_block(
    spark: SparkSession,
    task: ProtectionTask,
    algorithm: str,
    most: int,
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Protect a frequency vector in blocks of at most about `most` records.

    Parameters
    ----------
    task : ProtectionTask
        Task of the whole file, with its control tables; their names are text.

    Returns
    -------
    counts : (m,) int64 array
        0 or at least k, with the total of each block kept.
    reports : list of dict
        One report for each block, in order, and one for the whole file.

    Raises
    ------
    InvalidParameter
        If the algorithm does not support the settings, so that no block can be protected.
    """
    frequencies = task.frequencies
    blocks = cut(frequencies, task.k, most)
    tasks = [
        Task(
            number,
            _part(frequencies, members),
            _tables_of_block(task.tables.tables, frequencies),
            task.k,
            algorithm,
            block_seed(task.seed, number),
            task.effort,
            None if task.similarity is None else task.similarity.at(members),
            task.parameters,
        )
        for number, members in enumerate(blocks)
    ]
    answers = in_tasks(spark, solve_task, tasks)
    unsupported = next((report["why"] for _, report in answers if report["status"] == "unsupported"), None)
    if unsupported is not None:
        raise InvalidParameter(unsupported)
    counts = np.zeros(len(frequencies), np.int64)
    for members, (protected, _) in zip(blocks, answers, strict=True):
        counts[members] = protected
    return counts, [*(report for _, report in answers), _of_file(task, algorithm, counts)]


def _of_file(task: ProtectionTask, algorithm: str, counts: np.ndarray) -> dict[str, Any]:
    """Return the report of the whole file's lower bound, which does not depend on the blocks."""
    whole = bounded(task, ProtectedCounts(counts, "work"))
    return {
        "whole_file": True,
        "records": task.frequencies.records,
        "algorithm": algorithm,
        **proved(whole, task.tables.chi2(counts), OF_FILE),
        "clusters": int(np.count_nonzero(counts)),
        "seconds": 0.0,
    }


def cut(frequencies: FrequencyVector, k: int, most: int) -> list[np.ndarray]:
    """Return the positions of the key combinations of each block: consecutive ones within a region, with at
    least k records.

    Combinations are sorted by the variable with the smallest domain first, so that those of a block agree in
    as many variables as possible.
    """
    by_domain = np.argsort(frequencies.domain_sizes, kind="stable")
    regions = frequencies.region_of()
    order = np.lexsort([*(frequencies.codes[:, j] for j in reversed(by_domain)), regions])
    blocks = []
    for region in np.unique(regions):
        inside = order[regions[order] == region]
        ends = np.cumsum(frequencies.counts[inside])
        pieces = max(1, -(-int(ends[-1]) // most))
        targets = ends[-1] * np.arange(1, pieces) / pieces
        cuts = np.unique(np.searchsorted(ends, targets) + 1)
        start = 0
        for stop in [*cuts[cuts < len(inside)], len(inside)]:
            before = ends[start - 1] if start else 0
            last = stop == len(inside)
            if not last and (ends[stop - 1] - before < k or ends[-1] - ends[stop - 1] < k):
                continue
            blocks.append(np.sort(inside[start:stop]))
            start = stop
    return blocks


def solve_task(task: Task) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the counts and the report of one block; the report contains the type of an error, never its
    text.

    If the algorithm does not support the settings, the status says so and the counts are unchanged. An
    exception would pass through Spark and end the run as an unexpected error.
    """
    start = time.monotonic()
    report: dict[str, Any] = {
        "block": task.block,
        "records": task.frequencies.records,
        "status": "done",
        "algorithm": task.algorithm,
        "software": in_words(deciding_versions()),
    }
    tables = ControlTables.of(task.frequencies, task.tables)
    try:
        solution = protect_counts(
            ProtectionTask(
                task.frequencies,
                task.k,
                tables,
                effort=task.effort,
                seed=task.seed,
                similarity=task.similarity,
                parameters=task.parameters,
                in_block=True,
            ),
            task.algorithm,
            METHODS,
        )
        counts = solution.counts
        _check(task, counts)
        report |= proved(solution, tables.chi2(counts), OF_BLOCK)
    except InvalidParameter as error:  # messages of this error contain no value
        return task.frequencies.counts, report | {"status": "unsupported", "why": str(error)}
    except Exception as error:
        block = ProtectionTask(task.frequencies, task.k, tables, effort="fast", seed=task.seed)
        counts = protect_frequencies(block).counts
        again = bounded(ProtectionTask(task.frequencies, task.k, tables), ProtectedCounts(counts, "work"))
        report |= proved(again, tables.chi2(counts), OF_BLOCK)
        report |= {"algorithm": FALLBACK, "fallback": FALLBACK, "why": type(error).__name__}
    report |= {"clusters": int(np.count_nonzero(counts)), "seconds": time.monotonic() - start}
    return counts, report


def proved(solution: ProtectedCounts, chi2: float, bound_of: str) -> dict[str, Any]:
    """Return the certificate of a solution as a report contains it: objective, bound, gap, steps."""
    bound = solution.lower_bound
    return {
        "objective": chi2,
        "lower_bound": bound,
        "gap": None if bound is None else (0.0 if chi2 == 0 else max(0.0, (chi2 - bound) / chi2)),
        "optimal": solution.optimal,
        "bound_of": bound_of,
        "stopped_by": solution.stopped_by,
        "work": dict(solution.work),
        "certificates": [asdict(step) | {"gap": step.gap} for step in solution.certificates],
    }


def _check(task: Task, counts: np.ndarray) -> None:
    """Raise an error if counts violate the guarantee or change the number of records."""
    if counts.sum() != task.frequencies.records or ((counts != 0) & (counts < task.k)).any():
        raise ArithmeticError


def _tables_of_block(
    tables: Sequence[tuple[Hashable, ...]], frequencies: FrequencyVector
) -> tuple[tuple[Hashable, ...], ...]:
    """Return the control tables without the region, which is constant within a block."""
    without = [tuple(name for name in table if name in frequencies.names) for table in tables]
    return tuple(dict.fromkeys(table for table in without if table))


def _part(frequencies: FrequencyVector, members: np.ndarray) -> FrequencyVector:
    return FrequencyVector(
        codes=frequencies.codes[members],
        counts=frequencies.counts[members],
        domain_sizes=frequencies.domain_sizes,
        names=frequencies.names,
    )
