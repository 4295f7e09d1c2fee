"""Tests of the paper's column generation heuristic: bound, roundings and exchangeable exact pricings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.algorithms.microaggregation import ColumnGenerationParameters
from microguard.sdc.errors import InvalidParameter, UnsupportedCombination
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.column_generation.complete_enumeration import enumerate_completely
from microguard.sdc.microaggregation.column_generation.edge_model import solve_edge_model
from microguard.sdc.microaggregation.column_generation.heuristic import (
    branch_and_bound,
    microaggregation_heuristic_mp,
    solve,
    table_2,
)
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

from tests.reference import reference_file
from tests.sdc.microaggregation.brute_force import least_sse

NEVER = Deadline.after(None)


def records_of(seed: int, n: int, k: int) -> Records:
    return Records.of(np.random.default_rng(seed).normal(size=(n, 3)), k, standardise=False)[0]


def test_column_generation_solves_two_distant_triples_exactly() -> None:
    records = Records.of(np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]), 3, standardise=False)[0]
    clustering = solve(records, 3, deadline=NEVER, seed=0)
    assert clustering.sse == pytest.approx(4.0)
    assert clustering.optimal


@pytest.mark.parametrize("rounding", ["both", "simple", "spanning-tree"])
@pytest.mark.parametrize("seed", range(3))
def test_column_generation_bound_and_clustering_enclose_the_optimum(seed: int, rounding: str) -> None:
    records = records_of(seed, 12, 3)
    clustering = solve(records, 3, deadline=NEVER, seed=0, parameters=ColumnGenerationParameters(rounding))
    optimum = least_sse(records.values, 3)
    assert clustering.lower_bound is not None
    assert clustering.lower_bound <= optimum * (1 + 1e-6)
    assert clustering.sse >= optimum * (1 - 1e-9)
    assert clustering.sizes.min() >= 3


def test_column_generation_bound_is_equal_for_both_exact_pricings() -> None:
    records = records_of(1, 14, 4)
    paper = microaggregation_heuristic_mp(records, 4, deadline=NEVER, exact_pricing=table_2)
    ours = microaggregation_heuristic_mp(records, 4, deadline=NEVER, exact_pricing=branch_and_bound)
    assert paper.lower_bound == pytest.approx(ours.lower_bound, rel=1e-6)


def test_column_generation_has_the_same_bound_and_gaps_by_every_pricing() -> None:
    records = records_of(2, 12, 2)
    found = [
        solve(records, 3, deadline=NEVER, seed=0, parameters=ColumnGenerationParameters(pricing=pricing))
        for pricing in (
            "branch-and-bound",
            "table-2",
            "enumeration",
            "edge-model",
            "edge-model-with-triangles",
        )
    ]
    assert np.allclose([each.lower_bound for each in found], found[0].lower_bound)
    for each in found:
        assert set(each.sse_by_heuristic) == {"mdav", "vmdav", "simple", "spanning-tree"}
        assert min(each.sse_by_heuristic.values()) == pytest.approx(each.sse)


def test_column_generation_refuses_the_edge_model_for_many_records() -> None:
    records = records_of(0, 41, 3)
    for pricing, k in (("edge-model", 3), ("table-2", 4)):
        with pytest.raises(UnsupportedCombination, match="at most 40 records, found 41"):
            solve(records, k, deadline=NEVER, seed=0, parameters=ColumnGenerationParameters(pricing=pricing))


def test_table_2_chooses_the_pricing_printed_in_the_paper() -> None:
    assert all(table_2(n, size) is enumerate_completely for n in (30, 40, 50, 100, 200) for size in (3, 4, 5))
    assert all(table_2(n, 6) is enumerate_completely for n in (30, 40, 50, 100))
    assert table_2(200, 6) is solve_edge_model
    assert all(table_2(n, size) is solve_edge_model for n in (30, 200) for size in (7, 8, 9))


def test_column_generation_is_never_worse_than_mdav_and_vmdav() -> None:
    for seed in range(3):
        outcome = microaggregation_heuristic_mp(records_of(seed, 40, 3), 3, deadline=NEVER)
        clustering = solve(records_of(seed, 40, 3), 3, deadline=NEVER, seed=0)
        assert clustering.sse <= min(outcome.sse["mdav"], outcome.sse["vmdav"]) * (1 + 1e-12)
        assert clustering.sse == pytest.approx(min(outcome.sse.values()))


def test_column_generation_states_no_bound_after_the_deadline() -> None:
    clustering = solve(records_of(0, 30, 3), 3, deadline=Deadline(0.0), seed=0)
    assert clustering.lower_bound is None
    assert clustering.stopped_by == "time"


def test_column_generation_refuses_unsupported_options() -> None:
    records = records_of(0, 20, 3)
    with pytest.raises(InvalidParameter, match="rounding"):
        ColumnGenerationParameters("up")
    method = {"algorithm": "column-generation"}
    with pytest.raises(UnsupportedCombination, match="rounding"):
        microaggregate(
            records.values, 3, effort="exact", parameters=ColumnGenerationParameters("simple"), **method
        )
    with pytest.raises(UnsupportedCombination, match="weights"):
        microaggregate(records.values, 3, record_weights=np.arange(1.0, 21.0), **method)


@pytest.mark.reference
def test_column_generation_reaches_the_gaps_of_the_paper_on_50_census_records() -> None:
    frame = pd.read_csv(reference_file("casc_census.csv"))
    chosen = np.random.default_rng(0).permutation(len(frame))[:50]
    outcome = microaggregation_heuristic_mp(Records.of(frame.to_numpy()[chosen], 3)[0], 3, deadline=NEVER)
    gap = outcome.gap("spanning-tree")
    assert gap is not None
    assert gap < 0.1
