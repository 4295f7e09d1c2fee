"""Numbers of corrected units: a record whose correction left a variable alone has the value of before in it.

By their versions, records of one unit are different unknowns. But who corrects a weight does not correct an
income: the means of both versions' classes are of the same incomes. So each variable of which the maps of
members know the values is audited by itself, and a record in it is a unit's value, not a unit's version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.histories import mix_bits


def views(releases: Sequence[Classes]) -> list[list[Classes]]:
    """The releases by versions of their records, and each variable of known values by these.

    Parameters
    ----------
    releases : sequence of Classes
        Oldest first.
    """
    names = dict.fromkeys(name for release in releases for name in release.values)
    plain = [
        replace(release, means={name: mean for name, mean in release.means.items() if name not in names})
        for release in releases
    ]
    return [plain, *filter(None, (by_value(releases, name) for name in names))]


def by_value(releases: Sequence[Classes], name: str) -> list[Classes]:
    """The classes with a new mean of a variable, their records told apart by its values alone.

    A class whose number was published before of each of its units says nothing of their values now.
    """
    seen = np.zeros(0, np.uint64)
    view = []
    for release in releases:
        if name not in release.values or name not in release.means:
            continue
        mean = release.means[name] + 0.0
        numbers = mix_bits(
            release.unit.astype(np.uint64) + mix_bits(mean.view(np.uint64), 6)[release.class_of], 6
        )
        new = np.zeros(len(release), bool)
        np.logical_or.at(new, release.class_of, ~np.isin(numbers, seen))
        new &= ~np.isnan(mean)
        seen = np.union1d(seen, numbers)
        rows = new[release.class_of]
        if rows.any():
            view.append(
                replace(
                    release,
                    unit=release.unit[rows],
                    class_of=(np.cumsum(new) - 1)[release.class_of[rows]],
                    region=release.region[new],
                    means={name: release.means[name][new]},
                    sensitive={},
                    record=release.values[name][rows],
                    weight=release.weight[rows],
                    values={},
                )
            )
    return view
