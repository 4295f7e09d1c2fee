"""A genetic algorithm for one variable, with k-partitions encoded as binary strings.

Domingo-Ferrer and Mateo-Sanz 2002, section 4.2. Bit i of a string is one if a cluster starts at the i-th
smallest value; valid strings have k - 1 to 2k - 2 zeros between ones. The convergence criterion distinguishes
methods A and M of Table 1.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from microguard.sdc.algorithms.microaggregation import GeneticParams
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.projections import labels_along
from microguard.sdc.microaggregation.heuristics.univariate import fixed_size
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

PAPER = GeneticParams()


def solve(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    parameters: GeneticParams = PAPER,
) -> Clustering:
    """Cluster one variable by the genetic algorithm; return the fittest partition.

    Raises
    ------
    UnsupportedCombination
        If there is more than one coordinate.
    """
    if records.values.shape[1] != 1:
        raise UnsupportedCombination(
            f"algorithm genetic: expected one numeric variable, found {records.values.shape[1]} coordinates. "
            "Choose another algorithm"
        )
    partition = partial(genetic, params=parameters, seed=seed, deadline=deadline)
    labels = labels_along(records.values[:, 0], k, partition)
    return Clustering.of(records, labels, "genetic", stopped_by="time" if deadline.passed else "work")


def genetic(
    values: np.ndarray, k: int, *, params: GeneticParams, seed: int, deadline: Deadline | None = None
) -> np.ndarray:
    """Return the starts of the clusters in the fittest k-partition; never worse than `fixed_size`, a member
    of generation 0.

    Parameters
    ----------
    values : (n,) float array
        Ascending values, n >= k.
    k : int
        Minimum cluster size.
    params : GeneticParams
        Probabilities, sizes and the convergence criterion.
    seed : int
    deadline : Deadline, optional
        No generation starts after it.

    Returns
    -------
    int64 array
        Starts of clusters of k to 2k - 1 values.

    Notes
    -----
    The fitness is the between-groups sum of squares, equation (3). Applied bit by bit, the paper's mutation
    rule
    forbids every inversion: two merged clusters have at least 2k values, and a cluster below 2k cannot be
    split.
    Here all bits are inverted first, and the string is then corrected as after a crossover. Without
    mutations, the
    losses of Table 1 are not reached (V2, k = 4: 0.95 instead of 0.81).
    """
    n = len(values)
    random = np.random.default_rng(seed)
    centred = values - np.mean(values)
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    strings = np.zeros((params.population, n), dtype=np.bool_)
    strings[0, fixed_size(values, k)] = True
    strings[1:, 0] = True
    for string in strings:
        correct(string, k, random)
    fitness = evaluate(strings, sums)
    fittest, highest = strings[np.argmax(fitness)].copy(), fitness.max()
    for _ in range(params.generations):
        if deadline is not None and deadline.passed:
            break
        previous = _population_fitness(fitness, params)
        strings = select(strings, fitness, random)
        cross_over(strings, k, params.crossover, random)
        mutate(strings, k, params.mutation, random)
        fitness = evaluate(strings, sums)
        if fitness.max() > highest:
            fittest, highest = strings[np.argmax(fitness)].copy(), fitness.max()
        current = _population_fitness(fitness, params)
        if previous <= current <= previous * (1.0 + params.tolerance / n):
            break
    return np.flatnonzero(fittest).astype(np.int64)


def _population_fitness(fitness: np.ndarray, params: GeneticParams) -> float:
    return float(fitness.mean() if params.convergence == "average" else fitness.max())


def select(strings: np.ndarray, fitness: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw as many strings as there are, with replacement and with probabilities proportional to their
    fitness.
    """
    wheel = np.cumsum(fitness)
    drawn = np.searchsorted(wheel, random.random(len(strings)) * wheel[-1], side="right")
    return strings[np.minimum(drawn, len(strings) - 1)]


@kernel
def evaluate(strings, sums):
    """Return the fitness of each string (sum of t_i^2 / n_i) from prefix sums of centred values."""
    population, n = strings.shape
    fitness = np.zeros(population)
    for s in range(population):
        end = n
        for i in range(n - 1, -1, -1):
            if strings[s, i]:
                fitness[s] += (sums[end] - sums[i]) ** 2 / (end - i)
                end = i
    return fitness


@kernel
def cross_over(strings, k, probability, random):
    """Exchange the tails of strings 0 and 1, 2 and 3, ... after a random site, and correct both strings."""
    population, n = strings.shape
    for s in range(0, population, 2):
        if random.random() < probability:
            site = random.integers(0, n)
            tail = strings[s, site + 1 :].copy()
            strings[s, site + 1 :] = strings[s + 1, site + 1 :]
            strings[s + 1, site + 1 :] = tail
            correct(strings[s], k, random)
            correct(strings[s + 1], k, random)


@kernel
def mutate(strings, k, probability, random):
    """Invert each bit except the first with a given probability, and correct the strings."""
    population, n = strings.shape
    for s in range(population):
        for i in range(1, n):
            if random.random() < probability:
                strings[s, i] = not strings[s, i]
        correct(strings[s], k, random)


@kernel
def correct(string, k, random):
    """Correct a string in place to a valid k-partition; change only invalid parts.

    A 1-bit less than k positions after the previous 1-bit is removed. If two 1-bits are 2k or more positions
    apart, 1-bits are inserted at random positions that leave at least k values on both sides. The first bit
    must be 1.
    """
    n = len(string)
    before, start = 0, 0
    for i in range(1, n + 1):
        if i < n and not string[i]:
            continue
        if i - start < k:
            if i < n:
                string[i] = False
                continue
            string[start] = False  # the last cluster is too small, so it is merged with the previous one
            start = before
        string[start] = True
        while i - start >= 2 * k:
            before = start
            start += random.integers(k, min(2 * k - 1, i - start - k) + 1)
            string[start] = True
        before, start = start, i
