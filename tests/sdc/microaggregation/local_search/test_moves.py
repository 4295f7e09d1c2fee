"""Tests of moves: actual gains equal predicted gains, and cluster sizes remain within k to 2k - 1."""

import copy

import numpy as np
import pytest
from microguard.sdc.errors import SolverFailed
from microguard.sdc.kernels.random import new_stream
from microguard.sdc.microaggregation.distinct_rows import deduplicate
from microguard.sdc.microaggregation.local_search import moves, recombination
from microguard.sdc.microaggregation.local_search.annealing import Schedule, anneal
from microguard.sdc.microaggregation.local_search.cluster_moves import accepts, create, dissolve
from microguard.sdc.microaggregation.local_search.crossover import cross
from microguard.sdc.microaggregation.local_search.neighbours import near_distinct_records, nearest_neighbours
from microguard.sdc.microaggregation.local_search.noise import COUNT
from microguard.sdc.microaggregation.local_search.recombination import Recombination
from microguard.sdc.microaggregation.local_search.scales import local_scales
from microguard.sdc.microaggregation.local_search.search_state import SearchState, move, search_state_of
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import squares_by_cluster, sum_of_squares
from microguard.sdc.stop import Deadline

NEVER = Deadline.after(None)


def _start(n=60, k=3, seed=0, heaviest=2.0):
    random = np.random.default_rng(seed)
    points, weights = random.normal(size=(n, 3)), random.uniform(0.5, heaviest, n)
    labels = np.arange(n) % (n // (k + 1) + 1)
    return search_state_of(points, weights, labels, k), nearest_neighbours(points, 8, trees=1, seed=0)


def best_move(partition, near, i, k, temperature=0.0, place=0):
    return moves.best_move(partition, near, i, k, temperature, place, np.empty((2, len(near)), np.uint32))


def _sse(partition):
    return sum_of_squares(partition.points, partition.weights, partition.labels.astype(np.int64))


def _consistent(partition, k):
    used = partition.sizes[partition.sizes > 0]
    assert used.min() >= k
    assert used.max() <= 2 * k - 1
    assert np.array_equal(np.bincount(partition.labels, minlength=len(partition.sizes)), partition.sizes)
    for cluster in np.flatnonzero(partition.sizes):
        members = partition.members[cluster, : partition.sizes[cluster]]
        assert np.all(partition.labels[members] == cluster)
        total = (partition.weights[members, None] * partition.points[members]).sum(axis=0)
        assert partition.sums[cluster] == pytest.approx(total)
        energy = total @ total / partition.weights[members].sum()
        assert partition.energies[cluster] == pytest.approx(energy)
    free = partition.free[: partition.free[-1]]
    assert sorted(free.tolist()) == np.flatnonzero(partition.sizes == 0).tolist()


@pytest.mark.parametrize("sizes", [(2, 4), (3, 6)])
def test_search_state_refuses_clusters_outside_k_to_2k_minus_1(sizes):
    labels = np.repeat([0, 1], sizes)
    with pytest.raises(SolverFailed):
        search_state_of(np.zeros((len(labels), 1)), np.ones(len(labels)), labels, 3)


def _moves(partition, near, i, k):
    """Return all moves of record i to the cluster of a near record, as (target, partner)."""
    a = partition.labels[i]
    for b in {partition.labels[j] for j in near[i]} - {a}:
        yield from ((b, j) for j in partition.members[b, : partition.sizes[b]])
        if partition.sizes[a] > k and partition.sizes[b] < 2 * k - 1:
            yield b, -1


def _after(partition, i, target, partner):
    changed = SearchState(*(copy.deepcopy(each) for each in partition))
    move(changed, i, target, partner)
    _consistent(changed, 3)
    return _sse(changed)


@pytest.mark.parametrize("heaviest", [0.5, 2.0])
def test_best_move_has_the_largest_actual_gain(heaviest):
    partition, near = _start(heaviest=heaviest)
    for i in range(0, 60, 4):
        known = list(_moves(partition, near, i, 3))
        gain, target, partner, tried = best_move(partition, near[i], i, 3)
        before = _sse(partition)
        assert tried == len(known)
        assert before - _after(partition, i, target, partner) == pytest.approx(gain)
        assert gain == pytest.approx(max(before - _after(partition, i, *other) for other in known))


def test_best_move_shifts_a_misplaced_record_or_swaps_it_if_sizes_forbid_a_shift():
    points = np.array([[0.0], [1], [2], [51], [50], [52], [53]])
    near = nearest_neighbours(points, 3, trees=1, seed=0)
    spare = search_state_of(points[:7], np.ones(7), np.array([0, 0, 0, 0, 1, 1, 1]), 3)
    assert best_move(spare, near[3], 3, 3)[1:3] == (1, -1)
    exact = search_state_of(points[[0, 1, 3, 2, 4, 5]], np.ones(6), np.array([0, 0, 0, 1, 1, 1]), 3)
    assert best_move(exact, np.array([4, 5], dtype=np.int32), 2, 3)[1:3] == (1, 3)


def test_best_move_is_none_if_all_near_records_share_the_cluster():
    partition, near = _start()
    alone = np.full_like(near[0], partition.members[partition.labels[0], 1])
    assert best_move(partition, alone, 0, 3)[1:] == (-1, -1, 0)
    state = new_stream(0)
    for temperature in (0.0, 1e6):
        assert not accepts(best_move(partition, alone, 0, 3)[0], temperature, state)


def test_create_and_dissolve_keep_the_state_consistent():
    partition, near = _start()
    state = new_stream(0)
    made = sum(create(partition, near, i, 3, 1e6, state) for i in range(0, 60, 7))
    _consistent(partition, 3)
    gone = sum(dissolve(partition, near, c, 3, 1e6, state) for c in np.flatnonzero(partition.sizes)[:4])
    assert made > 0
    assert gone > 0
    _consistent(partition, 3)


def test_rejected_create_and_dissolve_restore_the_state():
    partition, near = _start()
    cold, stream = Schedule(1e-9, 1e-10, 300, 0.0), new_stream(1)
    anneal(partition, near, 3, cold, np.ones(60), stream, NEVER)  # annealing runs to a local optimum
    labels, sse = partition.labels.copy(), _sse(partition)
    state = new_stream(0)
    for i in range(60):
        assert not create(partition, near, i, 3, 0.0, state)
        assert not dissolve(partition, near, partition.labels[i], 3, 0.0, state)
    assert np.array_equal(labels, partition.labels)
    assert _sse(partition) == pytest.approx(sse)
    _consistent(partition, 3)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_anneal_keeps_sizes_and_lowers_the_cost(k):
    partition, near = _start(100, k)
    before = _sse(partition)
    scales = local_scales(partition.points, partition.weights, near, k)
    tried = anneal(partition, near, k, Schedule(1.0, 0.1, 200, 0.5), scales, new_stream(1), NEVER)
    _consistent(partition, k)
    assert tried > 200 * 100  # annealing tries several moves at each visit of a record
    assert _sse(partition) < 0.7 * before


def test_anneal_at_temperature_zero_ends_in_a_local_optimum():
    partition, near = _start()
    anneal(partition, near, 3, Schedule(1e-9, 1e-10, 300, 0.0), np.ones(60), new_stream(1), NEVER)
    least = _sse(partition)
    for i in range(60):
        for target, partner in _moves(partition, near, i, 3):
            assert _after(partition, i, target, partner) > least - 1e-9


def test_anneal_stops_after_the_deadline():
    partition, near = _start()
    schedule = Schedule(1.0, 0.1, 50, 0.5)
    assert anneal(partition, near, 3, schedule, np.ones(60), new_stream(0), Deadline(0.0)) == 0


def test_best_move_draws_moves_by_the_heat_bath_distribution():
    partition, near = _start()
    gains = {}
    for target, partner in _moves(partition, near, 0, 3):
        gains[target, partner] = _sse(partition) - _after(partition, 0, target, partner)
    best, worst = max(gains, key=gains.get), min(gains, key=gains.get)
    temperature = (gains[best] - gains[worst]) / 4
    chosen = [best_move(partition, near[0], 0, 3, temperature, place)[1:3] for place in range(COUNT)]
    expected = {move: np.exp(gain / temperature) for move, gain in gains.items()}
    share = expected[best] / sum(expected.values())
    assert chosen.count(best) / COUNT == pytest.approx(share, rel=0.2)
    assert chosen.count(best) > 5 * chosen.count(worst)


def test_best_move_ignores_swaps_of_equal_records():
    points = np.array([[0.0], [1], [2], [0], [1], [2]])
    partition = search_state_of(points, np.full(6, 0.7), np.array([0, 0, 0, 1, 1, 1]), 3)
    for i in range(6):
        assert points[best_move(partition, np.arange(6, dtype=np.int32), i, 3)[2]] != points[i]
    alike = search_state_of(np.ones((6, 1)), np.full(6, 0.7), np.array([0, 0, 0, 1, 1, 1]), 3)
    assert best_move(alike, np.arange(6, dtype=np.int32), 0, 3, 1e6)[:3] == (-np.inf, -1, -1)


def _annealed_cost(points):
    labels, weights = np.arange(len(points)) // 3, np.ones(len(points))
    near = nearest_neighbours(points, 8, trees=1, seed=0)
    partition = search_state_of(points, weights, labels, 3)
    scales = local_scales(points, weights, near, 3)
    anneal(partition, near, 3, Schedule(1.0, 0.1, 200, 0.5), scales, new_stream(1), NEVER)
    return squares_by_cluster(points, weights, partition.labels.astype(np.int64)), partition.labels


def test_anneal_is_not_affected_by_records_of_other_scales():
    random = np.random.default_rng(0)
    cheap, dear = random.normal(size=(90, 2)), 1e5 + 1e4 * random.normal(size=(30, 2))
    costs, labels = _annealed_cost(np.vstack([cheap, dear]))
    is_dear = np.unique(labels[90:])
    assert not np.any(np.isin(labels[:90], is_dear))
    assert costs[is_dear].sum() <= 1.1 * _annealed_cost(dear)[0].sum()
    assert np.delete(costs, is_dear).sum() <= 1.1 * _annealed_cost(cheap)[0].sum()


def test_cross_chooses_the_cheaper_clusters_of_each_component():
    points = np.array([[0.0], [1], [2], [10], [11], [12]])
    far = Records(np.vstack([points, points + 100]), np.ones(12), 1)
    good, bad = [0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1]
    first = np.array([*good, *(label + 2 for label in bad)])
    second = np.array([*bad, *(label + 2 for label in good)])
    for one, other in ((first, second), (second, first)):
        assert squares_by_cluster(far.values, np.ones(12), cross(far, one, other)) == pytest.approx([2.0] * 4)


def test_nearest_neighbours_of_small_files_are_exact():
    points = np.random.default_rng(0).normal(size=(50, 2))
    near = nearest_neighbours(points, 5, trees=1, seed=0)
    distances = ((points[:, None] - points) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    assert np.array_equal(near, np.argsort(distances, axis=1)[:, :5])


def test_nearest_neighbours_lists_equal_records_once_each():
    points = np.repeat(np.random.default_rng(0).normal(size=(1_000, 2)), 5, axis=0)
    near = nearest_neighbours(points, 4, trees=3, seed=0)
    assert np.all(np.diff(np.sort(near, axis=1), axis=1) > 0)
    assert not np.any(near == np.arange(5_000)[:, None])
    assert np.mean(np.all(points[near] == points[:, None], axis=2)) > 0.9


def test_nearest_neighbours_of_large_files_are_mostly_exact():
    points = np.random.default_rng(0).normal(size=(5_000, 3))
    near = nearest_neighbours(points, 5, trees=6, seed=0)
    distances = ((points[:200, None] - points) ** 2).sum(axis=2)
    distances[np.arange(200), np.arange(200)] = np.inf
    nearest = np.argsort(distances, axis=1)[:, :5]
    share = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(near[:200], nearest, strict=True)])
    assert share > 0.9
    assert np.array_equal(near, nearest_neighbours(points, 5, trees=6, seed=0))


