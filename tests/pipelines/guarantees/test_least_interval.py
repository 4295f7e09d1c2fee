"""Tests that table guarantees refuse sensitive cells with an interval narrower than the unit of publication.

Each guarantee is evaluated, for any level, method and input, on two tables: one leaves its sensitive zero
unchanged, the other protects it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.guarantees.bounded_noise import BoundedNoise
from microguard.pipelines.guarantees.feasible_intervals import too_narrow
from microguard.pipelines.guarantees.original_cells import Contributed, OriginalCells, Published
from microguard.pipelines.guarantees.rounded_table import RoundedTable
from microguard.schemas.requirements.tables import table_requirements
from scipy import sparse

from tests.schemas.specification.test_table import CELLS, COUNTS, TABLE, build

#: The margin of three cells, and the constraint that adds them up.
LINE = sparse.csr_matrix(np.array([[-1.0, 1.0, 1.0, 1.0]]))
NOTHING = np.zeros(4)


def original(*, values=(30.0, 0.0, 10.0, 20.0), lower=0.0, upper=0.0, sliding=0.0) -> OriginalCells:
    """Return a total of 30 and its parts; the first part is sensitive with these levels."""
    sensitive = np.array([False, True, False, False])
    levels = [np.where(sensitive, each, 0.0) for each in (lower, upper, sliding)]
    room = np.full(4, 100.0)
    return OriginalCells(pd.DataFrame({"a": ["Total", "x", "y", "z"]}), np.array(values), levels[0],
                         levels[1], sensitive, room, room, sliding=levels[2])  # fmt: skip


def published(cells: OriginalCells, change: np.ndarray) -> Published:
    return Published(change, cells.units + change, np.zeros(4, bool), foreign=0)


@pytest.mark.parametrize("guarantee", [AdditiveTable(), AdditiveTable(drawn_counts=True), RoundedTable(5)])
@pytest.mark.parametrize("levels", [(0.0, 0.0), (0.0, 5.0), (5.0, 0.0), (0.3, 0.4), (5.0, 5.0)])
def test_sensitive_cell_published_with_its_original_value_is_unprotected_with_any_levels(
    guarantee, levels
) -> None:
    cells = original(lower=levels[0], upper=levels[1])
    assert guarantee.compare(published(cells, NOTHING), cells)[0] == 1
    moved = np.array([5.0, 5.0, 0.0, 0.0])
    assert guarantee.compare(published(cells, moved), cells)[0] == (levels == (0.0, 0.0))
    assert guarantee.compare(published(cells, -moved), cells)[0] == (levels == (0.0, 0.0))


@pytest.mark.parametrize("levels", [(0.0, 0.0, 0.0), (0.3, 0.4, 0.0), (0.0, 0.0, 0.9)])
def test_suppressed_cell_with_levels_below_the_unit_is_too_narrow_for_readers(levels) -> None:
    lower, upper, sliding = levels
    suppressed = np.array([False, True, True, False])
    wide = original(values=(36.0, 6.0, 10.0, 20.0), lower=5.0, upper=5.0)
    assert too_narrow(LINE, suppressed, wide) == {"outsider": 0}
    bare = original(values=(36.0, 6.0, 10.0, 20.0), lower=lower, upper=upper, sliding=sliding)
    assert too_narrow(LINE, suppressed, bare) == {"outsider": 1}


def test_suppressed_zero_that_is_publicly_known_to_be_zero_is_too_narrow() -> None:
    suppressed = np.array([False, True, True, False])
    cells = original(upper=5.0)
    assert too_narrow(LINE, suppressed, cells) == {"outsider": 0}
    none = np.where(cells.sensitive, 0.0, cells.rise)
    assert too_narrow(LINE, suppressed, replace(cells, rise=none)) == {"outsider": 1}


def test_suppressed_cell_that_follows_from_its_constraint_is_too_narrow_for_contributors_also() -> None:
    alone = np.array([False, True, False, False])
    cells = original(values=(36.0, 6.0, 10.0, 20.0), lower=5.0, upper=5.0)
    known = Contributed(np.array([2, 3]), np.array([7, 8]), np.array([10.0, 20.0]))
    found = too_narrow(LINE, alone, replace(cells, contributed=known), ("outsider", "single"))
    assert found["outsider"] == 1


def test_small_count_is_never_published_with_cell_key_noise() -> None:
    cells = original(values=(32.0, 2.0, 10.0, 20.0))
    noise = BoundedNoise(largest=5, variance=2.0, least=3)
    assert noise.compare(published(cells, NOTHING), cells)[0] == 1
    assert noise.compare(published(cells, np.array([1.0, 1.0, 0.0, 0.0])), cells)[0] == 0


@pytest.mark.parametrize(
    ("table", "metric"),
    [
        (TABLE, "intervals_below_unit"),
        (CELLS, "intervals_below_unit"),
        (TABLE | {"levels": "exact"}, "intervals_below_unit"),
        (COUNTS, "intervals_below_unit"),
        (COUNTS | {"method": "rounding", "base": 5}, "intervals_below_unit"),
        (COUNTS | {"method": "cell_key"}, "counts_determined"),
    ],
    ids=["adjustment", "given cells", "exact levels", "drawn counts", "rounding", "cell keys"],
)
def test_table_guarantee_refuses_an_interval_narrower_than_the_unit_for_any_keys(table, metric) -> None:
    given = {"max_determined": 1000, "max_posterior": 1.0}
    given |= {} if table.get("method") == "cell_key" else {"min_interval": 0.0}
    specification = build(table | {"quality": given})
    required = [each for each in table_requirements(specification.table, True) if each.key.metric == metric]
    assert [each.met(0.0) for each in required] == [True]
    assert [each.met(1.0) for each in required] == [False]
