"""Tests of the relaxation: its bound is that of the duals used by the enumeration of clusters."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.sdc.microaggregation.certified.odd_set_cuts import separate_larger
from microguard.sdc.microaggregation.certified.relaxation import Allowance, Relaxation
from microguard.sdc.microaggregation.certified.subset_row_cuts import separate
from microguard.sdc.microaggregation.column_generation.columns import Columns, as_members, squared_distances
from microguard.sdc.microaggregation.column_generation.master import cut_limits
from microguard.sdc.stop import Deadline

from tests.sdc.microaggregation.brute_force import all_clusters, reduced_cost

K = 3


def bound_at_its_duals(relaxation: Relaxation, values: np.ndarray) -> float:
    """Return the Lagrangian bound, computed from all clusters."""
    n, duals, penalties = len(values), relaxation.dual_values.duals, relaxation.dual_values.penalties
    place = np.argsort(relaxation.records_by_dual)
    least = np.zeros(n)
    for cluster in all_clusters(n, K):
        root = min(cluster, key=lambda i: place[i])
        reduced = reduced_cost(values, cluster, duals, relaxation.master.cuts, penalties)
        least[root] = min(least[root], reduced)
    return float(
        duals.sum() - penalties @ cut_limits(relaxation.master.cuts) + np.sort(least)[: n // K].sum()
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tolerances", [(1e-1, 1e-9), (1e-9, 1e-2, 1e-9)])
def test_relaxation_bound_is_valid_for_the_duals_of_enumeration(
    seed: int, tolerances: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small work limits miss clusters, as in files of hundreds of records.
    monkeypatch.setattr("microguard.sdc.microaggregation.certified.relaxation._NARROW", ((3, 20), (4, 40)))
    values = np.random.default_rng(seed).normal(size=(13, 2))
    columns = Columns(squared_distances(values), K)
    columns.add(as_members([range(3), range(3, 6), range(6, 9), range(9, 13)], K))
    relaxation = Relaxation(columns, np.zeros(13), Allowance(10**9, 10**9), Deadline.after(None))
    for tolerance in tolerances:
        for _ in range(2):
            relaxation.converge(tolerance)
            assert relaxation.solution is not None
            assert relaxation.lower_bound == pytest.approx(bound_at_its_duals(relaxation, values), abs=1e-4)
            current = columns.members, relaxation.solution.x, 13, relaxation.master.cuts
            cuts = np.concatenate([separate(*current), separate_larger(*current)])
            if len(cuts):
                relaxation.add_cuts(cuts)
                assert relaxation.lower_bound == pytest.approx(
                    bound_at_its_duals(relaxation, values), abs=1e-4
                )
