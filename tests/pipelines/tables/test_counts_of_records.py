"""Tests of record counts for units with several records: a large count may have fewer than k units."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables.cells.cells import Cells, tabulated
from microguard.pipelines.tables.problem import table_problem
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification

#: Records and units by region and sex.
FINEST = {("n", "f"): (30, 30), ("n", "m"): (28, 28), ("z", "f"): (9, 1), ("z", "m"): (12, 12)}
METHODS = [("adjustment", {}), ("rounding", {"base": 3}), ("small_count_rounding", {"base": 3})]


def made(
    method: str, keys: dict[str, Any], finest: dict[tuple[str, str], tuple[int, int]]
) -> tuple[Specification, Cells]:
    content = {
        "release": {"name": "counts", "k": 3},
        "input": {"path": "records.parquet"},
        "variables": {"p": {"role": "unit"}, "region": {"role": "other"}, "sex": {"role": "other"}},
        "table": {"kind": "frequency", "tables": [["region", "sex"]], "method": method, **keys},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    spec = build_specification(content, Path("/nowhere"))
    assert spec.table is not None
    rows = []
    for region, sex in product(("n", "z", "Total"), ("f", "m", "Total")):
        inside = [
            each
            for (place, who), each in finest.items()
            if region in (place, "Total") and sex in (who, "Total")
        ]
        rows.append((region, sex, *map(sum, zip(*inside, strict=True))))
    frame = pd.DataFrame(rows, columns=["region", "sex", "records", "units"])
    counts = frame["records"].to_numpy(float)
    units = frame["units"].to_numpy(np.int64)
    cells = tabulated(frame[["region", "sex"]], spec.table, units=counts, contributors=units, gross=counts)
    return spec, cells


@pytest.mark.parametrize(("method", "keys"), METHODS)
def test_large_counts_of_few_units_are_refused_with_the_cause(method: str, keys: dict[str, Any]) -> None:
    spec, cells = made(method, keys, FINEST)
    with pytest.raises(InputRejected, match="have fewer than 3 contributors but a larger count"):
        table_problem(cells, spec, b"k" * 32)


@pytest.mark.parametrize(("method", "keys"), METHODS)
def test_control_counts_are_adjusted_with_one_record_per_unit(method: str, keys: dict[str, Any]) -> None:
    spec, cells = made(method, keys, FINEST | {("z", "f"): (1, 1)})
    assert table_problem(cells, spec, b"k" * 32).by_rule.sensitive.sum() == 1
