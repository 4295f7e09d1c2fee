"""Windows: clusters that lie together, replaced by the best partition of their records.

The set-partitioning program over a whole file seldom ends; over a few hundred records that lie together
it does in a second. So an incumbent is improved part by part, each part exactly, over columns at hand: a
large neighbourhood search (Shaw 1998) whose repair is an integer program.
"""

from __future__ import annotations

import numpy as np

from sdc.microaggregation.certified.repartition import Repartition, repartition
from sdc.microaggregation.column_generation.columns import Columns, labels_of
from sdc.stop import Deadline

#: Records of a window, tried in growing order; a window is at most half of the file.
SIZES = (150, 250, 400)
#: Windows of one size lie so that each record is in about so many.
COVER = 4
#: Branch-and-bound nodes of a window's program: nearly all are done at the root.
NODES = 200

_NO_CUTS = np.empty((0, 3), dtype=np.int64)


def improve(columns: Columns, pool: np.ndarray, incumbent: np.ndarray, deadline: Deadline) -> Repartition:
    """Improve a partition window by window until no window of any size can be improved.

    Parameters
    ----------
    columns : Columns
    pool : (m,) int array
        Positions of columns that may be used.
    incumbent : (clusters,) int array
        Positions of columns that partition the records.
    deadline : Deadline
        Safety net.
    """
    nodes = 0
    for size in SIZES:
        if 2 * size > len(columns.distances):
            break
        improving = True
        while improving and not deadline.passed:
            swept = _sweep(columns, pool, incumbent, size, deadline)
            improving = columns.costs[swept.chosen].sum() < columns.costs[incumbent].sum()
            incumbent, nodes = swept.chosen, nodes + swept.nodes
    return Repartition(incumbent, False, nodes)


def _sweep(
    columns: Columns, pool: np.ndarray, incumbent: np.ndarray, size: int, deadline: Deadline
) -> Repartition:
    """Every window of a size once."""
    n, nodes = len(columns.distances), 0
    for centre in _centres(columns.distances, round(COVER * n / size)):
        clusters = labels_of(columns.members[incumbent], n)
        near = np.argsort(columns.distances[centre], kind="stable")[:size]
        within = np.unique(clusters[near])
        inside = np.append(np.isin(clusters, within), True)  # the filler -1 is the last
        choice = pool[inside[columns.members[pool]].all(axis=1)]
        solved = repartition(columns, choice, incumbent[within], _NO_CUTS, nodes=NODES, deadline=deadline)
        incumbent = np.concatenate([np.delete(incumbent, within), solved.chosen])
        nodes += solved.nodes
    return Repartition(incumbent, False, nodes)


def _centres(distances: np.ndarray, count: int) -> list[int]:
    """Records far from each other: each the farthest from those before."""
    centres = [int(np.argmax(distances.sum(axis=1)))]
    apart = distances[centres[0]]
    while len(centres) < count:
        centres.append(int(np.argmax(apart)))
        apart = np.minimum(apart, distances[centres[-1]])
    return centres
