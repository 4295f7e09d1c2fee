"""Counts of an update: for the operator, for the evidence and, rounded by region, for the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.series.settings import (
    CREATED,
    EVENT,
    PRESENT,
    REGION,
    RETAINED,
    SINCE,
    STALE,
    STATUS,
    SUPPRESSED,
    WAITING,
    SeriesSettings,
)
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

#: Public shares are rounded to multiples of this share and of k units, so that fewer than k units have no
#: effect.
PUBLIC_STEP = 0.05
LONGEST = "longest_wait"


@dataclass(frozen=True)
class UpdateCounts:
    """Counts of an update; their names are keys in evidence files.

    Attributes
    ----------
    units : int
        Units of the input.
    published : int
        Records of the release, retained ones included.
    comers, leavers, returned : int
        Entrants, exits, and units that returned to the source.
    corrected : int
        Published units whose values differ from those with which they were clustered.
    born : int
        Records whose class was created or republished by this update.
    waiting, ghosts, stale : int
        State after the update: units not published yet, retained records, and present units with stale
        values.
    departed : int
        Records whose class was suppressed by this update.
    longest_wait : int
        Largest number of updates for which a unit has waited.
    withheld : int
        New records that are published without their sensitive values (`pipelines.series.withheld_values`).
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
    withheld: int = 0

    @property
    def changes_nothing(self) -> bool:
        """Return whether the release would be identical to the current one."""
        return self.born == 0 and self.departed == 0

    @property
    def renumbered(self) -> bool:
        """Return whether the identifiers of units appear to have changed since the last update.

        The condition is that both exits and entrants never seen before outnumber the units that are known.
        The same persons would otherwise be published in a second class, which no audit by unit key would
        notice.
        """
        known = self.units - self.comers
        return self.leavers > known and self.comers > known

    def exceeded_limits(self, settings: SeriesSettings) -> tuple[str, ...]:
        """Return a phrase for each exceeded limit; if there is one, all units must be protected again."""
        shares = (
            ("waiting", self.waiting, self.units, settings.max_waiting),
            ("ghosts", self.ghosts, self.published, settings.max_ghosts),
            ("stale", self.stale, self.published, settings.max_stale),
        )
        return tuple(
            f"series.max_{name}: found {count} of {whole}, expected a share of at most {most}"
            for name, count, whole, most in shares
            if count > most * whole
        )


def counts_by_region(units: DataFrame, number: int) -> pa.Table:
    """Count the events of an update by region in one aggregation.

    Parameters
    ----------
    units : DataFrame
        `STATE` and `EVENT`, from `next_units`.
    number : int
        Number of the update.

    Returns
    -------
    Table
        `REGION`, and the numbers of `UpdateCounts`.
    """
    status, event = f.col(STATUS), f.col(EVENT)
    published = status.isin(PRESENT, RETAINED)
    suppressed = (status == SUPPRESSED) & (f.col(SINCE) == number)
    metrics = {
        "units": status.isin(PRESENT, WAITING),
        "published": published,
        "comers": event == "entrant",
        "leavers": event == "exit",
        "returned": event == "returned",
        "corrected": event == "corrected",
        "born": published & (f.col(CREATED) == number),
        "waiting": status == WAITING,
        "ghosts": status == RETAINED,
        "stale": f.col(STALE) & (status == PRESENT),
        "departed": suppressed & event.isin("exit", RETAINED, "corrected"),
    }
    longest = f.max(f.when(status == WAITING, f.lit(number) - f.col(SINCE))).alias(LONGEST)
    counted = [f.count_if(test).alias(name) for name, test in metrics.items()]
    return units.groupBy(REGION).agg(*counted, longest).toArrow().sort_by(REGION)


def total_counts(regions: pa.Table) -> UpdateCounts:
    """Sum the counts of all regions."""
    numbers = {name: pc.sum(regions[name]).as_py() or 0 for name in regions.column_names if name != REGION}
    return UpdateCounts(**(numbers | {LONGEST: pc.max(regions[LONGEST]).as_py() or 0}))


def public_shares(regions: pa.Table, k: int) -> list[dict[str, Any]]:
    """Return retained records and pending units by region, as rounded shares of the region's published
    records.

    Fewer than `k` units count as 0: the share of a small region could disclose that one person has left.
    """
    return [_public(row, k) for row in regions.to_pylist() if row["published"] > 0]


def _public(row: Mapping[str, Any], k: int) -> dict[str, Any]:
    step = max(PUBLIC_STEP, k / row["published"])
    counts = {name: row[name] if row[name] >= k else 0 for name in ("ghosts", "waiting")}
    return {"region": None if row[REGION] is None else str(row[REGION])} | {
        name: round(round(count / row["published"] / step) * step, 2) for name, count in counts.items()
    }
