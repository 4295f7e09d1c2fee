"""Tests of relaxed limits: an infeasible table relaxes specified limits; evidence and page state the
relaxation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from microguard.pipelines.tables.adjusted import adjusted, rounded
from microguard.pipelines.tables.disclosure_audit import intervals_of
from microguard.pipelines.tables.manifest import RELAXED
from microguard.pipelines.tables.measures import measured
from microguard.pipelines.tables.problem import table_problem
from microguard.pipelines.tables.product import original_cells
from microguard.pipelines.tables.published_before import PublishedValues
from microguard.schemas.errors import ProtectionFailed, SpecificationError
from microguard.schemas.specification.model import Specification

from tests.pipelines.tables.manifests import manifest_of
from tests.pipelines.tables.regions import KEY, regional, regional_cells
from tests.schemas.specification.test_table import build


def specification(folder: Path, *relax: str, capacity: float = 1) -> Specification:
    """Return regions of 100, 200 and 300: the first must move by 20, the others may move by 2 and 3."""
    return regional(folder, "region,status\nTotal,fixed\n", capacity=capacity, relax=list(relax))


def relaxed(chosen: Specification, standing: PublishedValues | None = None):
    assert chosen.table is not None
    cells = regional_cells(chosen, 1000.0)
    problem = table_problem(cells, chosen, KEY, standing)
    protect_cells = rounded if chosen.table.method == "rounding" else adjusted
    return cells, *protect_cells(problem, chosen, chosen.table, KEY)


def test_infeasible_table_is_refused_unless_relaxation_is_specified(tmp_path: Path) -> None:
    with pytest.raises(ProtectionFailed, match="cannot be protected"):
        relaxed(specification(tmp_path))


def test_feasible_table_is_not_relaxed(tmp_path: Path) -> None:
    _, problem, _ = relaxed(specification(tmp_path, "capacities", "fixed", capacity=10))
    assert problem.relaxation is None


def test_relaxation_changes_capacities_before_fixed_cells_and_evidence_counts_both(tmp_path: Path) -> None:
    chosen = specification(tmp_path, "capacities", "fixed")
    assert chosen.table is not None
    cells, problem, adjustment = relaxed(chosen)
    total = int(np.argmax(cells.units))
    assert adjustment.values[problem.variables][total] == 6000
    intervals = intervals_of(problem, adjustment, chosen.table, most_cells=1, seed=0)
    section = measured(cells, problem, adjustment, intervals, chosen.table)["adjustment"]["relaxed"]
    assert section["added"] == pytest.approx(15)
    assert section["least"]
    assert list(section["cells"]) == ["capacities"]
    relaxed_steps = original_cells(cells, problem, chosen.table).relaxed
    manifest = manifest_of(chosen, relaxed_steps)
    untouched = manifest_of(chosen)
    assert set(manifest["limits"]) - set(untouched["limits"]) == {RELAXED.format("capacities")}


def test_relaxation_changes_a_fixed_cell_if_necessary_and_never_a_published_cell(tmp_path: Path) -> None:
    chosen = specification(tmp_path, "capacities", "fixed", capacity=0)
    cells, problem, _ = relaxed(chosen)
    assert problem.relaxation is not None
    assert problem.relaxation.cells["fixed"] >= 1
    assert problem.relaxation.added == 200
    published = (cells.codes["region"] != "n").to_numpy()
    with pytest.raises(ProtectionFailed, match="cannot be protected"):
        relaxed(chosen, PublishedValues(published, np.where(published, cells.units, 0.0)))


def test_relaxation_is_refused_for_counts() -> None:
    with pytest.raises(SpecificationError, match="drawn"):
        build({"kind": "frequency", "tables": [["region"]], "relax": ["capacities"]})
