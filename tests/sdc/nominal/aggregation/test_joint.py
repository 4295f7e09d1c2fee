"""Tests of joint representatives against brute force and against the mode of each cluster."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.sdc.clusters.representatives import modes
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.nominal.aggregation.joint import joint_representatives
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import collapse

NAMES = ("a", "b", "c")


def clustering(seed: int, clusters: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw codes, labels and regions of clusters of k records; a region is a run of consecutive clusters."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(clusters), k)
    centre = rng.integers(0, 3, (clusters, 3))
    codes = np.where(
        rng.random((clusters * k, 3)) < 0.6, centre[labels], rng.integers(0, 3, (clusters * k, 3))
    )
    return codes, labels, labels // max(1, clusters // 2)


def chi2_of(codes: np.ndarray, regions: np.ndarray, published: np.ndarray, region_dimension: int) -> float:
    """Return chi-square over the tables up to dimension 2, counted cell by cell."""
    columns = [(j,) for j in range(3)] + [(0, 1), (0, 2), (1, 2)]
    total = 0.0
    for table in columns + [(3, j) for j in range(3)][: 3 * region_dimension]:
        before, after = (np.column_stack([values, regions])[:, table] for values in (codes, published))
        for cell in np.unique(before, axis=0):
            old, new = ((values == cell).all(axis=1).sum() for values in (before, after))
            total += (new - old) ** 2 / old
    return total


def published_by(result, labels: np.ndarray) -> np.ndarray:
    return result.codes[np.searchsorted(result.labels, labels)]


@pytest.mark.parametrize("region_dimension", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_joint_representatives_agree_with_brute_force(seed: int, region_dimension: int) -> None:
    codes, labels, regions = clustering(seed, 5, 3)
    result = joint_representatives(
        codes, labels, NAMES, 2, regions=regions, region_dimension=region_dimension
    )
    best = min(
        chi2_of(codes, regions, codes[np.array(choice)[labels]], region_dimension)
        for choice in product(*(np.flatnonzero(labels == label) for label in range(5)))
    )
    assert result.stopped_by == "proof"
    assert result.chi2 == pytest.approx(best)
    assert result.chi2 == pytest.approx(
        chi2_of(codes, regions, published_by(result, labels), region_dimension)
    )


@pytest.mark.parametrize("seed", range(8))
def test_joint_representatives_keep_categories_if_possible(seed: int) -> None:
    codes, labels, regions = clustering(seed, 5, 3)
    result = joint_representatives(
        codes, labels, NAMES, 2, regions=regions, region_dimension=1, k=3, kept_dimension=1
    )
    columns = np.column_stack([codes, *(regions * 3 + column for column in codes.T)])
    cells = [np.flatnonzero(np.bincount(column) >= 3) for column in columns.T]

    def emptied(published: np.ndarray) -> int:
        return sum(
            int((~np.isin(large, column)).sum()) for large, column in zip(cells, published.T, strict=True)
        )

    least = min(
        emptied(columns[list(choice)])
        for choice in product(*(np.flatnonzero(labels == label) for label in range(5)))
    )
    after = published_by(result, labels)
    assert emptied(np.column_stack([after, *(regions * 3 + column for column in after.T)])) == least


def test_joint_representatives_have_far_less_chi_square_than_modes() -> None:
    codes, labels, regions = clustering(7, 400, 3)
    result = joint_representatives(codes, labels, NAMES, 2, regions=regions, region_dimension=1)
    mode = codes[modes(codes, labels, np.ones(len(codes)))]
    assert result.chi2 < 0.25 * chi2_of(codes, regions, mode, 1)
    assert result.stopped_by == "work"


def test_joint_representatives_do_not_depend_on_row_order_or_collapsing() -> None:
    codes, labels, regions = clustering(3, 60, 4)
    whole = joint_representatives(codes, labels, NAMES, 2, regions=regions, region_dimension=1)
    key = np.column_stack([labels, regions, codes])
    rows, records = np.unique(key, axis=0, return_counts=True)
    shuffled = np.random.default_rng(1).permutation(len(rows))
    rows, records = rows[shuffled], records[shuffled]
    collected = joint_representatives(
        rows[:, 2:], rows[:, 0], NAMES, 2, records=records, regions=rows[:, 1], region_dimension=1
    )
    assert np.array_equal(whole.codes, collected.codes)
    assert whole.chi2 == collected.chi2


@given(st.integers(0, 1_000), st.integers(1, 12), st.sampled_from(["fast", "standard"]))
def test_joint_representatives_are_combinations_of_their_cluster(
    seed: int, clusters: int, effort: str
) -> None:
    codes, labels, _ = clustering(seed, clusters, 3)
    result = joint_representatives(codes, labels * 5 - 7, NAMES, 2, effort=effort)
    assert result.labels.tolist() == (np.arange(clusters) * 5 - 7).tolist()
    for label, values in zip(range(clusters), result.codes, strict=True):
        assert (codes[labels == label] == values).all(axis=1).any()
    frequencies, _ = collapse(codes, np.full(3, 3), NAMES)
    tables = ControlTables.of(frequencies, 2)
    place = {tuple(row): at for at, row in enumerate(frequencies.codes.tolist())}
    counts = np.zeros(len(frequencies), np.int64)
    for values in result.codes.tolist():
        counts[place[tuple(values)]] += 3
    assert result.chi2 == pytest.approx(tables.chi2(counts))


def test_joint_representatives_refuse_invalid_clusterings() -> None:
    codes, labels, _ = clustering(1, 4, 3)
    with pytest.raises(ShapeMismatch, match="labels"):
        joint_representatives(codes, labels[1:], NAMES, 1)
    with pytest.raises(InvalidParameter, match="two regions"):
        joint_representatives(codes, labels, NAMES, 1, regions=np.arange(len(codes)))
    with pytest.raises(InvalidParameter, match="effort"):
        joint_representatives(codes, labels, NAMES, 1, effort="slow")
    with pytest.raises(InvalidParameter, match="at least one record"):
        joint_representatives(codes, labels, NAMES, 1, records=np.zeros(len(codes), int))
    with pytest.raises(ShapeMismatch, match="variables"):
        joint_representatives(codes, labels, NAMES[:2], 1)
