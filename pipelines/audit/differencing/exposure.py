"""Joint audit: count what all current and withdrawn releases of a source disclose together.

The result contains counts and no values of records. The audit uses no code of the methods and no state of a
series.

A source is safe if every history is shared by at least k units, as the rule of a series guarantees. Then no
sum over fewer than k records follows from the releases, and no two totals differ by fewer than k records.
Otherwise the other counts measure the disclosure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.corrected import views
from microguard.pipelines.audit.differencing.histories import Histories, histories
from microguard.pipelines.audit.differencing.mean_weights import split_by_weight
from microguard.pipelines.audit.differencing.sensitive import single_common_value
from microguard.pipelines.audit.differencing.system import solve
from microguard.pipelines.audit.differencing.totals import close_totals

#: Counts of an exposure. A further release never reduces them, except `one_value` in rare cases.
COUNTS = (
    "below_k",
    "determined_units",
    "determined_values",
    "determined_sums",
    "close_totals",
    "one_value",
    "cells",
)


@dataclass(frozen=True)
class JointExposure:
    """Counts of what a reader of all releases of a source learns, and ids of the releases involved.

    Attributes
    ----------
    releases : tuple of str
        Ids of the compared releases.
    units : int
        Number of units in at least one of the releases.
    smallest_history : int
        Minimum number of units with the same history; 0 if there are no units.
    below_k : int
        Number of units whose history is shared by fewer than k units.
    determined_units, determined_values : int
        Number of units with a value that follows from the published means, with an error of at most one
        percent or the rounding unit, and number of these values.
    determined_sums : int
        Number of sums over fewer than k records that follow with the same accuracy.
    close_totals : int
        Number of pairs of totals of two releases whose records differ by fewer than k.
    one_value : int
        Number of units whose classes have a single value of a sensitive variable in common, although each
        class has several.
    cells : int
        Number of cells of protected tables whose original value follows from records or another table.
    not_compared : tuple of str
        Ids of releases of the source that were not compared, because their units are unknown.
    collisions : tuple of (str, int)
        Ids of earlier releases that expose units below k together with the last release alone, with the
        number of these units.
    """

    releases: tuple[str, ...]
    units: int = 0
    smallest_history: int = 0
    below_k: int = 0
    determined_units: int = 0
    determined_values: int = 0
    determined_sums: int = 0
    close_totals: int = 0
    one_value: int = 0
    cells: int = 0
    not_compared: tuple[str, ...] = ()
    collisions: tuple[tuple[str, int], ...] = ()

    @property
    def safe(self) -> bool:
        """Return whether nothing is exposed and all releases were compared."""
        counted = (self.below_k, self.determined_values, self.determined_sums, self.close_totals)
        return not any((*counted, self.one_value, self.cells, *self.not_compared))

    def beyond(self, accepted: JointExposure) -> JointExposure:
        """Subtract an accepted exposure, count by count; negative differences become 0."""
        counts = {name: max(0, getattr(self, name) - getattr(accepted, name)) for name in COUNTS}
        lost = tuple(name for name in self.not_compared if name not in accepted.not_compared)
        return replace(self, **counts, not_compared=lost)

    def faults(self) -> tuple[str, ...]:
        """Return one phrase for each positive count; the phrases contain only counts and ids."""
        phrases = (
            (self.below_k, "units have a history that fewer than k units share"),
            (self.determined_values, f"values of {self.determined_units} units follow from the means"),
            (self.determined_sums, "sums over fewer than k records follow from the means"),
            (self.close_totals, "pairs of totals differ by fewer than k records"),
            (self.one_value, "units have only one possible value of a sensitive variable"),
            (self.cells, "cells of protected tables have a derivable original value"),
            (len(self.not_compared), f"releases cannot be compared with ({', '.join(self.not_compared)})"),
        )
        return tuple(f"{count} {phrase}" for count, phrase in phrases if count)


def joint_exposure(
    releases: Sequence[Classes], *, cells: int = 0, not_compared: Sequence[str] = ()
) -> JointExposure:
    """Audit the classes of all releases of a source jointly.

    Parameters
    ----------
    releases : sequence of Classes
        Every clustering of every release, oldest release first; the last one may be a release that is not
        published yet. Clusterings of the same variables are audited all together, others in pairs. Pairs
        within one release are omitted, because its manifest states that its groups are not jointly safe.
    cells : int
        Result of `cells.count_disclosed_cells`.
    not_compared : sequence of str
        Ids of releases of the source that could not be read.
    """
    names = tuple(dict.fromkeys(release.release for release in releases))
    exposure = JointExposure(names, cells=cells, not_compared=tuple(not_compared))
    if not releases:
        return exposure
    units = 1 + max(int(release.unit.max(initial=-1)) for release in releases)
    below, determined_units, one_value = np.zeros(units, bool), np.zeros(units, bool), np.zeros(units, bool)
    smallest = units
    families = _jointly_audited(releases)
    for together in families:
        by_unit = histories(together, units)
        smallest = min(smallest, int(by_unit.sizes.min(initial=units)))
        below |= _of_units(by_unit, by_unit.exposed)
        for name in _shared(together, "sensitive"):
            publishing = [release for release in together if name in release.sensitive]
            variable_histories = histories(publishing, units)
            one_value |= _of_units(
                variable_histories, single_common_value(publishing, variable_histories, name)
            )
        for view in views(together):
            values, sums, determined = _determined(view)
            determined_units[determined] = True
            exposure = replace(
                exposure,
                determined_values=exposure.determined_values + values,
                determined_sums=exposure.determined_sums + sums,
                close_totals=exposure.close_totals + close_totals(view, _by_record(view)),
            )
    # in all other cases, a pair of releases discloses no more than all releases together
    search_pairs = below.any() or len(families) > 1
    present = np.zeros(units, bool)
    for release in releases:
        present[release.unit] = True
    return replace(
        exposure,
        units=int(present.sum()),
        smallest_history=smallest if present.any() else 0,
        below_k=int(below.sum()),
        determined_units=int(determined_units.sum()),
        one_value=int(one_value.sum()),
        collisions=_collisions(releases, units) if search_pairs else (),
    )


def _jointly_audited(releases: Sequence[Classes]) -> list[list[Classes]]:
    """Group clusterings of the same variables, and form pairs of clusterings of different variables."""
    families: dict[tuple[str, ...], list[Classes]] = {}
    for release in releases:
        families.setdefault(tuple(sorted(release.variables)), []).append(release)
    whole = list(families.values())
    for left, right in combinations(families.values(), 2):
        if not {each.release for each in left} & {each.release for each in right}:
            whole += [[one, other] for one in left for other in right]
    return whole


def _of_units(by_unit: Histories, of_history: np.ndarray) -> np.ndarray:
    """Return for each unit whether it has a selected history, (units,) bool; `of_history` is an (h,) bool
    array.
    """
    return (by_unit.history_of >= 0) & np.append(of_history, False)[by_unit.history_of]


def _by_record(releases: Sequence[Classes]) -> Histories:
    records = 1 + max(int(release.record.max(initial=-1)) for release in releases)
    return histories(releases, records, by_record=True)


def _shared(releases: Sequence[Classes], kind: str) -> list[str]:
    """Return the variables that occur in at least one release, in order."""
    return list(dict.fromkeys(name for release in releases for name in getattr(release, kind)))


def _determined(releases: Sequence[Classes]) -> tuple[int, int, np.ndarray]:
    """Return the numbers of determined values and of determined sums over fewer than k records, and the units
    of the values.
    """
    by_source: dict[tuple[int, ...], list[str]] = {}
    for name in _shared(releases, "means"):
        source = tuple(i for i, release in enumerate(releases) if name in release.means)
        by_source.setdefault(source, []).append(name)
    values = sums = 0
    owners = [np.zeros(0, np.int64)]
    for source, names in by_source.items():
        publishing = [releases[i] for i in source]
        records = split_by_weight(publishing, _by_record(publishing))
        if not (records.exposed | (records.sizes == 1)).any():
            continue  # nothing to compute, because every sum has at least k records
        solution = solve(publishing, names, records)
        rounding = np.array(
            [max(release.rounding.get(name, 0.0) for release in publishing) for name in names]
        )
        known = solution.within(rounding)
        alone = records.sizes == 1
        values += int(known[alone].sum())
        sums += int(known[~alone & records.exposed].any(axis=1).sum())
        exposed = alone & known.any(axis=1)
        for release in publishing:
            owners.append(release.unit[exposed[records.history_of[release.record]]])
    return values, sums, np.unique(np.concatenate(owners))


def _collisions(releases: Sequence[Classes], units: int) -> tuple[tuple[str, int], ...]:
    """Return the earlier releases that, combined with the last release alone, expose groups of fewer than k
    units.
    """
    newest = releases[-1].release
    last = [release for release in releases if release.release == newest]
    collisions = []
    for name in dict.fromkeys(release.release for release in releases if release.release != newest):
        below = np.zeros(units, bool)
        for together in _jointly_audited([*(each for each in releases if each.release == name), *last]):
            if len(together) > 1:
                pair = histories(together, units)
                below |= _of_units(pair, pair.exposed)
        if below.any():
            collisions.append((name, int(below.sum())))
    return tuple(collisions)
