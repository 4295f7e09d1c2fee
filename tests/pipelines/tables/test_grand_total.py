"""Tests of a publicly known grand total: if its move exceeds the limit, an adjustment that fixes it is
computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.tables.adjusted import adjusted
from microguard.pipelines.tables.problem import table_problem
from microguard.pipelines.tables.total_changes import change_summary

from tests.attacks.suppression.office import cells_of_finished, of_finished
from tests.pipelines.tables.regions import KEY

#: Two regions by two sexes with totals: the 5 women of A are sensitive. By inverse costs it is cheaper to
#: move the totals than the other three inner cells.
COUNTS = {("A", "m"): 20, ("A", "f"): 5, ("A", "Total"): 25, ("B", "m"): 12, ("B", "f"): 23,
          ("B", "Total"): 35, ("Total", "m"): 32, ("Total", "f"): 28, ("Total", "Total"): 60}  # fmt: skip


def change_of_total(counts: dict[tuple[str, str], int], **quality: Any) -> float:
    frame = pd.DataFrame([(*code, count) for code, count in counts.items()], columns=["region", "sex", "n"])
    frame["status"] = ["U" if code == ("A", "f") else "S" for code in counts]
    table = {"method": "adjustment", "value": "n", "tables": [["region", "sex"]], "status": "status",
             "statuses": {"U": "sensitive", "S": "safe"}, "safety_range": 60, "costs": "inverse",
             "quality": quality}  # fmt: skip
    chosen = of_finished(frame, table)
    assert chosen.table is not None
    cells = cells_of_finished(frame, chosen.table)
    problem, adjustment = adjusted(table_problem(cells, chosen, KEY), chosen, chosen.table, KEY)
    published = adjustment.values[problem.variables]
    women = cells.codes.eq(["A", "f"]).to_numpy().all(axis=1)
    assert (np.abs(published - cells.units)[women] >= problem.by_rule.lower_protection[women]).all()
    return abs(float(change_summary(cells, chosen.table, published)["grand_total_change"]))


def test_adjusted_keeps_the_grand_total_within_its_limit_unless_a_steward_accepts_more():
    assert change_of_total(COUNTS, accept={"max_grand_total_change": "a test, A. Steward"}) > 0.01
    assert change_of_total(COUNTS) <= 0.01


def test_adjusted_moves_a_grand_total_that_cannot_be_kept():
    alone = {("A", "f"): 5, ("A", "Total"): 5, ("Total", "f"): 5, ("Total", "Total"): 5}
    assert change_of_total(alone) > 0.5
