"""Tests that no algorithm depends on the unit of measurement, the origin or the order of the records."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.algorithms.microaggregation import MICROAGGREGATION, ColumnGenerationParameters
from microguard.sdc.microaggregation import individual_ranking, microaggregate

#: Factors and origins of a change of the unit of measurement; the values are whole numbers and tenths.
FACTORS, ORIGINS = (2.0**-7, 2.0**40, 10.0, 1e-3, 1e6), (0.0, 100.0, -1e4)
CASES = [(name, effort) for name, row in MICROAGGREGATION.items() for effort in row.efforts] + [
    ("auto", effort) for effort in ("fast", "standard", "thorough", "exact")
]


def tied_records(p: int, seed: int = 0, n: int = 26) -> np.ndarray:
    """Draw records with many equal distances: whole numbers, tenths and halves in few steps."""
    random = np.random.default_rng(seed)
    return (random.integers(0, 6, size=(n, 3)) * np.array([1.0, 0.1, 2.5]))[:, :p]


def changed(values: np.ndarray, number: int) -> np.ndarray:
    """Return the values in other units of measurement and from other origins, by column."""
    columns = np.arange(values.shape[1])
    factors = np.array(FACTORS)[(number + columns) % len(FACTORS)]
    origins = np.array(ORIGINS)[(number + 2 * columns) % len(ORIGINS)]
    return values * factors + origins * factors


def contents(values: np.ndarray, labels: np.ndarray) -> list[list[tuple[float, ...]]]:
    """Return the records of each cluster, sorted: equal records may be exchanged."""
    return sorted(sorted(map(tuple, values[labels == label].tolist())) for label in np.unique(labels))


@pytest.mark.parametrize(("algorithm", "effort"), CASES, ids=lambda case: str(case))
def test_clusters_do_not_depend_on_units_of_measurement_origins_or_order(algorithm: str, effort: str) -> None:
    row = MICROAGGREGATION.get(algorithm)
    values = tied_records(1 if row is not None and row.one_variable else 3)
    options = {"effort": effort, "algorithm": algorithm, "seed": 5}
    clusters = contents(values, microaggregate(values, 3, **options).labels)
    for number in range(2 if effort == "thorough" else len(FACTORS)):
        order = np.random.default_rng(number).permutation(len(values))
        other = microaggregate(changed(values, number)[order], 3, **options)
        assert contents(values[order], other.labels) == clusters


@pytest.mark.parametrize(
    ("effort", "k"),
    [("fast", 3), ("standard", 3), ("standard", 6), pytest.param("thorough", 6, marks=pytest.mark.long)],
)
def test_local_search_without_a_proof_does_not_depend_on_units_of_measurement_origins_or_order(
    effort: str, k: int
) -> None:
    values = tied_records(3, n=180)
    options = {"effort": effort, "seed": 5, "share_of_run": 0.02}
    clusters = contents(values, microaggregate(values, k, **options).labels)
    for number in range(3):
        order = np.random.default_rng(number).permutation(len(values))
        other = microaggregate(changed(values, number)[order], k, **options)
        assert contents(values[order], other.labels) == clusters


@pytest.mark.parametrize("rounding", ["simple", "spanning-tree"])
def test_block_of_a_run_has_the_same_clusters_as_the_array(rounding: str) -> None:
    random = np.random.default_rng(8)
    values = np.round(random.lognormal(size=(90, 3)), 1)
    parameters = ColumnGenerationParameters(rounding=rounding)
    options = {"algorithm": "column-generation", "effort": "standard", "parameters": parameters}
    clusters = contents(values, microaggregate(values, 3, **options).labels)
    for number in range(3):
        other = changed(values, number)
        # blocks receive standardised values
        standardised = (other - other.mean(axis=0)) / other.std(axis=0, ddof=1)
        labels = microaggregate(standardised, 3, standardise=False, **options).labels
        assert contents(values, labels) == clusters


@pytest.mark.parametrize("algorithm", ["optimal", "fixed-size", "k-ward", "genetic-average"])
def test_individual_ranking_does_not_depend_on_units_of_measurement_or_origins(algorithm: str) -> None:
    values = tied_records(3)
    labels = individual_ranking(values, 3, algorithm=algorithm).labels
    for number in range(len(FACTORS)):
        other = individual_ranking(changed(values, number), 3, algorithm=algorithm).labels
        assert np.array_equal(other, labels)


def test_control_hash_of_bits_depends_on_the_unit_of_measurement() -> None:
    """Without the coordinate grid, last bits decide between equal distances."""
    values = tied_records(3, seed=3)
    standardised = [each / each.std(axis=0, ddof=1) for each in (values, changed(values, 2))]
    differences = [each - each[:, np.newaxis] for each in standardised]
    assert not np.array_equal(*(np.argsort((d**2).sum(axis=2), axis=1, kind="stable") for d in differences))
