"""Certificates of the nominal methods: gaps of whole files, and bounds compared with brute force."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pandas as pd
from microguard.sdc.nominal import Costs, Hierarchical, Nominal, Ordinal, partition
from microguard.sdc.nominal.bounds import free_bound, nested_bound
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.distances import Distance
from microguard.sdc.nominal.frequency import from_frame
from microguard.sdc.nominal.frequency_search.search import Effort, protect_frequencies
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.similarity import similarity_of
from microguard.sdc.nominal.transport import transport

from tests.benchmarks.combinations.scenarios import adult
from tests.benchmarks.table import Table
from tests.sdc.nominal.brute_force import least_chi2, partitions

#: Maximum gap as a share of the chi-square: for Adult with 5 and 8 variables, k = 3 and 5.
LARGEST_GAP = 0.40
DIMENSION = 3


def tables(quick: bool = False) -> dict[str, Callable[[], Table]]:
    """Return all tables; quick: Adult with five variables at effort fast, and 30 instances."""
    instances = 30 if quick else 300
    return {
        "bounds of Adult": partial(of_adult, (5,) if quick else (5, 8), "fast" if quick else "standard"),
        "bounds by brute force": partial(against_brute_force, instances),
        "distances by brute force": partial(distances_against_brute_force, instances),
    }


def of_adult(variables: tuple[int, ...], effort: Effort) -> Table:
    """Return the certified gaps of full Adult with all tables up to dimension 3."""
    rows: list[tuple[object, ...]] = []
    for number in variables:
        frequencies = from_frame(adult(number)).frequencies
        control_tables = ControlTables.of(frequencies, DIMENSION)
        for k in (3, 5):
            solution = protect_frequencies(ProtectionTask(frequencies, k, control_tables, effort=effort))
            free = free_bound(control_tables.original, k)
            begin = time.process_time()
            nested = nested_bound(control_tables, k)
            seconds = time.process_time() - begin
            gaps = 1 - free / solution.chi2, 1 - nested / solution.chi2
            assert free <= nested <= solution.chi2
            assert gaps[1] <= LARGEST_GAP
            rows.append((number, k, solution.chi2, free, gaps[0], nested, gaps[1], seconds))
    return Table(
        f"Full Adult, {effort} effort, tables to dimension {DIMENSION}: chi-square and bounds on it",
        ("variables", "k", "chi2", "free bound", "gap", "nested bound", "gap", "CPU s of the bound"),
        rows,
        f"Asked: a gap of at most {LARGEST_GAP:.0%}.",
    )


def against_brute_force(instances: int) -> Table:
    """Compare each bound with the optimum of tiny files; a bound above the optimum is an error."""
    free, nested = [], []
    for seed in range(instances):
        rng = np.random.default_rng(seed)
        variables = 2 + seed % 2
        frame = pd.DataFrame(rng.integers(0, 2, (6 + seed % 3, variables)), columns=list("abc")[:variables])
        k, dimension = 2 + seed % 3, 1 + seed % variables
        control_tables = ControlTables.of(from_frame(frame).frequencies, dimension)
        best = least_chi2(frame, k, dimension)
        bounds = free_bound(control_tables.original, k), nested_bound(control_tables, k)
        assert bounds[0] <= bounds[1] <= best
        if best > 0:
            free.append(bounds[0] / best)
            nested.append(bounds[1] / best)
    rows: list[tuple[object, ...]] = [
        (name, len(shares), float(np.mean(shares)), float(np.mean(np.array(shares) > 1 - 1e-9)))
        for name, shares in (("free", free), ("nested", nested))
    ]
    return Table(
        f"{instances} files of 6 to 8 records against brute force",
        ("bound", "files with an error", "mean share of the optimum", "share proved optimal"),
        rows,
        "No bound is above the optimum of any file.",
    )


def distances_against_brute_force(instances: int) -> Table:
    """Compare partitions and transports with brute force, for all kinds of distances."""
    proved = dict.fromkeys(_KINDS, 0)
    moved = dict.fromkeys(_KINDS, 0)
    for seed in range(instances):
        kind = _KINDS[seed % len(_KINDS)]
        rng = np.random.default_rng(seed)
        asked, price = _distance(kind, rng)
        frame = pd.DataFrame({"v": rng.integers(0, 4, 7), "w": rng.integers(0, 2, 7)})
        rows = frame.to_numpy().tolist()

        def apart(i: int, j: int, rows: list[list[int]] = rows, price: np.ndarray = price) -> int:
            return int(price[rows[i][0], rows[j][0]]) + (rows[i][1] != rows[j][1])

        least = min(
            sum(apart(i, j) for cluster in clusters for i, j in combinations(cluster, 2))
            for clusters in partitions(list(range(7)), 3)
        )
        clustering = partition(frame, 3, distances={"v": asked}, seed=seed)
        assert clustering.optimal
        assert clustering.weight == least
        proved[kind] += 1
        coded = from_frame(frame)
        target = coded.frequencies.counts[rng.permutation(len(coded.frequencies))]
        flows = transport(coded.frequencies, target, similarity_of(coded, {"v": asked}))
        places = coded.frequencies.codes
        values = np.array(coded.values(0))
        cost = price[values[places[:, 0]][:, None], values[places[:, 0]]]
        cost = cost + (places[:, 1][:, None] != places[:, 1])
        change = target - coded.frequencies.counts
        giving = np.repeat(np.arange(len(change)), np.maximum(-change, 0))
        taking = np.repeat(np.arange(len(change)), np.maximum(change, 0))
        best = min(int(cost[giving, list(order)].sum()) for order in permutations(taking))
        assert int((cost[flows.origin, flows.target] * flows.count).sum()) == best
        moved[kind] += len(giving)
    return Table(
        f"{instances} files of 7 records against brute force: distances",
        ("distance", "partitions of least weight, proved", "records moved at least cost"),
        [(kind, proved[kind], moved[kind]) for kind in _KINDS],
        "Every partition has the weight, and every transport the cost, of the best of all.",
    )


_KINDS = ("weighted", "ordinal", "hierarchical", "cost matrix")


def _distance(kind: str, rng: np.random.Generator) -> tuple[Distance, np.ndarray]:
    """Return a distance of the values 0 to 3, and its independently written matrix."""
    weight = int(rng.integers(1, 5))
    values = np.arange(4)
    unlike = (values[:, None] != values).astype(int)
    if kind == "weighted":
        return Nominal(weight), weight * unlike
    if kind == "ordinal":
        places = np.sort(rng.choice(20, 4, replace=False))
        asked = Ordinal(weight, positions=dict(zip(range(4), places.tolist(), strict=True)))
        return asked, weight * np.abs(places[:, None] - places)
    if kind == "hierarchical":
        tree = Hierarchical({value: (value // 2,) for value in range(4)}, weight)
        return tree, weight * (unlike + (values[:, None] // 2 != values // 2))
    upper = np.triu(rng.integers(1, 9, (4, 4)), 1)
    return Costs(range(4), upper + upper.T), upper + upper.T
