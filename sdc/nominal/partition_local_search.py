"""Local search for the partitioning problem: ruin and recreate, with annealed acceptance.

A partition is kept as a *stock* per combination (records clustered with their like, at no weight; 0 or at
least k of them) and *mixed clusters* of k to 2k - 1 records. A move takes a few neighbouring mixed clusters
apart and puts their records back: into the stock of their combination, into a mixed cluster with room, or
into a new one grown by nearest records from those still loose and those that stocks can spare. So the
number of clusters adapts, and a move costs the same however large the file is. The idea is that of
Schrimpf, Schneider, Stamm-Wilbrandt and Dueck (2000), for vehicle routes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdc.kernels import kernel
from sdc.nominal.partition_problem import NONE, PartitionProblem

#: Nearest combinations that a record's moves look at.
NEIGHBOURS = 40
#: Mixed clusters taken apart by one move, at most, and clusters with room that are looked at per record.
_MOST_RUINED, _MOST_ROOMS = 5, 20
#: Chance that a move passes over a neighbouring combination, or breaks up a neighbouring small stock.
_PASS_OVER, _BREAK_STOCK = 0.3, 0.1
#: Temperature at the start, in units of weight; it falls linearly to 0 after four fifths of the moves.
_TEMPERATURE = 1.0


class _State(NamedTuple):
    """A partition under change; `counters` are free rows, mixed clusters and entries of the journal."""

    stock: np.ndarray
    loose: np.ndarray
    members: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray
    head: np.ndarray  # first slot of each combination in mixed clusters, then a doubly linked list
    after: np.ndarray
    before: np.ndarray
    free: np.ndarray
    alive: np.ndarray
    place: np.ndarray
    journal: np.ndarray  # what to undo: (kind, what, amount)
    saved: np.ndarray  # members of the clusters that were closed
    counters: np.ndarray


_FREE, _ALIVE, _LOGGED, _SAVED = 0, 1, 2, 3
_STOCKED, _OPENED, _INSERTED, _CLOSED = 0, 1, 2, 3


def local_search(problem: PartitionProblem, *, moves: int, seed: int) -> np.ndarray:
    """The best partition met, as columns (clusters, 2k - 1), padded with -1.

    Parameters
    ----------
    moves : ruin-and-recreate moves, the work to do; 0 gives the greedy construction alone
    seed : int
    """
    stock, members, sizes = _ruin_and_recreate(
        problem.codes,
        problem.multiplicity,
        nearest_combinations(problem.codes, NEIGHBOURS),
        problem.k,
        moves,
        seed % (1 << 32),
    )
    mixed = np.where(members == NONE, len(stock), members)[sizes > 0]
    mixed.sort(axis=1)
    mixed[mixed == len(stock)] = NONE
    return np.concatenate([mixed, _stock_columns(stock, problem.k)])


def _stock_columns(stock: np.ndarray, k: int) -> np.ndarray:
    """Stocks cut into clusters of k records, the last of a stock taking the remainder."""
    rows = []
    for combination in np.flatnonzero(stock):
        clusters, rest = divmod(int(stock[combination]), k)
        for cluster in range(clusters):
            size = k + (rest if cluster == clusters - 1 else 0)
            rows.append([combination] * size + [NONE] * (2 * k - 1 - size))
    return np.array(rows, dtype=np.int64).reshape(-1, 2 * k - 1)


@kernel
def nearest_combinations(codes: np.ndarray, most: int) -> np.ndarray:
    """The nearest other combinations of each, (u, min(most, u - 1)), nearest first, ties by number."""
    count, variables = codes.shape
    width = min(most, count - 1)
    near = np.empty((count, width), np.int64)
    distance = np.empty(count, np.int64)
    for i in range(count):
        first = np.zeros(variables + 2, np.int64)  # place of the next combination at each distance
        for j in range(count):
            distance[j] = _distance(codes, i, j)
            if j != i:
                first[distance[j] + 1] += 1
        first = np.cumsum(first)
        for j in range(count):
            if j != i:
                rank = first[distance[j]]
                first[distance[j]] += 1
                if rank < width:
                    near[i, rank] = j
    return near


@kernel
def _distance(codes: np.ndarray, i: int, j: int) -> int:
    different = 0
    for a in range(codes.shape[1]):
        if codes[i, a] != codes[j, a]:
            different += 1
    return different


@kernel
def _ruin_and_recreate(
    codes: np.ndarray, multiplicity: np.ndarray, near: np.ndarray, k: int, moves: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stock (u,), members (clusters, 2k - 1) padded with -1 and sizes (clusters,) of the best partition."""
    np.random.seed(seed)
    state = _start(multiplicity, k)
    total = multiplicity.sum()
    queue = np.empty(total, np.int64)
    queued = _take_loose(state.loose, queue)
    _, weight = _recreate(state, codes, near, k, queue[:queued])
    best = weight
    best_stock, best_members, best_sizes = state.stock.copy(), state.members.copy(), state.sizes.copy()
    stride = 1 + total // 500  # keeping the best costs n: not at every move of a large file
    for move in range(moves):
        alive = state.counters[_ALIVE]
        if alive == 0:
            break
        state.counters[_LOGGED] = 0
        state.counters[_SAVED] = 0
        queued, removed = _ruin(state, near, k, queue)
        possible, added = _recreate(state, codes, near, k, queue[:queued])
        temperature = _TEMPERATURE * max(0.0, 1.0 - move / (0.8 * moves))
        if possible and added - removed <= -temperature * np.log(1.0 - np.random.random()):
            weight += added - removed
        else:
            for position in range(queued):
                state.loose[queue[position]] = 0
            _undo(state)
        if weight < best and (move % stride == 0 or move == moves - 1):
            best = weight
            best_stock[:] = state.stock
            best_members[:] = state.members
            best_sizes[:] = state.sizes
    return best_stock, best_members, best_sizes


