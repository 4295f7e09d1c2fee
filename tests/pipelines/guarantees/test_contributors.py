"""Tests that the count on suppressed tables attacks a sensitive cell with what each contributor knows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.guarantees.feasible_intervals import too_narrow
from microguard.pipelines.guarantees.original_cells import Contributed, OriginalCells
from scipy import sparse

#: A total of 36 and its three parts; the first part is sensitive, and the first two are suppressed.
LINE = sparse.csr_matrix(np.array([[-1.0, 1.0, 1.0, 1.0]]))
SUPPRESSED = np.array([False, True, True, False])
ATTACKERS = ("outsider", "single", "pair", "unit")


def cells(contributions: list[tuple[int, int, float]], level: float = 5.0) -> OriginalCells:
    """Return the cells with the given contributions: cell, unit and amount."""
    sensitive = np.array([False, True, False, False])
    levels = np.where(sensitive, level, 0.0)
    values = np.array([36.0, 6.0, 10.0, 20.0])
    cell, unit, amount = (np.array(each) for each in zip(*contributions, strict=True))
    return OriginalCells(pd.DataFrame({"a": ["Total", "x", "y", "z"]}), values, levels, levels, sensitive,
                         values, np.full(4, 100.0), contributed=Contributed(cell, unit, amount))  # fmt: skip


#: Three units share the sensitive cell.
SENSITIVE = [(1, 1, 2.0), (1, 2, 2.0), (1, 3, 2.0)]


@pytest.mark.parametrize(
    ("others", "learning"),
    [
        ([(2, 11, 4.0), (2, 12, 3.0), (2, 13, 3.0)], set()),
        ([(2, 11, 10.0)], {"single", "unit"}),
        ([(2, 11, 4.0), (2, 12, 6.0)], {"pair", "unit"}),
        ([(2, 11, 9.0), (2, 12, 0.5), (2, 13, 0.5)], {"unit"}),
    ],
    ids=["nobody", "only contributor", "two together", "largest"],
)
def test_sensitive_cell_is_too_narrow_for_whoever_knows_the_other_suppressed_cell(others, learning) -> None:
    counted = too_narrow(LINE, SUPPRESSED, cells(SENSITIVE + others), ATTACKERS)
    assert counted == {kind: int(kind in learning) for kind in ATTACKERS}