def test_near_distinct_records_includes_unequal_neighbours_of_repeated_records():
    points = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 10, axis=0)
    content_ids = deduplicate(points)
    near = near_distinct_records(points, content_ids, 8, trees=1, seed=0)
    assert len(np.unique(content_ids)) == 30
    assert np.all(np.count_nonzero(content_ids[near] == content_ids[:, None], axis=1) == 4)
    assert not np.any(near == np.arange(300)[:, None])
    assert np.all(np.bincount(near.ravel()) > 0)


@pytest.mark.parametrize("kind", ["giants", "ties", "huge"])
def test_nearest_neighbours_handles_degenerate_distributions(kind):
    random = np.random.default_rng(0)
    if kind == "giants":  # most records are on one side of every mean
        points = np.exp(random.normal(size=(4_000, 1)) * 40)
    elif kind == "ties":
        points = np.where(random.random((4_000, 2)) < 0.95, 0.0, random.normal(size=(4_000, 2)))
    else:
        points = random.normal(size=(4_000, 2)) * 1e150
    near = nearest_neighbours(points, 4, trees=3, seed=0)
    assert not np.any(near == np.arange(4_000)[:, None])
    if kind != "huge":  # squares of huge coordinates overflow, so that all distances are equal
        drawn = random.integers(0, 4_000, size=near.shape)
        distances = [np.abs(points[other] - points[:, None]).sum(axis=2) for other in (near, drawn)]
        assert np.mean(distances[0] <= distances[1]) > 0.9


