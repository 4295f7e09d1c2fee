"""Nominal algorithms by name, block by block in tasks: combinations in, protected counts out.

The methods that solve integer programs are for some hundred records at a time; a block is a run of
similar combinations of one region. A block's chi-square is that of its own records: its bound holds
given the blocking.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from pipelines.records.cluster_blocks import block_seed
from sdc.errors import InvalidParameter
from sdc.nominal.chi_exact import chi_exact
from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import FrequencyVector
from sdc.nominal.frequency_search.search import protect_block
from sdc.nominal.two_step import own
from sdc.safe.protection import safe_frequencies

#: What a block is protected by when the algorithm asked for fails on it.
FALLBACK = "local-search"
CHI_EXACT = "chi-exact"
#: Branch-and-bound nodes of Chi-ex on a block: seconds, where a whole file is given minutes.
BLOCK_NODES = 20


@dataclass(frozen=True)
class Task:
    """One block as it travels to its task."""

    block: int
    frequencies: FrequencyVector
    tables: tuple[tuple[str, ...], ...]
    k: int
    algorithm: str
    seed: int


def solved_by_block(
    spark: SparkSession,
    frequencies: FrequencyVector,
    tables: Sequence[tuple[str, ...]],
    k: int,
    algorithm: str,
    most: int,
    seed: int,
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Protect a frequency vector in blocks of at most about `most` records.

    Returns
    -------
    counts : (m,) int64 array
        0 or at least k, with the total of each block kept.
    reports : list of dict
        One a block, in order; ``status`` says where one could not be protected at all.
    """
    blocks = cut(frequencies, k, most)
    tasks = [
        Task(number, _part(frequencies, members), tuple(tables), k, algorithm, block_seed(seed, number))
        for number, members in enumerate(blocks)
    ]
    answers = spark.sparkContext.parallelize(tasks, len(tasks)).map(solve_task).collect()
    counts = np.zeros(len(frequencies), np.int64)
    for members, (found, _) in zip(blocks, answers, strict=True):
        counts[members] = found
    return counts, [report for _, report in answers]


def cut(frequencies: FrequencyVector, k: int, most: int) -> list[np.ndarray]:
    """Positions of the combinations of each block: runs within a region, each of at least k records.

    Combinations follow each other by the variable of the smallest domain first, so that those of a
    block agree on as many variables as they can.
    """
    by_domain = np.argsort(frequencies.domain_sizes, kind="stable")
    regions = frequencies.region_of()
    order = np.lexsort([*(frequencies.codes[:, j] for j in reversed(by_domain)), regions])
    blocks = []
    for region in np.unique(regions):
        own_order = order[regions[order] == region]
        ends = np.cumsum(frequencies.counts[own_order])
        pieces = max(1, -(-int(ends[-1]) // most))
        wanted = ends[-1] * np.arange(1, pieces) / pieces
        cuts = np.unique(np.searchsorted(ends, wanted) + 1)
        start = 0
        for stop in [*cuts[cuts < len(own_order)], len(own_order)]:
            before = ends[start - 1] if start else 0
            last = stop == len(own_order)
            if not last and (ends[stop - 1] - before < k or ends[-1] - ends[stop - 1] < k):
                continue
            blocks.append(np.sort(own_order[start:stop]))
            start = stop
    return blocks


def solve_task(task: Task) -> tuple[np.ndarray, dict[str, Any]]:
    """Counts and report of one block; what an exception says could hold a value, its type does not."""
    start = time.monotonic()
    report: dict[str, Any] = {
        "block": task.block,
        "records": task.frequencies.records,
        "status": "done",
        "algorithm": task.algorithm,
    }
    tables = ControlTables.of(task.frequencies, task.tables)
    try:
        counts, told = _solve(task, tables)
        _check(task, counts)
    except InvalidParameter:
        raise  # what was asked for is impossible for every block; such a message holds no value
    except Exception as error:
        counts = protect_block(task.frequencies, task.k, tables, seed=task.seed).counts
        told = {"algorithm": FALLBACK, "fallback": FALLBACK, "why": type(error).__name__}
    report |= told | {"clusters": int(np.count_nonzero(counts)), "seconds": time.monotonic() - start}
    return counts, report | {"objective": tables.chi2(counts)}


def _solve(task: Task, tables: ControlTables) -> tuple[np.ndarray, dict[str, Any]]:
    if task.algorithm == CHI_EXACT:
        proved = chi_exact(task.frequencies, task.k, tables, nodes=BLOCK_NODES, seed=task.seed)
        return proved.counts, {
            "lower_bound": proved.lower_bound,
            "gap": proved.gap,
            "optimal": proved.optimal,
            "stopped_by": proved.stopped_by,
            "work": {"nodes": proved.nodes},
        }
    if task.algorithm.endswith("safe-exact"):
        safe = safe_frequencies(task.frequencies, task.k, tables, algorithm=task.algorithm, keep_records=True)
        return safe.counts, {"optimal": safe.optimal, "stopped_by": safe.stopped_by}
    steps = own(task.frequencies, task.k, tables, name=task.algorithm, seed=task.seed)
    return steps.counts, {"stopped_by": steps.stopped_by, "work": {"partition_weight": steps.weight}}


def _check(task: Task, counts: np.ndarray) -> None:
    """A method that breaks its promise must never be believed."""
    if counts.sum() != task.frequencies.records or ((counts > 0) & (counts < task.k)).any():
        raise ArithmeticError


def _part(frequencies: FrequencyVector, members: np.ndarray) -> FrequencyVector:
    return FrequencyVector(
        codes=frequencies.codes[members],
        counts=frequencies.counts[members],
        domain_sizes=frequencies.domain_sizes,
        names=frequencies.names,
    )
