"""What a night did, in counts: for the operator, the evidence, and (by region, rounded) the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.series.settings import (
    BORN,
    EVENT,
    GHOST,
    GONE,
    REGION,
    SINCE,
    STALE,
    STANDING,
    STATUS,
    WAITING,
    SeriesSettings,
)
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

#: Shares that readers may see are multiples of this, and of k units: fewer more or less must not show.
PUBLIC_STEP = 0.05
LONGEST = "longest_wait"


@dataclass(frozen=True)
class NightCounts:
    """A night in counts.

    Attributes
    ----------
    units : int
        Of tonight's input.
    published : int
        Records of the release, ghosts among them.
    comers, leavers, returned : int
    corrected : int
        Published units whose values tonight are not those that they were clustered by.
    born : int
        Records whose class was born, or came back, tonight.
    waiting, ghosts, stale : int
        After tonight; `stale` are the corrected ones among those standing.
    departed : int
        Records whose class left tonight.
    longest_wait : int
        Nights that the units who wait have waited at most.
    """

    units: int
    published: int
    comers: int
    leavers: int
    returned: int
    corrected: int
    born: int
    waiting: int
    ghosts: int
    stale: int
    departed: int
    longest_wait: int

    @property
    def changes_nothing(self) -> bool:
        """Whether the release would be the one that stands."""
        return self.born == 0 and self.departed == 0

    @property
    def renumbered(self) -> bool:
        """Whether units seem to have other identifiers than before.

        More units left, and more came that were never seen, than there are known ones. The same persons
        would be published in other classes, and no audit by unit could tell.
        """
        known = self.units - self.comers
        return self.leavers > known and self.comers > known

    def exceeded_limits(self, settings: SeriesSettings) -> tuple[str, ...]:
        """Limits that are exceeded, a phrase each; with any of them the series must be solved anew."""
        shares = (
            ("waiting", self.waiting, self.units, settings.max_waiting),
            ("ghosts", self.ghosts, self.published, settings.max_ghosts),
            ("stale", self.stale, self.published, settings.max_stale),
        )
        return tuple(
            f"series.max_{name}: {count} of {whole}, allowed a share of {most}"
            for name, count, whole, most in shares
            if count > most * whole
        )


def counts_by_region(units: DataFrame, number: int) -> pa.Table:
    """Count a night region by region, in one aggregation: `REGION`, and the numbers of `NightCounts`.

    Parameters
    ----------
    units : DataFrame
        `STATE` and `EVENT`, from `next_units`.
    number : int
        Of tonight.
    """
    status, event = f.col(STATUS), f.col(EVENT)
    published = status.isin(STANDING, GHOST)
    metrics = {
        "units": status.isin(STANDING, WAITING),
        "published": published,
        "comers": event == "comer",
        "leavers": event == "left",
        "returned": event == "returned",
        "corrected": event == "corrected",
        "born": published & (f.col(BORN) == number),
        "waiting": status == WAITING,
        "ghosts": status == GHOST,
        "stale": f.col(STALE) & (status == STANDING),
        "departed": (status == GONE) & (f.col(SINCE) == number) & event.isin("left", GHOST, "corrected"),
    }
    longest = f.max(f.when(status == WAITING, f.lit(number) - f.col(SINCE))).alias(LONGEST)
    counted = [f.count_if(test).alias(name) for name, test in metrics.items()]
    return units.groupBy(REGION).agg(*counted, longest).toArrow().sort_by(REGION)


def night_counts(regions: pa.Table) -> NightCounts:
    """The counts of all regions together; units that are gone have none."""
    numbers = {name: pc.sum(regions[name]).as_py() or 0 for name in regions.column_names if name != REGION}
    return NightCounts(**(numbers | {LONGEST: pc.max(regions[LONGEST]).as_py() or 0}))


def by_region(regions: pa.Table, k: int) -> list[dict[str, Any]]:
    """Ghosts and waiting units by region, as shares of what is published there, rounded for readers.

    Fewer than `k` units are none: a share of a small region would say that one person has left.
    """
    return [_public(row, k) for row in regions.to_pylist() if row["published"] > 0]


def _public(row: Mapping[str, Any], k: int) -> dict[str, Any]:
    step = max(PUBLIC_STEP, k / row["published"])
    counts = {name: row[name] if row[name] >= k else 0 for name in (GHOST + "s", WAITING)}
    return {"region": None if row[REGION] is None else str(row[REGION])} | {
        name: round(round(count / row["published"] / step) * step, 2) for name, count in counts.items()
    }
