"""Three regions and their total, the first with one contributor, and an a priori file on the cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.tables.cells.cells import Cells, tabulated
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification

KEY = bytes(range(32))


def regional(folder: Path, known: str, **table: Any) -> Specification:
    """Return a table of turnover by region whose a priori file contains `known`."""
    (folder / "known.csv").write_text(known)
    content = {
        "release": {"name": "turnover", "k": 3},
        "input": {"path": "records.parquet"},
        "variables": {"region": {"role": "region"}, "turnover": {"role": "other", "kind": "numeric"},
                      "branch": {"role": "other"}},
        "table": {"value": "turnover", "tables": [["region"]], "decimals": 1, "a_priori": "known.csv",
                  "levels": "exact", **table},
        "publish": {"path": "lake", "evidence": "evidence"},
    }  # fmt: skip
    return build_specification(content, folder)


def regional_cells(specification: Specification, unit: float = 100.0) -> Cells:
    """Return the values of the regions n, s and w: one, two and three times the unit."""
    assert specification.table is not None
    codes = pd.DataFrame({"region": ["n", "s", "w", "Total"]})
    units, contributors = np.array([1.0, 2, 3, 6]) * unit, np.array([1.0, 9, 9, 19])
    largest = np.zeros((len(units), 2))
    return tabulated(codes, specification.table, units=units, contributors=contributors, largest=largest)
