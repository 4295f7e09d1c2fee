"""Measure local suppression of Adult with eight variables: suppressed values and the proved bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.local_suppression import suppress

from tests.benchmarks.table import Table
from tests.reference import ADULT, reference_file

K = 3
#: Values that kAnon of sdcMicro 5.8 suppresses in Adult with the same variables and k.
SDCMICRO = 8_853
MEANINGS = ("any_value", "category")


def tables(quick: bool = False) -> dict[str, Callable[[], Table]]:
    """Return one table."""
    return {"local suppression": partial(table, quick)}


def table(quick: bool = False) -> Table:
    """Return one row for each meaning of a missing value and effort; quick: effort fast."""
    records = pd.read_csv(reference_file("adult.csv"), na_values="?", skipinitialspace=True)
    records = records[list(ADULT)].dropna().astype(str)
    codes = np.column_stack([pd.factorize(records[name], sort=True)[0] for name in records])
    keys, counts = np.unique(codes, axis=0, return_counts=True)
    efforts: tuple[Effort, ...] = ("fast",) if quick else ("fast", "standard")
    rows: list[tuple[object, ...]] = []
    for missing in MEANINGS:
        for effort in efforts:
            begin = time.process_time()
            found = suppress(keys, counts, K, missing=missing, effort=effort)
            seconds = time.process_time() - begin
            gap = 100 * (1 - found.lower_bound / found.cost)
            rows.append(
                (missing, effort, int(found.cost), int(found.lower_bound), gap, found.programs, seconds)
            )
            if missing == "any_value" and effort == "standard":
                assert found.cost < SDCMICRO
            if missing == "category":
                assert found.lower_bound > SDCMICRO
    return Table(
        f"Adult, {len(records):,} records, 8 nominal variables, k = {K}: local suppression",
        ("a missing value is", "effort", "values suppressed", "lower bound", "gap, %", "programs", "CPU s"),
        rows,
        f"sdcMicro 5.8 kAnon suppresses {SDCMICRO:,}. In its count a missing value fits any value of any "
        "record, which is weaker than either meaning here. If a missing value is a category of its own, the "
        "lower bound excludes so few.",
    )
