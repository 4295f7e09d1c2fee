"""Synthetic persons in the households of a town, with dependences like those in a census.

Persons are drawn in chunks, each with its own random stream derived from the seed. Memory therefore does not
grow with the number of persons. A larger data set begins with the persons of a smaller one, unless the
smaller one has fewer regions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from microguard.pipelines.synthetic.persons import REGIONS, Households, persons

CHUNK = 100_000
"""Number of persons that are drawn at a time."""
PERSONS_PER_REGION = 100
"""Minimum number of persons per region; small data sets have fewer regions, so that no region has fewer than
k records."""
REGION_SHARES = np.array([0.26, 0.19, 0.15, 0.12, 0.10, 0.08, 0.06, 0.04])


def generate_persons(records: int, seed: int) -> Iterator[pa.Table]:
    """Generate persons with variables of all kinds that the demo uses, in tables of at most `CHUNK` rows.

    Parameters
    ----------
    records : int
        Number of persons.
    seed : int
        Equal seeds give equal persons.
    """
    regions = int(np.clip(records // PERSONS_PER_REGION, 1, len(REGIONS)))
    for first in range(0, records, CHUNK):
        rng = np.random.default_rng([seed, first])
        count = min(CHUNK, records - first)
        households = _households(rng, regions)
        yield pa.table(persons(rng, households, first)).slice(0, count)


def _households(rng: np.random.Generator, regions: int) -> Households:
    size = rng.choice(np.arange(1, 7), p=[0.36, 0.31, 0.15, 0.12, 0.04, 0.02], size=CHUNK)
    size = size[: int(np.searchsorted(np.cumsum(size), CHUNK)) + 1]
    n = len(size)
    start = np.cumsum(size) - size
    household_of = np.repeat(np.arange(n), size)[:CHUNK]
    shares = REGION_SHARES[:regions] / REGION_SHARES[:regions].sum()
    old, young = rng.normal(56, 18, n), rng.normal(41, 8, n)
    return Households(
        household_of=household_of,
        position=np.arange(CHUNK) - start[household_of],
        size=size,
        couple=(size >= 2) & (rng.random(n) < 0.8),
        region=rng.choice(regions, p=shares, size=n),
        head_age=np.clip(np.where(size >= 3, young, old), 18, 96),
        wealth=rng.normal(size=n),
        start=start,
    )
