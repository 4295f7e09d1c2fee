"""Tests of the comparison of methods on one table: the keys of each method, and its cost for a user."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.pipelines.evidence.table_plots import method_plot
from microguard.pipelines.tables.method_comparison import format_methods, row_of, with_method
from microguard.schemas.errors import SpecificationError
from microguard.schemas.method_registry import BUILT_IN

from tests.attacks.office import specification
from tests.attacks.suppression.office import SuppressingOffice, cells_of_firms
from tests.attacks.test_suppressed_cells import chosen, firms

METHODS = [name for name, row in BUILT_IN.items() if row.content == "table"]


@pytest.mark.parametrize("method", METHODS)
def test_table_of_counts_can_be_protected_by_every_method_with_its_keys(method):
    frame = firms(1)
    given = {"kind": "frequency", "tables": [["activity", "region"]], "method": "suppression",
             "attackers": ["outsider"], "costs": "number", "minimum_frequency": 4}  # fmt: skip
    table = with_method(specification(frame, {**given, "effort": "fast"}), method).table
    assert table.method == method
    assert table.minimum_frequency == 4
    assert (table.base == 4) is (method in ("rounding", "small_count_rounding"))
    assert (table.attackers == ("outsider",)) is (method == "suppression")


def test_a_method_that_does_not_fit_the_table_is_refused():
    with pytest.raises(SpecificationError, match="only unweighted numbers of contributors"):
        with_method(chosen(firms(1)), "rounding")


def test_estimate_of_a_suppressed_cell_is_the_middle_of_its_feasible_interval(tmp_path):
    frame = firms(2)
    spec = chosen(frame)
    published = SuppressingOffice(tmp_path).publish(cells_of_firms(frame, spec), spec)
    row = row_of("suppression", published.protected.comparison, {})
    assert row.suppressed == pytest.approx(published.suppressed.mean())
    assert (row.changed, row.open_lines, row.given_away) == (0.0, 0, 0)
    assert row.error is not None
    assert row.value_error is not None
    assert 0 < row.error < 5
    sizes = np.abs(published.cells.units)
    assert 0 < row.value_error <= sizes[published.suppressed].sum() / sizes.sum() * 5
    lines = format_methods([row])
    assert lines[0].split()[:2] == ["method", "suppressed"]
    assert "suppression" in lines[1]
    assert method_plot([vars(row)]).startswith("<svg")