@kernel
def _start(multiplicity: np.ndarray, k: int) -> _State:
    """Safe combinations in stock, the others loose."""
    count = len(multiplicity)
    total = multiplicity.sum()
    rows = total // k + 2
    slots = rows * (2 * k - 1)
    counters = np.zeros(4, np.int64)
    counters[_FREE] = rows
    return _State(
        np.where(multiplicity >= k, multiplicity, 0),
        np.where(multiplicity >= k, 0, multiplicity),
        np.full((rows, 2 * k - 1), -1, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.full(count, -1, np.int64),
        np.full(slots, -1, np.int64),
        np.full(slots, -1, np.int64),
        np.arange(rows)[::-1].copy(),
        np.empty(rows, np.int64),
        np.full(rows, -1, np.int64),
        np.empty((4 * total + 4 * count + 64, 3), np.int64),
        np.empty((rows, 2 * k - 1), np.int64),
        counters,
    )


@kernel
def _take_loose(loose: np.ndarray, queue: np.ndarray) -> int:
    queued = 0
    for c in range(len(loose)):
        for _ in range(loose[c]):
            queue[queued] = c
            queued += 1
    return queued


@kernel
def _ruin(state: _State, near: np.ndarray, k: int, queue: np.ndarray) -> tuple[int, int]:
    """Take neighbouring mixed clusters apart; how many records are queued, and the weight removed."""
    anchor = state.alive[np.random.randint(state.counters[_ALIVE])]
    centre = state.members[anchor, np.random.randint(state.sizes[anchor])]
    wanted = 1 + np.random.randint(_MOST_RUINED)
    queued = 0
    removed = state.weights[anchor]
    queued = _close(state, anchor, queue, queued)
    for position in range(-1, near.shape[1]):
        if wanted <= 1:
            break
        c = centre if position < 0 else near[centre, position]
        if k <= state.stock[c] < 2 * k and np.random.random() < _BREAK_STOCK:
            copies = state.stock[c]
            _log(state, _STOCKED, c, -copies)
            state.stock[c] = 0
            state.loose[c] += copies
            for _ in range(copies):
                queue[queued] = c
                queued += 1
        while state.head[c] >= 0 and wanted > 1 and np.random.random() >= _PASS_OVER:
            cluster = state.head[c] // state.members.shape[1]
            removed += state.weights[cluster]
            queued = _close(state, cluster, queue, queued)
            wanted -= 1
    return queued, removed


@kernel
def _recreate(
    state: _State, codes: np.ndarray, near: np.ndarray, k: int, queue: np.ndarray
) -> tuple[bool, int]:
    """Put the queued records back; whether that was possible, and the weight added."""
    np.random.shuffle(queue)
    added = 0
    grown = np.empty(k, np.int64)
    for position in range(len(queue)):
        c = queue[position]
        if state.loose[c] == 0:
            continue  # a cluster grown before has taken it
        if state.stock[c] >= k:
            _to_stock(state, c, state.loose[c])
            state.loose[c] = 0
            continue
        room, insertion = _best_room(state, codes, near, c)
        possible, weight, absorbed = _grow(state, codes, near, k, c, grown)
        if possible and (room < 0 or weight <= insertion * absorbed * (0.7 + 0.6 * np.random.random())):
            for index in range(k):
                member = grown[index]
                if state.loose[member] > 0:
                    state.loose[member] -= 1
                else:
                    _to_stock(state, member, -1)
            if weight == 0:
                _to_stock(state, c, k)
            else:
                _log(state, _OPENED, _open(state, grown, k, weight), 0)
            added += weight
        elif room >= 0:
            state.loose[c] -= 1
            _insert(state, room, c, insertion)
            _log(state, _INSERTED, room, insertion)
            added += insertion
        else:
            forced = _join_anything(state, codes, k, c)
            if forced < 0:
                return False, 0
            added += forced
    return True, added


@kernel
def _join_anything(state: _State, codes: np.ndarray, k: int, c: int) -> int:
    """Put a loose record into any mixed cluster with room or with any small stock; weight added, or -1.

    Only where neither its neighbours nor what is left over can take it: every row is looked at.
    """
    width = state.members.shape[1]
    best, best_stock, best_weight = -1, -1, 0
    for row in range(state.counters[_ALIVE]):
        cluster = state.alive[row]
        if state.sizes[cluster] < width:
            weight = 0
            for index in range(state.sizes[cluster]):
                weight += _distance(codes, c, state.members[cluster, index])
            if best < 0 or weight < best_weight:
                best, best_weight = cluster, weight
    for other in range(len(codes)):
        if k <= state.stock[other] < width:
            weight = state.stock[other] * _distance(codes, c, other)
            if (best < 0 and best_stock < 0) or weight < best_weight:
                best_stock, best_weight = other, weight
    if best_stock >= 0:
        copies = state.stock[best_stock]
        joined = np.full(copies + 1, best_stock, np.int64)
        joined[copies] = c
        _to_stock(state, best_stock, -copies)
        _log(state, _OPENED, _open(state, joined, copies + 1, best_weight), 0)
    elif best >= 0:
        _insert(state, best, c, best_weight)
        _log(state, _INSERTED, best, best_weight)
    else:
        return -1
    state.loose[c] -= 1
    return best_weight


@kernel
def _best_room(state: _State, codes: np.ndarray, near: np.ndarray, c: int) -> tuple[int, int]:
    """The mixed cluster with room, among those with near records, to which c adds the least weight."""
    width = state.members.shape[1]
    best, best_weight, seen = -1, 0, 0
    for position in range(-1, near.shape[1]):
        other = c if position < 0 else near[c, position]
        slot = state.head[other]
        while slot >= 0 and seen < _MOST_ROOMS:
            cluster = slot // width
            if state.sizes[cluster] < width:
                weight = 0
                for index in range(state.sizes[cluster]):
                    weight += _distance(codes, c, state.members[cluster, index])
                if best < 0 or weight < best_weight:
                    best, best_weight = cluster, weight
                seen += 1
            slot = state.after[slot]
        if seen == _MOST_ROOMS:
            break
    return best, best_weight


@kernel
def _grow(
    state: _State, codes: np.ndarray, near: np.ndarray, k: int, seed: int, grown: np.ndarray
) -> tuple[bool, int, int]:
    """Grow a cluster of k records from `seed`; whether possible, its weight, and loose records in it."""
    grown[0] = seed
    weight = 0
    absorbed = 1
    for size in range(1, k):
        chosen, chosen_cost, chosen_draw = -1, 0, 0.0
        for whole in range(2):  # the neighbours first; where they do not suffice, every combination
            others = near.shape[1] + 1 if whole == 0 else len(codes)
            for position in range(others):
                c = position
                if whole == 0:
                    c = seed if position == 0 else near[seed, position - 1]
                used = 0
                for index in range(size):
                    if grown[index] == c:
                        used += 1
                spare = state.stock[c] - k if state.stock[c] > k else 0
                if state.loose[c] + spare <= used:
                    continue
                cost = 0
                for index in range(size):
                    cost += _distance(codes, c, grown[index])
                draw = np.random.random()
                if chosen < 0 or cost < chosen_cost or (cost == chosen_cost and draw < chosen_draw):
                    chosen, chosen_cost, chosen_draw = c, cost, draw
            if chosen >= 0:
                break
        if chosen < 0:
            return False, 0, 0
        used = 0
        for index in range(size):
            if grown[index] == chosen:
                used += 1
        if state.loose[chosen] > used:
            absorbed += 1
        grown[size] = chosen
        weight += chosen_cost
    return True, weight, absorbed


@kernel
def _log(state: _State, kind: int, what: int, amount: int) -> None:
    entry = state.counters[_LOGGED]
    state.journal[entry, 0] = kind
    state.journal[entry, 1] = what
    state.journal[entry, 2] = amount
    state.counters[_LOGGED] = entry + 1


@kernel
def _to_stock(state: _State, c: int, copies: int) -> None:
    state.stock[c] += copies
    _log(state, _STOCKED, c, copies)


@kernel
def _open(state: _State, grown: np.ndarray, size: int, weight: int) -> int:
    """A new mixed cluster, in the row that was freed last."""
    state.counters[_FREE] -= 1
    cluster = state.free[state.counters[_FREE]]
    for index in range(size):
        _insert(state, cluster, grown[index], 0)
    state.weights[cluster] = weight
    state.place[cluster] = state.counters[_ALIVE]
    state.alive[state.counters[_ALIVE]] = cluster
    state.counters[_ALIVE] += 1
    return cluster


@kernel
def _insert(state: _State, cluster: int, c: int, weight: int) -> None:
    slot = cluster * state.members.shape[1] + state.sizes[cluster]
    state.members[cluster, state.sizes[cluster]] = c
    state.sizes[cluster] += 1
    state.weights[cluster] += weight
    state.before[slot] = -1
    state.after[slot] = state.head[c]
    if state.head[c] >= 0:
        state.before[state.head[c]] = slot
    state.head[c] = slot


@kernel
def _remove_last(state: _State, cluster: int, weight: int) -> None:
    state.sizes[cluster] -= 1
    index = state.sizes[cluster]
    slot = cluster * state.members.shape[1] + index
    c = state.members[cluster, index]
    if state.before[slot] >= 0:
        state.after[state.before[slot]] = state.after[slot]
    else:
        state.head[c] = state.after[slot]
    if state.after[slot] >= 0:
        state.before[state.after[slot]] = state.before[slot]
    state.members[cluster, index] = -1
    state.weights[cluster] -= weight


@kernel
def _erase(state: _State, cluster: int) -> None:
    """Empty a mixed cluster and free its row."""
    while state.sizes[cluster] > 0:
        _remove_last(state, cluster, 0)
    last = state.alive[state.counters[_ALIVE] - 1]
    state.alive[state.place[cluster]] = last
    state.place[last] = state.place[cluster]
    state.counters[_ALIVE] -= 1
    state.free[state.counters[_FREE]] = cluster
    state.counters[_FREE] += 1


@kernel
def _close(state: _State, cluster: int, queue: np.ndarray, queued: int) -> int:
    """Take a mixed cluster apart: its records become loose and are queued."""
    row = state.counters[_SAVED]
    state.saved[row] = state.members[cluster]
    state.counters[_SAVED] = row + 1
    _log(state, _CLOSED, state.sizes[cluster], state.weights[cluster])
    for index in range(state.sizes[cluster]):
        c = state.members[cluster, index]
        state.loose[c] += 1
        queue[queued] = c
        queued += 1
    _erase(state, cluster)
    return queued


@kernel
def _undo(state: _State) -> None:
    """Undo the journal, last entry first; rows are freed and taken as a stack, so the rows agree."""
    while state.counters[_LOGGED] > 0:
        state.counters[_LOGGED] -= 1
        kind, what, amount = state.journal[state.counters[_LOGGED]]
        if kind == _STOCKED:
            state.stock[what] -= amount
        elif kind == _OPENED:
            _erase(state, what)
        elif kind == _INSERTED:
            _remove_last(state, what, amount)
        else:
            state.counters[_SAVED] -= 1
            _open(state, state.saved[state.counters[_SAVED]], what, amount)
