"""A fixed set of small calls of public functions that together call every kernel.

A new kernel needs a call here unless an existing call already reaches the kernel; otherwise `test_kernels`
names it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.microaggregation import VmdavParameters
from microguard.sdc.clusters.diversity import Diversity, diversify
from microguard.sdc.cta.annealing.internal_cells import DescentParams, InternalCellSearch
from microguard.sdc.cta.controlled_rounding.annealing import annealed_multiples
from microguard.sdc.cta.controlled_rounding.box import Box
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.certified.odd_set_cuts import separate_larger
from microguard.sdc.microaggregation.certified.subset_row_cuts import WIDTH, separate
from microguard.sdc.microaggregation.column_generation.columns import as_members
from microguard.sdc.microaggregation.column_generation.complete_enumeration import enumerate_completely
from microguard.sdc.microaggregation.global_bound.bound import WORK, global_bound
from microguard.sdc.microaggregation.minimality_attack_mitigation import merge_until_diverse
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.nominal import partition, transport
from microguard.sdc.nominal.frequency import from_frame
from microguard.sdc.perturbation.rank_swapping import partners
from microguard.sdc.precompile import PARTS
from microguard.sdc.stop import Deadline

from tests.benchmarks.tabular.hierarchies import hierarchical_table


def minimality_mitigation() -> None:
    """Return clusters that lack hidden values, merged with a randomly drawn partner."""
    random = np.random.default_rng(0)
    diversity = Diversity.of(random.integers(0, 3, (24, 1)), 2)
    records, _ = Records.of(random.normal(size=(24, 2)), 2, diversity=diversity)
    merge_until_diverse(records, np.arange(24) // 2, seed=0)


def enumeration() -> None:
    """Return the cluster of least reduced cost among all."""
    distances = np.random.default_rng(0).random((6, 6))
    enumerate_completely(distances, np.ones(6), 3, 0.0)


def far_moves() -> None:
    """Move more records than an exact assignment allows."""
    frame = pd.DataFrame({"x": [0, 1] * 1500, "y": [0, 1] * 1500})
    frequencies = from_frame(frame).frequencies
    transport.transport(frequencies, frequencies.counts[::-1] + np.array([-1200, 1200]))


def margins() -> None:
    """Anneal directions, and return the best of several descents for tables whose totals are sums."""
    table = hierarchical_table(((2, 2), (3,)), 0, occupied=0.8, sensitive=0.2)
    problem = Problem.from_table(table, "at-least")
    found = InternalCellSearch(problem)
    list(found.anneal(2e3, 1, Deadline.after(None)))
    start = random_directions(problem, np.random.default_rng(1))
    found.best_of(start, DescentParams(4, 2, 2), 1, Deadline.after(None))
    summation = Summation.from_relations(table.relations)
    assert summation is not None
    shares = table.values / 1000.0
    box = Box.from_values(shares, np.full(len(shares), np.nan))
    annealed_multiples(summation, box.lower, box, np.arange(len(shares)), 0, "fast")


def cuts() -> None:
    """Separate cuts on three, five and seven records, and price columns with their duals."""
    rng = np.random.default_rng(0)
    clusters = {tuple(sorted(rng.choice(12, rng.integers(3, 6), replace=False))) for _ in range(30)}
    members = as_members(sorted(clusters), 3)
    x = rng.uniform(0.1, 0.6, size=len(members))
    separate(members, x, 12, np.empty((0, 3), dtype=np.int64))
    separate_larger(members, x, 12, np.empty((0, WIDTH), dtype=np.int64))


def more_records() -> None:
    """Build trees of more than one leaf, with weights, with diversity and with many repeated records."""
    random = np.random.default_rng(0)
    points, codes = random.normal(size=(48, 2)), random.integers(0, 4, (48, 1))
    diversity = Diversity.of(codes, 2)
    for effort in ("standard", "thorough"):
        microaggregate(points, 3, effort=effort, record_weights=random.lognormal(size=48))
        microaggregate(points, 4, effort=effort, diversity=diversity)
    microaggregate(points.round(), 3, effort="standard")
    microaggregate(points, 3, algorithm="vmdav", parameters=VmdavParameters(1.1))
    microaggregate(points[:24], 3, effort="exact")
    diversify(points, np.arange(48) // 2, Diversity.of(codes, 3))
    global_bound(points, 5, work=WORK["exact"])
    frame = pd.DataFrame(random.integers(0, 3, (40, 4)), columns=list("abcd"))
    partition(frame, 5, effort="fast")
    partition(frame[["a", "b"]], 3, effort="fast")


def exchanges() -> None:
    """Return the partners of ranks."""
    partners(24, 0.2, 0)


CALLS: dict[str, Callable[[], None]] = {
    **PARTS,
    **{call.__name__: call for call in (minimality_mitigation, enumeration, far_moves, margins, exchanges)},
}
#: Calls that reach kernels called only by other kernels.
INSIDE: dict[str, Callable[[], None]] = {"more_records": more_records, "cuts": cuts, **CALLS}
