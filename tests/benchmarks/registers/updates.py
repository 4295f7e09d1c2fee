"""Publish many updates of a register with the real job, and attack the releases.

The control is the same register with every update protected from scratch: the attack must succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from tests.benchmarks.parts import read_json, say, write_json
from tests.benchmarks.registers.agency import Agency, UpdateResult
from tests.benchmarks.registers.attack import WINDOW, Disclosures, attack
from tests.benchmarks.registers.copies import Copy
from tests.benchmarks.registers.equations import KNOWN_WITHIN
from tests.benchmarks.registers.stream import TRACE, Update, register_updates
from tests.benchmarks.table import Table

SEED = 11
#: k of the series and of the control.
EFFORT = "fast"
#: Rounding unit of the values in the register, which are integers.
WHOLE = 1.0
#: Error of the total of a region with 400 units that rounded means cause.
TOTAL_WITHIN = 12.0


@dataclass(frozen=True)
class PublishedRegister:
    """The updates of a register.

    Attributes
    ----------
    kind : str
    k : int
    register : bool
        Whether the rule of a register holds, or every update is protected from scratch.
    nights : tuple of Update
    done : tuple of UpdateResult
    """

    kind: str
    k: int
    register: bool
    nights: tuple[Update, ...]
    done: tuple[UpdateResult, ...]

    def releases(self) -> dict[Path, int]:
        """Return the public folders in order, each with the number of its first update, from 0."""
        first_night: dict[Path, int] = {}
        for night, done in enumerate(self.done):
            first_night.setdefault(done.release, night)
        return first_night


def watched(
    spark: SparkSession, folder: Path, kind: str, k: int, units: int, nights: int, *, register: bool = True
) -> PublishedRegister:
    """Publish every update of a register that `folder` does not contain yet."""
    agency = Agency(spark, folder, kind, k, register=register, effort=EFFORT)
    stream = tuple(register_updates(kind, units, nights, SEED))
    path, who = folder / "nights.json", f"{kind}, k = {k}, {'rule' if register else 'solved anew'}"
    done = [UpdateResult(Path(each.pop("release")), **each) for each in read_json(path, [])]
    for tonight in stream[len(done) :]:
        done.append(agency.publish(tonight.frame))
        write_json(path, [vars(each) for each in done])
        say(f"{who}: night {tonight.number} of {nights} in {done[-1].seconds:.0f} s")
    return PublishedRegister(kind, k, register, stream, tuple(done))


def attacked(series: PublishedRegister) -> tuple[Disclosures, int, int]:
    """Run the attack, and count correct claims of values and totals."""
    releases = series.releases()
    disclosures = attack([Copy.of(folder) for folder in releases])
    night_of = np.array(list(releases.values()))
    return (
        disclosures,
        _right_values(series, disclosures.values, night_of),
        _right_totals(series, disclosures.removed, night_of),
    )


def _right_values(series: PublishedRegister, claims: pd.DataFrame, night_of: np.ndarray) -> int:
    """Count claimed values that are equal to the unit's value in its first update of the window."""
    right = 0
    for copy, of_copy in claims.groupby("copy"):
        window = [series.nights[night].frame for night in night_of[int(copy) : int(copy) + WINDOW]]
        truth = pd.concat(window).drop_duplicates(TRACE).set_index(TRACE)
        for name, of_variable in of_copy.groupby("variable"):
            values = truth[name].reindex(of_variable[TRACE]).to_numpy(np.float64)
            right += int(_same(of_variable["value"].to_numpy(np.float64), values).sum())
    return right


def _right_totals(series: PublishedRegister, claims: pd.DataFrame, night_of: np.ndarray) -> int:
    """Count claimed totals of entrants or exits that are correct."""
    right = 0
    for claim in claims.to_dict("records"):
        before, after = (series.nights[night_of[int(claim["copy"]) + offset]].frame for offset in (0, 1))
        one, other = (before, after) if claim["rows"] > 0 else (after, before)
        gone = one[~one[TRACE].isin(other[TRACE])]
        if len(gone) == abs(claim["rows"]):
            truth = float(gone[claim["variable"]].sum())
            right += abs(claim["value"] - truth) <= max(TOTAL_WITHIN, KNOWN_WITHIN * abs(truth))
    return right


def _same(claimed: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return np.abs(claimed - truth) <= np.maximum(WHOLE, KNOWN_WITHIN * np.abs(truth))


def disclosures_in(all_series: Sequence[PublishedRegister]) -> Table:
    """Return the disclosures: none with the rule of a register, some if each update is protected alone."""
    rows: list[tuple[object, ...]] = []
    for series in all_series:
        disclosures, values, totals = attacked(series)
        who = f"{series.kind}, k = {series.k}, {'rule' if series.register else 'solved anew'}"
        if series.register:
            assert disclosures.nothing, f"{who}: the attack succeeded"
            assert disclosures.smallest >= series.k
        else:
            assert disclosures.below_k, f"{who}: the attack on the control failed"
            assert series.kind == "nominal" or values, f"{who}: the attack on the control claims no value"
        removed = f"{len(disclosures.removed)} ({totals})"
        rows.append(
            (
                who,
                len(series.nights),
                disclosures.copies,
                disclosures.tracks,
                disclosures.smallest,
                disclosures.below_k,
                disclosures.close_totals,
                disclosures.one_value,
                f"{len(disclosures.values)} ({values})",
                disclosures.sums,
                removed,
            )
        )
    columns = ("series", "nights", "releases", "rows followed", "smallest history", "rows below k")
    more = (
        "close totals",
        "one sensitive value",
        "values (right)",
        "small sums",
        "totals of regions (right)",
    )
    units = len(all_series[0].nights[0].frame)
    return Table(f"The attack on a register of {units:,} units", (*columns, *more), rows)
