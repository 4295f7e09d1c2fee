"""A fixed set of small calls of public functions that together call every kernel.

A new kernel needs a call here, unless one of these reaches it already: `test_kernels` names it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from sdc.clusters.diversity import Diversity
from sdc.compile_ahead import PARTS
from sdc.cta.annealing.resummed_margins import ResummedMargins, ResumParams
from sdc.cta.controlled_rounding.annealing import annealed_multiples
from sdc.cta.controlled_rounding.box import Box
from sdc.cta.program.directions import random_directions
from sdc.cta.program.problem import Problem
from sdc.cta.table.summation import Summation
from sdc.microaggregation.column_generation.complete_enumeration import enumerate_completely
from sdc.microaggregation.concealment import merged
from sdc.microaggregation.records import Records
from sdc.nominal import transport
from sdc.nominal.frequency import from_frame
from sdc.stop import Deadline
from tests.benchmarks.tabular.hierarchies import hierarchical_table


def concealment() -> None:
    """Clusters that lack hidden values, merged by a draw."""
    random = np.random.default_rng(0)
    diversity = Diversity.of(random.integers(0, 3, (24, 1)), 2)
    records, _ = Records.of(random.normal(size=(24, 2)), 2, diversity=diversity)
    merged(records, np.arange(24) // 2, seed=0)


def enumeration() -> None:
    """The cluster of least reduced cost among all."""
    distances = np.random.default_rng(0).random((6, 6))
    enumerate_completely(distances, np.ones(6), 3, 0.0)


def far_moves() -> None:
    """More records that move than are assigned exactly."""
    frame = pd.DataFrame({"x": [0, 1] * 1500, "y": [0, 1] * 1500})
    frequencies = from_frame(frame).frequencies
    transport.transport(frequencies, frequencies.counts[::-1] + np.array([-1200, 1200]))


def margins() -> None:
    """Directions annealed, and the best of several descents, where a table's totals are sums."""
    table = hierarchical_table(((2, 2), (3,)), 0, occupied=0.8, sensitive=0.2)
    problem = Problem.of(table, "at-least")
    found = ResummedMargins(problem)
    list(found.anneal(2e3, 1, Deadline.after(None)))
    start = random_directions(problem, np.random.default_rng(1))
    found.best_of(start, ResumParams(4, 2, 2), 1, Deadline.after(None))
    summation = Summation.of(table.relations)
    assert summation is not None
    shares = table.values / 1000.0
    box = Box.around(shares, np.full(len(shares), np.nan))
    annealed_multiples(summation, box.lower, box, np.arange(len(shares)), 0, "fast")


CALLS: dict[str, Callable[[], None]] = {
    **PARTS,
    **{call.__name__: call for call in (concealment, enumeration, far_moves, margins)},
}