def test_recombination_combines_the_best_clusters_of_two_partitions():
    points = np.array([[0.0], [1], [2], [10], [11], [12]])
    far = np.vstack([points, points + 100])
    met = Recombination(Records(far, np.ones(12), 1), 5, 300_000)
    good, bad = [0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1]
    met.add(np.array([*good, *(label + 2 for label in bad)]))
    met.add(np.array([*bad, *(label + 2 for label in good)]))
    labels, _ = met.combine(NEVER)
    assert met.columns == 8
    assert len(set(labels.tolist())) == 4
    assert squares_by_cluster(far, np.ones(12), labels) == pytest.approx([2.0] * 4)


def test_recombination_at_its_limit_keeps_the_incumbent(monkeypatch):
    monkeypatch.setattr(recombination, "FEWEST_STEPS", 1)
    random = np.random.default_rng(4)
    points = random.integers(0, 3, (60, 6)).astype(float)
    met = Recombination(Records(points, np.ones(60), 1), 5, 300)
    partitions = [random.permutation(np.repeat(np.arange(20), 3)) for _ in range(12)]
    for labels in partitions:
        met.add(labels)
    least = min(sum_of_squares(points, np.ones(60), labels) for labels in partitions)
    assert sum_of_squares(points, np.ones(60), met.combine(NEVER)[0]) <= least * (1 + 1e-12)
