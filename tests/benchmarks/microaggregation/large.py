"""Compare efforts fast and standard on files of 100,000 records with MDAV in blocks and a longer search."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.local_search import by_effort
from microguard.sdc.microaggregation.local_search.work import WORK
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

from tests.benchmarks.misses import Misses
from tests.benchmarks.parts import say
from tests.benchmarks.table import Table, line
from tests.reference import reference_file

#: Sweeps of the longer search, and the largest relative excess of standard's loss over this search.
SWEEPS, EXCESS = 120, 0.02
#: Largest loss of fast as a share of MDAV's: for files with heavy tails, and for others.
HEAVY_TAILS, OTHERS = 0.5, 0.95


def large_files(misses: Misses, quick: bool = False, k: int = 3) -> Table:
    """Return loss and CPU seconds by search, for three kinds of generated files and one office file."""
    n = 5_000 if quick else 100_000
    rows = []
    for name, values in _files(n).items():
        start, deadline = time.process_time(), Deadline.after(None)
        records, _ = Records.of(values, k)
        mdav = by_effort.construct(records, k, deadline=deadline, seed=0)
        row = [100 * mdav.information_loss, time.process_time() - start]
        losses = [mdav.information_loss]
        for effort in ("fast", "standard"):
            start = time.process_time()
            found = microaggregate(values, k, effort=effort)
            losses.append(found.information_loss)
            row += [100 * losses[-1], time.process_time() - start]
        standard = WORK["standard"]
        WORK["standard"] = replace(standard, fewest_sweeps=SWEEPS)
        try:
            start = time.process_time()
            losses.append(microaggregate(values, k).information_loss)
            row += [100 * losses[-1], time.process_time() - start]
        finally:
            WORK["standard"] = standard
        rows.append((name, *row, 100 * (losses[2] / losses[3] - 1.0)))
        say(line(rows[-1]))
        fast, most = losses[1] / losses[0], HEAVY_TAILS if name == "Cantor dust" else OTHERS
        misses.unless(fast <= most, f"{name}: fast loses {100 * fast:.0f} % of MDAV's loss")
        excess = losses[2] / losses[3] - 1.0
        misses.unless(
            excess <= EXCESS, f"{name}: standard loses {100 * excess:.1f} % more than {SWEEPS} sweeps"
        )
    columns = [f"{name}{unit}" for name in ("MDAV", "fast", "standard", "longer") for unit in ("", ", CPU s")]
    return Table(
        f"{n:,} records, k = {k}, 100 SSE/SST",
        ("file", *columns, "excess, %"),
        rows,
        f"MDAV in blocks, with the encoding of the records; longer: {SWEEPS} sweeps; excess: of standard "
        "over the longer search.",
    )


def _files(n: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    centres = random.normal(size=(40, 5)) * 3.0
    ties = np.floor(np.exp(random.normal(size=(n, 1)) + random.normal(size=(n, 5)) / 2.0))
    survey = pd.read_csv(reference_file("business_survey.csv"), sep=None, engine="python")
    survey = survey.select_dtypes("number").fillna(0.0).to_numpy(dtype=float)[:, :5]
    drawn = survey[random.integers(len(survey), size=n)]
    digits = 2 * random.integers(0, 2, size=(n, 14, 2))
    return {
        "uniform, 6": random.uniform(size=(n, 6)),
        "mixture of normals, 5": centres[random.integers(40, size=n)] + random.normal(size=(n, 5)),
        "integers with ties, 5": ties,
        "business survey, 5": drawn * np.exp(0.05 * random.normal(size=drawn.shape)),
        "Cantor dust": (digits * 0.25 ** np.arange(14)[:, np.newaxis]).sum(axis=1),
    }
