"""Tests of two-step methods, selected by name, on frequency vectors with and without regions."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.algorithms.nominal import TWO_STEP
from microguard.sdc.errors import InvalidParameter, TooFewRecords
from microguard.sdc.nominal.aggregation.aggregate import aggregate
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import collapse, from_frame
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.partitioning.partition import partition
from microguard.sdc.nominal.two_step import two_step

from tests.benchmarks.combinations.scenarios import instance


def test_two_step_names_encode_three_choices() -> None:
    assert len(TWO_STEP) == 12
    assert TWO_STEP["own-ehc"].fractional == "exact"
    assert TWO_STEP["own-ehc"].integer == "heuristic"
    assert TWO_STEP["own-ehc"].aggregation == "clique"


@pytest.mark.parametrize("name", [*TWO_STEP, "two-step-optimal", "random"])
def test_two_step_keeps_k_and_region_totals(name: str) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(3, size=(60, 3))
    regions = rng.integers(2, size=60)
    frequencies, _ = collapse(codes, np.array([3, 3, 3]), ("a", "b", "c"), regions=regions)
    tables = ControlTables.of(frequencies, 2)
    result = two_step(ProtectionTask(frequencies, 3, tables, seed=4), name)
    assert ((result.counts == 0) | (result.counts >= 3)).all()
    assert result.certificates[1].value == pytest.approx(tables.chi2(result.counts))
    for region in (0, 1):
        inside = frequencies.region_of() == region
        assert result.counts[inside].sum() == frequencies.counts[inside].sum()


@pytest.mark.parametrize("name", ["own-eee", "own-hhg", "own-hec"])
def test_two_step_agrees_with_anonymise_on_a_frame(name: str) -> None:
    frame = instance("200m5_20percent", 1, records=100)
    clusters = partition(frame, 3, algorithm=name)
    aggregated = aggregate(frame, clusters.labels, 3, algorithm=name)
    frequencies = from_frame(frame).frequencies
    result = two_step(ProtectionTask(frequencies, 3, ControlTables.of(frequencies, 3)), name)
    assert result.certificates[0].value == clusters.weight
    if name == "own-eee":  # the order of clusters changes the heuristics and not the optimum
        assert result.certificates[1].value == pytest.approx(aggregated.chi2)


def test_two_step_proves_partition_and_representatives_and_states_no_proof_of_the_whole() -> None:
    frame = instance("200m5_20percent", 1, records=100)
    frequencies = from_frame(frame).frequencies
    tables = ControlTables.of(frequencies, 3)
    result = two_step(ProtectionTask(frequencies, 3, tables), "two-step-optimal")
    assert [(each.step, each.optimal) for each in result.certificates] == [
        ("partition", True),
        ("aggregation", True),
    ]
    least = partition(frame, 3, algorithm="set-partitioning", effort="exact")
    assert result.certificates[0].value == least.weight
    assert least.weight <= two_step(ProtectionTask(frequencies, 3, tables), "own-eee").certificates[0].value


def test_two_step_refuses_invalid_arguments() -> None:
    frequencies, _ = collapse(
        np.array([[0], [1], [1], [0]]), np.array([2]), ("a",), regions=np.array([0, 0, 0, 1])
    )
    tables = ControlTables.of(frequencies, 1)
    with pytest.raises(InvalidParameter, match="two-step"):
        two_step(ProtectionTask(frequencies, 2, tables), "own-xyz")
    with pytest.raises(TooFewRecords, match="region"):
        two_step(ProtectionTask(frequencies, 2, tables), "own-hhg")
