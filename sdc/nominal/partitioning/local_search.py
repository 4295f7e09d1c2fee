"""Local search for the partitioning problem: ruin and recreate with simulated annealing.

A partition consists of a *stock* for each key combination and of *mixed clusters*. A stock has 0 or at least
k equal records; clusters of equal records have weight 0. A mixed cluster has k to 2k - 1 records.

A move dissolves a few neighbouring mixed clusters and reassigns their records: to the stock of their
combination, to an *unfilled* mixed cluster (fewer than 2k - 1 records), or to a new cluster. A new cluster is
grown from the nearest loose records and surplus records of stocks. The number of clusters therefore adapts,
and the cost of a move does not depend on the size of the file. Schrimpf, Schneider, Stamm-Wilbrandt and Dueck
(2000) introduced ruin and recreate for vehicle routing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.neighbours import nearest_combinations
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem
from microguard.sdc.nominal.partitioning.search_state import (
    PartitionState,
    begin_move,
    close_cluster,
    insert,
    mixed_clusters,
    new_state,
    open_cluster,
    to_stock,
    undo_move,
)
from microguard.sdc.nominal.points import Points, distance
from microguard.sdc.stop import Deadline

#: Number of nearest combinations that are candidates for the moves of a record.
NEIGHBOURS = 40
#: Number of moves between two checks of the deadline, about a tenth of a second.
STRETCH = 1000
#: Maximum number of mixed clusters that a move dissolves, and of clusters with free space considered for a
#: record.
_MOST_RUINED, _MOST_UNFILLED = 5, 20
#: Probabilities that a move ignores a neighbouring combination, and that it dissolves a neighbouring small
#: stock.
_PASS_OVER, _BREAK_STOCK = 0.3, 0.1
#: Initial temperature in units of `PartitionProblem.unit`, and the share of the moves after which the
#: temperature, which falls linearly, is 0.
_TEMPERATURE, _COOLED = 1.0, 0.8


def local_search(
    problem: PartitionProblem, *, moves: int, seed: int, deadline: Deadline | None = None
) -> np.ndarray:
    """Search for a partition of small weight; return its columns (clusters, 2k - 1), padded with -1.

    Parameters
    ----------
    problem : PartitionProblem
    moves : int
        Number of ruin-and-recreate moves. 0 is the greedy construction only.
    seed : int
    deadline : Deadline, optional
        Wall-clock limit, as a safety net.
    """
    near = nearest_combinations(problem.points, NEIGHBOURS)
    walk = _construct(problem.points, problem.multiplicity, near, problem.k, seed % (1 << 32))
    done, deadline = 0, deadline or Deadline.after(None)
    while done < moves and mixed_clusters(walk.state) and not deadline.passed:
        last = min(done + STRETCH, moves)
        _ruin_and_recreate(walk, problem.points, near, problem.k, problem.unit, done, last, moves)
        done = last
    stock, members, sizes = walk.stock, walk.members, walk.sizes
    mixed = np.where(members == NONE, len(stock), members)[sizes > 0]
    mixed.sort(axis=1)
    mixed[mixed == len(stock)] = NONE
    return np.concatenate([mixed, _stock_columns(stock, problem.k)])


def _stock_columns(stock: np.ndarray, k: int) -> np.ndarray:
    """Split the stocks into clusters of k records; the last cluster of a stock receives the remainder."""
    rows = []
    for combination in np.flatnonzero(stock):
        clusters, rest = divmod(int(stock[combination]), k)
        for cluster in range(clusters):
            size = k + (rest if cluster == clusters - 1 else 0)
            rows.append([combination] * size + [NONE] * (2 * k - 1 - size))
    return np.array(rows, dtype=np.int64).reshape(-1, 2 * k - 1)


class _Walk(NamedTuple):
    """State of a running search.

    Attributes
    ----------
    state : PartitionState
        Current partition.
    queue : (n,) int64 array
        Buffer for the records that a move removes from clusters.
    stock, members, sizes : (u,), (clusters, 2k - 1) and (clusters,) int64 arrays
        Best partition so far; members are padded with -1.
    weights : (2,) int64 array
        Weights of the current and of the best partition.
    """

    state: PartitionState
    queue: np.ndarray
    stock: np.ndarray
    members: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray


@kernel
def _construct(points: Points, multiplicity: np.ndarray, near: np.ndarray, k: int, seed: int) -> _Walk:
    """Build the greedy start partition, and seed the random numbers of the whole search."""
    np.random.seed(seed)
    state = new_state(multiplicity, k)
    queue = np.empty(multiplicity.sum(), np.int64)
    queued = _queue_loose(state.loose, queue)
    possible, weight = _recreate(state, points, near, k, queue[:queued], False)
    if not possible:  # all clusters were full, and too few records remained for a new one
        state = new_state(multiplicity, k)
        queued = _queue_loose(state.loose, queue)
        _, weight = _recreate(state, points, near, k, queue[:queued], True)
    weights = np.array([weight, weight])
    return _Walk(state, queue, state.stock.copy(), state.members.copy(), state.sizes.copy(), weights)


@kernel
def _ruin_and_recreate(
    walk: _Walk, points: Points, near: np.ndarray, k: int, unit: int, first: int, last: int, moves: int
) -> None:
    """Run the moves `first` to `last` - 1; stop early if there is no mixed cluster."""
    state, queue = walk.state, walk.queue
    weight, best = walk.weights
    stride = 1 + len(queue) // 500  # the best partition is copied less often for large files, to save time
    for move in range(first, last):
        if mixed_clusters(state) == 0:
            break
        begin_move(state)
        queued, removed = _ruin(state, near, k, queue)
        possible, added = _recreate(state, points, near, k, queue[:queued], False)
        temperature = unit * _TEMPERATURE * max(0.0, 1.0 - move / (_COOLED * moves))
        if possible and added - removed <= -temperature * np.log(1.0 - np.random.random()):
            weight += added - removed
        else:
            for position in range(queued):
                state.loose[queue[position]] = 0
            undo_move(state)
        if weight < best and (move % stride == 0 or move == moves - 1):
            best = weight
            walk.stock[:] = state.stock
            walk.members[:] = state.members
            walk.sizes[:] = state.sizes
    walk.weights[:] = weight, best


@kernel
def _queue_loose(loose: np.ndarray, queue: np.ndarray) -> int:
    queued = 0
    for c in range(len(loose)):
        for _ in range(loose[c]):
            queue[queued] = c
            queued += 1
    return queued


@kernel
def _ruin(state: PartitionState, near: np.ndarray, k: int, queue: np.ndarray) -> tuple[int, int]:
    """Dissolve neighbouring mixed clusters; return the number of queued records and the removed weight."""
    anchor = state.alive[np.random.randint(mixed_clusters(state))]
    centre = state.members[anchor, np.random.randint(state.sizes[anchor])]
    quota = 1 + np.random.randint(_MOST_RUINED)
    removed = state.weights[anchor]
    queued = close_cluster(state, anchor, queue, 0)
    for position in range(-1, near.shape[1]):
        if quota <= 1:
            break
        c = centre if position < 0 else near[centre, position]
        if k <= state.stock[c] < 2 * k and np.random.random() < _BREAK_STOCK:
            copies = state.stock[c]
            to_stock(state, c, -copies)
            state.loose[c] += copies
            for _ in range(copies):
                queue[queued] = c
                queued += 1
        while state.head[c] >= 0 and quota > 1 and np.random.random() >= _PASS_OVER:
            cluster = state.head[c] // state.members.shape[1]
            removed += state.weights[cluster]
            queued = close_cluster(state, cluster, queue, queued)
            quota -= 1
    return queued, removed


@kernel
def _recreate(
    state: PartitionState, points: Points, near: np.ndarray, k: int, queue: np.ndarray, unfilled_last: bool
) -> tuple[bool, int]:
    """Reassign the queued records; return whether this was possible, and the added weight.

    If `unfilled_last` is true, new clusters are grown as long as possible before records join existing
    clusters. Then fewer than k records remain, which fit into any cluster, so that the reassignment always
    succeeds.
    """
    np.random.shuffle(queue)
    added = 0
    grown = np.empty(k, np.int64)
    for position in range(len(queue)):
        c = queue[position]
        if state.loose[c] == 0:
            continue  # the record is already in a cluster that was built for an earlier record
        if state.stock[c] >= k:
            to_stock(state, c, state.loose[c])
            state.loose[c] = 0
            continue
        unfilled, insertion = _best_unfilled_cluster(state, points, near, c)
        possible, weight, absorbed = _grow(state, points, near, k, c, grown)
        grows = unfilled_last or unfilled < 0
        if possible and (grows or weight <= insertion * absorbed * (0.7 + 0.6 * np.random.random())):
            for index in range(k):
                member = grown[index]
                if state.loose[member] > 0:
                    state.loose[member] -= 1
                else:
                    to_stock(state, member, -1)
            if weight == 0:
                to_stock(state, c, k)
            else:
                open_cluster(state, grown, k, weight)
            added += weight
        elif unfilled >= 0:
            state.loose[c] -= 1
            insert(state, unfilled, c, insertion)
            added += insertion
        else:
            forced = _join_anything(state, points, k, c)
            if forced < 0:
                return False, 0
            added += forced
    return True, added


@kernel
def _join_anything(state: PartitionState, points: Points, k: int, c: int) -> int:
    """Add an unassigned record to the best mixed cluster with free space or small stock; return the added
    weight, or -1.

    All clusters and stocks are checked. The function is used only if no neighbour of the record is in an
    unfilled cluster.
    """
    width = state.members.shape[1]
    best, best_stock, best_weight = -1, -1, 0
    for row in range(mixed_clusters(state)):
        cluster = state.alive[row]
        if state.sizes[cluster] < width:
            weight = _distance_to(points, c, state.members[cluster], state.sizes[cluster])
            if best < 0 or weight < best_weight:
                best, best_weight = cluster, weight
    for other in range(len(state.stock)):
        if k <= state.stock[other] < width:
            weight = state.stock[other] * distance(points, c, other)
            if (best < 0 and best_stock < 0) or weight < best_weight:
                best_stock, best_weight = other, weight
    if best_stock >= 0:
        copies = state.stock[best_stock]
        joined = np.full(copies + 1, best_stock, np.int64)
        joined[copies] = c
        to_stock(state, best_stock, -copies)
        open_cluster(state, joined, copies + 1, best_weight)
    elif best >= 0:
        insert(state, best, c, best_weight)
    else:
        return -1
    state.loose[c] -= 1
    return best_weight


@kernel
def _best_unfilled_cluster(
    state: PartitionState, points: Points, near: np.ndarray, c: int
) -> tuple[int, int]:
    """Return the nearby mixed cluster with free space whose weight increases least by adding c, and the
    increase.
    """
    width = state.members.shape[1]
    best, best_weight, seen = -1, 0, 0
    for position in range(-1, near.shape[1]):
        other = c if position < 0 else near[c, position]
        slot = state.head[other]
        while slot >= 0 and seen < _MOST_UNFILLED:
            cluster = slot // width
            if state.sizes[cluster] < width:
                weight = _distance_to(points, c, state.members[cluster], state.sizes[cluster])
                if best < 0 or weight < best_weight:
                    best, best_weight = cluster, weight
                seen += 1
            slot = state.after[slot]
        if seen == _MOST_UNFILLED:
            break
    return best, best_weight


@kernel
def _grow(
    state: PartitionState, points: Points, near: np.ndarray, k: int, seed: int, grown: np.ndarray
) -> tuple[bool, int, int]:
    """Build a cluster of k records from `seed`; return whether this succeeded, its weight and its number of
    unassigned records.
    """
    grown[0] = seed
    weight = 0
    absorbed = 1
    for size in range(1, k):
        chosen, chosen_cost, chosen_draw = -1, 0, 0.0
        for whole in range(2):  # first the near combinations, then all others if necessary
            others = near.shape[1] + 1 if whole == 0 else len(state.stock)
            for position in range(others):
                c = position
                if whole == 0:
                    c = seed if position == 0 else near[seed, position - 1]
                spare = state.stock[c] - k if state.stock[c] > k else 0
                if state.loose[c] + spare <= _copies(grown, size, c):
                    continue
                cost = _distance_to(points, c, grown, size)
                draw = np.random.random()
                if chosen < 0 or cost < chosen_cost or (cost == chosen_cost and draw < chosen_draw):
                    chosen, chosen_cost, chosen_draw = c, cost, draw
            if chosen >= 0:
                break
        if chosen < 0:
            return False, 0, 0
        if state.loose[chosen] > _copies(grown, size, chosen):
            absorbed += 1
        grown[size] = chosen
        weight += chosen_cost
    return True, weight, absorbed


@kernel
def _distance_to(points: Points, c: int, members: np.ndarray, size: int) -> int:
    """Return the sum of the distances from c to the first `size` members."""
    apart = 0
    for index in range(size):
        apart += distance(points, c, members[index])
    return apart


@kernel
def _copies(members: np.ndarray, size: int, c: int) -> int:
    """Count how many of the first `size` members equal c."""
    copies = 0
    for index in range(size):
        if members[index] == c:
            copies += 1
    return copies
