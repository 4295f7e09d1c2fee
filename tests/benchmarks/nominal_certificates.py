"""Certificates of the nominal methods: the gap of whole files, and every bound against brute force."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from sdc.nominal.bounds import free_bound, nested_bound
from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import from_frame
from sdc.nominal.frequency_search.search import Effort, protect_frequencies
from tests.benchmarks.nominal_scenarios import adult
from tests.benchmarks.table import Table
from tests.sdc.nominal.brute_force import least_chi2

#: Largest share of the chi-square that may be open: asked of Adult, 5 and 8 variables, k = 3 and 5.
LARGEST_GAP = 0.40
DIMENSION = 3


def tables(quick: bool = False) -> Iterator[Table]:
    """Both tables; quick: Adult of five variables at fast effort, and 30 instances."""
    yield of_adult((5,) if quick else (5, 8), "fast" if quick else "standard")
    yield against_brute_force(30 if quick else 300)


def of_adult(variables: tuple[int, ...], effort: Effort) -> Table:
    """What is certified of full Adult, all tables to dimension 3."""
    rows: list[tuple[object, ...]] = []
    for number in variables:
        frequencies = from_frame(adult(number)).frequencies
        control_tables = ControlTables.of(frequencies, DIMENSION)
        for k in (3, 5):
            found = protect_frequencies(frequencies, k, control_tables, effort=effort)
            free = free_bound(control_tables, k)
            begin = time.process_time()
            nested = nested_bound(control_tables, k)
            seconds = time.process_time() - begin
            gaps = 1 - free / found.chi2, 1 - nested / found.chi2
            assert free <= nested <= found.chi2
            assert gaps[1] <= LARGEST_GAP
            rows.append((number, k, found.chi2, free, gaps[0], nested, gaps[1], seconds))
    return Table(
        f"Full Adult, {effort} effort, tables to dimension {DIMENSION}: chi-square and bounds on it",
        ("variables", "k", "chi2", "free bound", "gap", "nested bound", "gap", "CPU s of the bound"),
        rows,
        f"Asked: a gap of at most {LARGEST_GAP:.0%}.",
    )


def against_brute_force(instances: int) -> Table:
    """Share of the optimum that each bound proves on tiny files; a bound above the optimum is an error."""
    free, nested = [], []
    for seed in range(instances):
        rng = np.random.default_rng(seed)
        variables = 2 + seed % 2
        frame = pd.DataFrame(rng.integers(0, 2, (6 + seed % 3, variables)), columns=list("abc")[:variables])
        k, dimension = 2 + seed % 3, 1 + seed % variables
        control_tables = ControlTables.of(from_frame(frame).frequencies, dimension)
        best = least_chi2(frame, k, dimension)
        bounds = free_bound(control_tables, k), nested_bound(control_tables, k)
        assert bounds[0] <= bounds[1] <= best + 1e-9
        if best > 0:
            free.append(bounds[0] / best)
            nested.append(bounds[1] / best)
    rows: list[tuple[object, ...]] = [
        (name, len(shares), float(np.mean(shares)), float(np.mean(np.array(shares) > 1 - 1e-9)))
        for name, shares in (("free", free), ("nested", nested))
    ]
    return Table(
        f"{instances} files of 6 to 8 records against brute force",
        ("bound", "files with an error", "mean share of the optimum", "share proved optimal"),
        rows,
        "No bound is above the optimum of any file.",
    )
