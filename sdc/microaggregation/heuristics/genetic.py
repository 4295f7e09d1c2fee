"""A genetic algorithm for one variable: k-partitions as binary strings that cross over.

Domingo-Ferrer and Mateo-Sanz 2002, section 4.2: bit i of a string is one where a cluster starts at the
i-th smallest value; strings of k - 1 to 2k - 2 zeros between ones are the candidates. Methods A and M
of Table 1, by the criterion of convergence.
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
    """The fittest connected partition of one variable that was met.

    Raises
    ------
    UnsupportedCombination
        Where there are several coordinates: the strings follow one order.
    """
    if records.values.shape[1] != 1:
        raise UnsupportedCombination(
            f"genetic clusters one numeric variable, found {records.values.shape[1]} coordinates"
        )
    partition = partial(genetic, params=parameters, seed=seed, deadline=deadline)
    labels = labels_along(records.values[:, 0], k, partition)
    return Clustering.of(records, labels, "genetic", stopped_by="time" if deadline.passed else "work")


def genetic(
    values: np.ndarray, k: int, *, params: GeneticParams, seed: int, deadline: Deadline | None = None
) -> np.ndarray:
    """The fittest k-partition met, as starts; never worse than `fixed_size`, which is in generation 0.

    Parameters
    ----------
    values : (n,) float array
        In ascending order, n >= k.
    k : int
        Smallest cluster size.
    params : GeneticParams
        Probabilities, sizes and the criterion of convergence.
    seed : int
        Same values, parameters and seed, same starts.
    deadline : Deadline, optional
        No generation begins after it.

    Returns
    -------
    int64 array
        Starts of clusters of k to 2k - 1 values.

    Notes
    -----
    The fitness is the between-groups sum of squares, equation (3). Read bit by bit, the paper's rule of
    mutation forbids every inversion (two clusters of k or more make one of 2k or more, and no cluster
    below 2k has two parts of k), so it is applied as what it is meant to ensure: bits are inverted
    together, and the string is then corrected as after a crossover. Without mutations the losses of
    Table 1 are not reached (V2, k = 4: 0.95 instead of 0.81).
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
    """As many strings drawn with replacement, each with a probability proportional to its fitness."""
    wheel = np.cumsum(fitness)
    drawn = np.searchsorted(wheel, random.random(len(strings)) * wheel[-1], side="right")
    return strings[np.minimum(drawn, len(strings) - 1)]


@kernel
def evaluate(strings, sums):
    """Fitness of each string: sum of t_i^2 / n_i, as `sums` (n + 1,) are of centred values."""
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
    """Swap what follows a random site between strings 0 and 1, 2 and 3, ..., and correct both."""
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
    """Invert each bit but the first with a probability, and correct the strings."""
    population, n = strings.shape
    for s in range(population):
        for i in range(1, n):
            if random.random() < probability:
                strings[s, i] = not strings[s, i]
        correct(strings[s], k, random)


@kernel
def correct(string, k, random):
    """Make a string a k-partition again, in place, changing only what is around a fault.

    A one too close to the one before is removed; where ones are 2k or more apart, ones are inserted at
    random places that leave k or more on both sides. The first bit must be one.
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
            string[start] = False  # too close to the end: joins the cluster before
            start = before
        string[start] = True
        while i - start >= 2 * k:
            before = start
            start += random.integers(k, min(2 * k - 1, i - start - k) + 1)
            string[start] = True
        before, start = start, i
