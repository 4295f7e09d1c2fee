"""Tests of preserved statistics of the finest cells: as specified, counted by the gate, and reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables.adjusted import adjusted
from microguard.pipelines.tables.cells.cells import Cells, tabulated
from microguard.pipelines.tables.disclosure_audit import intervals_of
from microguard.pipelines.tables.measures import measured
from microguard.pipelines.tables.preserved import finest_cells, fits, lost_statistics
from microguard.pipelines.tables.problem import table_problem
from microguard.schemas.errors import SpecificationError
from microguard.schemas.requirements.tables import table_requirements
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of

from tests.pipelines.tables.manifests import manifest_of
from tests.schemas.specification.test_table import build

KEY = bytes(range(32))
VALUES = np.array([[310.0, 120, 45, 0], [80, 900, 66, 150], [230, 71, 540, 88], [12, 410, 95, 701]])


def specification(**preserve: float) -> Specification:
    table = {"value": "turnover", "tables": [["a21", "region"]], "decimals": 0}
    return build(table | ({"preserve": preserve} if preserve else {}))


def cells_of(chosen: Specification) -> Cells:
    """Return four activities by four regions with margins; two cells have too few firms."""
    rows: list[dict[str, Any]] = []
    for row, column in np.ndindex(5, 5):
        a21, region = [*"ABCD", "Total"][row], [*"nesw", "Total"][column]
        value = VALUES[slice(None) if row == 4 else row, slice(None) if column == 4 else column].sum()
        firms = 2 if (row, column) in ((0, 1), (2, 0)) else 40
        rows.append({"a21": a21, "region": region, "value": float(value), "firms": firms})
    frame = pd.DataFrame(rows)
    return tabulated(
        frame[["a21", "region"]],
        table_of(chosen),
        units=frame["value"].to_numpy(),
        contributors=frame["firms"].to_numpy(float),
        largest=np.zeros((len(frame), 2)),
    )


def protect(chosen: Specification) -> tuple[Cells, np.ndarray, dict[str, Any]]:
    cells, table = cells_of(chosen), table_of(chosen)
    problem, adjustment = adjusted(table_problem(cells, chosen, KEY), chosen, table, KEY)
    intervals = intervals_of(problem, adjustment, table, most_cells=2, seed=0)
    sections = measured(cells, problem, adjustment, intervals, table)
    return cells, adjustment.values[problem.variables], sections


def test_table_without_preserved_statistics_reports_the_fit_to_original_cells() -> None:
    cells, values, sections = protect(specification())
    (fit,) = sections["fit"]
    finest = finest_cells(cells.codes, table_of(specification()), ("a21", "region"))
    assert fit["cells"] == 16
    assert fit["slope"] == pytest.approx(np.polyfit(cells.units[finest], values[finest], 1)[0])
    assert fit["mean_before"] == VALUES.mean()
    assert abs(fit["slope"] - 1) > 0.0001  # the next test needs a slope that is not preserved by default
    assert "statistics_lost" not in sections["metrics"]


def test_mean_and_slope_are_preserved_in_whole_units_and_stated_in_the_manifest() -> None:
    chosen = specification(mean=0.0, slope=0.0001)
    _, values, sections = protect(chosen)
    (fit,) = sections["fit"]
    assert fit["mean_after"] == fit["mean_before"]
    assert abs(fit["slope"] - 1) <= 0.0001
    assert np.array_equal(values, np.rint(values))
    assert sections["metrics"]["statistics_lost"] == 0
    assert sections["attacker"]["below_protection"] == 0
    table = table_of(chosen)
    limited = {requirement.key.metric: requirement for requirement in table_requirements(table, True)}
    assert limited["statistics_lost"].promised
    method = manifest_of(chosen)["method"]
    assert method["preserved"] == {"mean": 0.0, "slope": 0.0001}


def test_gate_counts_a_mean_or_slope_that_moved_too_far() -> None:
    chosen = specification(mean=0.01, slope=0.01)
    cells, table = cells_of(chosen), table_of(specification(mean=0.01, slope=0.01))
    assert lost_statistics(fits(cells, table, cells.units), table) == 0
    assert lost_statistics(fits(cells, table, cells.units * 1.009), table) == 0
    assert lost_statistics(fits(cells, table, cells.units * 1.02), table) == 2
    assert lost_statistics(fits(cells, table, cells.units + 100), table) == 1


def test_finest_cells_have_no_cells_below_them_in_levels_of_columns_and_of_codes() -> None:
    nested = build({"value": "turnover", "tables": [["a21"], ["a10"]], "hierarchies": [["a10", "a21"]]})
    codes = pd.DataFrame({"a10": ["G", "G", "Total"], "a21": ["47", "Total", "Total"]})
    assert finest_cells(codes, table_of(nested), ("a21",)).tolist() == [0]
    assert finest_cells(codes, table_of(nested), ("a10",)).tolist() == [1]
    parents = {"source": "cells", "value": "turnover", "tables": [["a21"]], "contributors": "firms",
               "parents": {"a21": {"47": "G", "46": "G", "55": "I"}}}  # fmt: skip
    codes = pd.DataFrame({"a21": ["47", "G", "I", "Total"]})  # some parts of I are unknown
    assert finest_cells(codes, table_of(build(parents)), ("a21",)).tolist() == [0, 2]


def test_preserve_is_refused_for_counts() -> None:
    with pytest.raises(SpecificationError, match="preserve"):
        build({"kind": "frequency", "tables": [["region"]], "preserve": {"mean": 0.0}})
    with pytest.raises(SpecificationError, match="slope"):
        specification(slope=0.0)
