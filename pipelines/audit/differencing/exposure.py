"""The joint audit: what all standing and withdrawn releases of a source give away together.

Counts only: nothing here is a value of a record, and nothing here comes from the methods or from the state
of a series. A source is safe where every history is shared by at least k units, which the rule of a series
promises: then no sum over fewer than k records follows, and no two totals differ by fewer. Where it does not
hold, the other counts say what follows.
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

#: What is counted of an exposure: none of it grows less by a further release, `one_value` nearly so.
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
    """What a reader of all releases of a source learns; counts, and ids of releases.

    Attributes
    ----------
    releases : tuple of str
        What was compared.
    units : int
        Units in any of them.
    smallest_history : int
        Least number of units that share their whole history; 0 where there are none.
    below_k : int
        Units that share it with fewer than k, themselves counted.
    determined_units, determined_values : int
        Units with a value that follows from all published means, to within one percent or the rounding unit;
        number of such values.
    determined_sums : int
        Sums over fewer than k records that follow as closely.
    close_totals : int
        Pairs of totals of two releases that fewer than k records tell apart.
    one_value : int
        Units whose classes have just one value of a sensitive variable in common, though each shows several.
    cells : int
        Cells of protected tables whose original the records, or another table, give away.
    not_compared : tuple of str
        Releases of the source whose units are not known: nothing is said of them.
    collisions : tuple of (str, int)
        Each earlier release that alone puts units below k beside the last one, and how many.
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
        """Whether nothing is exposed and everything was compared."""
        counted = (self.below_k, self.determined_values, self.determined_sums, self.close_totals)
        return not any((*counted, self.one_value, self.cells, *self.not_compared))

    def beyond(self, accepted: JointExposure) -> JointExposure:
        """What is exposed beside that which some of the releases expose already."""
        counts = {name: max(0, getattr(self, name) - getattr(accepted, name)) for name in COUNTS}
        lost = tuple(name for name in self.not_compared if name not in accepted.not_compared)
        return replace(self, **counts, not_compared=lost)

    def faults(self) -> tuple[str, ...]:
        """What is exposed, a phrase each; counts and ids alone."""
        phrases = (
            (self.below_k, "units share their whole history with fewer than k"),
            (self.determined_values, f"values of {self.determined_units} units follow from the means"),
            (self.determined_sums, "sums over fewer than k records follow from the means"),
            (self.close_totals, "pairs of totals differ by fewer than k records"),
            (self.one_value, "units are left one value of a sensitive variable"),
            (self.cells, "cells of protected tables can be seen through"),
            (len(self.not_compared), f"releases cannot be compared with ({', '.join(self.not_compared)})"),
        )
        return tuple(f"{count} {phrase}" for count, phrase in phrases if count)


def joint_exposure(
    releases: Sequence[Classes], *, cells: int = 0, not_compared: Sequence[str] = ()
) -> JointExposure:
    """Audit the classes of all releases of a source, the one to be published last.

    Parameters
    ----------
    releases : sequence of Classes
        Every clustering of every release, oldest release first. Clusterings that protect the same variables
        are audited all together, others in pairs. Pairs within one release are left out: its manifest says
        that its groups are not safe jointly.
    cells : int
        From `cells.seen_through`.
    not_compared : sequence of str
        Releases of the source that could not be read.
    """
    names = tuple(dict.fromkeys(release.release for release in releases))
    exposure = JointExposure(names, cells=cells, not_compared=tuple(not_compared))
    if not releases:
        return exposure
    units = 1 + max(int(release.unit.max(initial=-1)) for release in releases)
    below, determined_units, one_value = np.zeros(units, bool), np.zeros(units, bool), np.zeros(units, bool)
    smallest = units
    families = _compared_as_a_whole(releases)
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
    apart = below.any() or len(families) > 1  # else no pair of releases tells more than all of them
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
        collisions=_collisions(releases, units) if apart else (),
    )


def _compared_as_a_whole(releases: Sequence[Classes]) -> list[list[Classes]]:
    families: dict[tuple[str, ...], list[Classes]] = {}
    for release in releases:
        families.setdefault(tuple(sorted(release.variables)), []).append(release)
    whole = list(families.values())
    for left, right in combinations(families.values(), 2):
        if not {each.release for each in left} & {each.release for each in right}:
            whole += [[one, other] for one in left for other in right]
    return whole


def _of_units(by_unit: Histories, of_history: np.ndarray) -> np.ndarray:
    """Units of the marked histories, (units,) bool; `of_history` is (h,) bool."""
    return (by_unit.history_of >= 0) & np.append(of_history, False)[by_unit.history_of]


def _by_record(releases: Sequence[Classes]) -> Histories:
    records = 1 + max(int(release.record.max(initial=-1)) for release in releases)
    return histories(releases, records, by_record=True)


def _shared(releases: Sequence[Classes], kind: str) -> list[str]:
    """Variables that any of the releases has, in order."""
    return list(dict.fromkeys(name for release in releases for name in getattr(release, kind)))


def _determined(releases: Sequence[Classes]) -> tuple[int, int, np.ndarray]:
    """How many values follow, how many sums over fewer than k records, and the units of the values."""
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
            continue  # every sum that could follow is one over k records or more
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
    """Earlier releases by the units they put below k beside the last one."""
    newest = releases[-1].release
    tonight = [release for release in releases if release.release == newest]
    collisions = []
    for name in dict.fromkeys(release.release for release in releases if release.release != newest):
        below = np.zeros(units, bool)
        for together in _compared_as_a_whole(
            [*(each for each in releases if each.release == name), *tonight]
        ):
            if len(together) > 1:
                pair = histories(together, units)
                below |= _of_units(pair, pair.exposed)
        if below.any():
            collisions.append((name, int(below.sum())))
    return tuple(collisions)
