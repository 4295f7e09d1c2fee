"""Tests of cells that must not be emptied: kept if brute force can keep them, and k-anonymity remains."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.algorithms.nominal import SearchParameters
from microguard.sdc.errors import InvalidParameter, UnsupportedCombination
from microguard.sdc.nominal import anonymise
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, collapse
from microguard.sdc.nominal.frequency_search.search import protect_frequencies
from microguard.sdc.nominal.methods import ProtectionTask

K = 2
CHI2 = SearchParameters(deviation_weight=0, absolute_weight={})


def file(seed: int, regions: int) -> tuple[FrequencyVector, ControlTables]:
    """Draw 9 to 11 records of three variables; most key combinations occur once."""
    rng = np.random.default_rng(seed)
    records = int(rng.integers(9, 12))
    codes = np.column_stack([rng.integers(0, size, records) for size in (2, 3, 3)])
    of_records = np.arange(records) * regions // records if regions > 1 else None
    frequencies, _ = collapse(codes, np.array([2, 3, 3]), tuple("abc"), regions=of_records)
    return frequencies, ControlTables.of(frequencies, 1, region_dimension=int(regions > 1))


def every_vector(frequencies: FrequencyVector) -> np.ndarray:
    """Return all vectors with counts 0 or at least k and the original number of records per region."""
    of_regions = []
    for region in np.unique(frequencies.region_of()):
        inside = frequencies.region_of() == region
        total = int(frequencies.counts[inside].sum())
        counts = [[()]] + [[] for _ in range(total)]  # partial vectors by the number of records used so far
        for _ in range(int(inside.sum())):
            longer: list[list[tuple[int, ...]]] = [[] for _ in range(total + 1)]
            for used, vectors in enumerate(counts):
                for count in (0, *range(K, total - used + 1)):
                    longer[used + count] += [(*vector, count) for vector in vectors]
            counts = longer
        of_regions.append(counts[total])
    return np.array([sum(parts, ()) for parts in product(*of_regions)])


@pytest.mark.parametrize(("seed", "regions"), [(0, 1), (1, 1), (2, 1), (0, 2), (24, 2), (28, 2)])
def test_protect_frequencies_keeps_categories_if_possible_at_little_cost(seed: int, regions: int):
    frequencies, tables = file(seed, regions)
    solution = protect_frequencies(
        ProtectionTask(frequencies, K, tables, kept_dimension=1, parameters=CHI2, effort="fast", seed=seed)
    ).counts
    assert ((solution == 0) | (solution >= K)).all()
    assert solution.sum() == frequencies.records
    kept = tables.original >= K
    vectors = every_vector(frequencies)
    totals = vectors @ tables.incidence.T.toarray()
    emptied = (totals[:, kept] == 0).sum(axis=1)
    assert np.count_nonzero(tables.totals(solution)[kept] == 0) == emptied.min()
    weights = np.where(tables.level == 0, 1.0, CHI2.region_weight) * tables.reciprocals
    costs = (totals - tables.original) ** 2 @ weights
    reached = float(weights @ tables.errors(solution) ** 2)
    assert reached <= 1.05 * costs[emptied == emptied.min()].min()


def test_protect_frequencies_keeps_a_rare_category_that_minimum_chi_square_would_empty():
    frame = pd.DataFrame([("x", b) for b in "pqrst"] * 10 + [("y", b) for b in "pqrst"], columns=["a", "b"])
    free, kept = (anonymise(frame, 5, 2, kept_dimension=d, effort="fast") for d in (0, 1))
    # Emptying the category costs a chi-square of 11; keeping five records of one (y, b) costs 21.
    assert free.protected["a"].tolist() == ["x"] * 55
    assert (kept.protected["a"] == "y").sum() >= 5
    assert kept.protected.value_counts().min() >= 5
    assert free.chi2 < 12
    assert 21 < kept.chi2 < 23


def test_kept_dimension_is_refused_for_other_methods_and_invalid_values():
    frame = pd.DataFrame({"a": list("xxxyyy"), "b": list("pqpqpq")})
    with pytest.raises(UnsupportedCombination, match="kept_dimension"):
        anonymise(frame, 2, 1, kept_dimension=1, algorithm="own-hhg")
    with pytest.raises(InvalidParameter, match="kept_dimension"):
        anonymise(frame, 2, 1, kept_dimension=-1)
