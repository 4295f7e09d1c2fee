"""Effect of control tables by region: errors of national tables, and of region by one and two variables.

Each file is searched without tables by region, with region by one variable (the default), and with region by
two. Adult has no place of residence, so the country of birth is the region; countries with fewer than k
persons are excluded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, from_frame
from microguard.sdc.nominal.frequency_search.search import Effort, protect_frequencies
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.region_levels import REGION

from tests.benchmarks.combinations.in_parts import regional_town
from tests.benchmarks.combinations.scenarios import adult
from tests.benchmarks.table import Table

K = 3
#: Maximum chi-square of tables of region by one variable that the specification names, as a share of that
#: without them; and maximum chi-square of the national tables, as a multiple (1.21 with `region_weight` 0.2).
MOST_BY_REGION, MOST_NATIONAL = 0.1, 1.4
_COUNTRY, _TOWN = "native_country", "town of 100,000 in 400"
_CONTROLLED = ("nothing", "region x 1, the default", "region x 2")


@dataclass(frozen=True)
class _Found:
    """Chi-square and largest error of national tables and of region by one and two variables; CPU time."""

    chi2: tuple[float, ...]
    errors: tuple[int, ...]
    seconds: float


def tables(quick: bool = False) -> dict[str, Callable[[], Table]]:
    """Return one table."""
    return {"regions in control tables": partial(table, quick)}


def table(quick: bool = False) -> Table:
    """Compare demo files and Adult at effort standard; quick: a small demo file at effort fast."""
    files = {"town of 5,000 in 20": regional_town(5_000, 20)}
    if not quick:
        files |= {
            _TOWN: regional_town(100_000, 400),
            "Adult by country of birth": _adult(),
        }
    effort: Effort = "fast" if quick else "standard"
    rows: list[tuple[object, ...]] = []
    for name, file in files.items():
        found = [_searched(file, beside, effort) for beside in range(len(_CONTROLLED))]
        before, now = found[0].chi2, found[1].chi2
        if name == _TOWN:
            assert now[1] <= MOST_BY_REGION * before[1], f"{now[1]} by region, {before[1]} before"
            assert now[0] <= MOST_NATIONAL * before[0], f"{now[0]} nationally, {before[0]} before"
        rows += [
            (name, way, *each.chi2, " / ".join(map(str, each.errors)), each.seconds)
            for way, each in zip(_CONTROLLED, found, strict=True)
        ]
    return Table(
        f"Regions in control tables, k = {K}, all national tables to dimension 2",
        (
            "file and regions",
            "controlled by region",
            "chi2 national",
            "chi2 region x 1",
            "chi2 region x 2",
            "largest errors",
            "CPU s",
        ),
        rows,
        "Largest errors: of a cell nationally, in region by one variable, and by two.",
    )


def _adult() -> FrequencyVector:
    persons = adult()
    countries = persons[_COUNTRY].value_counts()
    kept = persons[persons[_COUNTRY].isin(countries.index[countries >= K])]
    names = [name for name in persons.columns if name != _COUNTRY]
    regions = pd.factorize(kept[_COUNTRY], sort=True)[0]
    return from_frame(kept[names], regions=regions).frequencies


def _searched(file: FrequencyVector, beside: int, effort: Effort) -> _Found:
    """Search with tables of the region by at most `order` variables, and measure all tables up to two."""
    asked = ControlTables.of(file, 2, region_dimension=beside)
    begin = time.process_time()
    counts = protect_frequencies(ProtectionTask(file, K, asked, effort=effort)).counts
    seconds = time.process_time() - begin
    judged = ControlTables.of(file, 2, region_dimension=2)
    squares, regional = judged.errors(counts) ** 2 * judged.reciprocals, judged.level > 0
    kinds = [~regional, *[regional & (judged.dimension == number) for number in (1, 2)]]
    by_region = judged.region_errors(counts)[REGION]
    return _Found(
        tuple(float(squares[kind].sum()) for kind in kinds),
        (max(judged.max_absolute_error(counts).values()), by_region[1], by_region[2]),
        seconds,
    )
