"""Separate views of releases for variables whose values did not change when a unit was corrected.

When a unit is corrected, variables that did not change keep their value. If only the weight of a unit is
corrected, the means of both its classes include the same income. Treating the two versions as different
unknowns would miss this. Each variable with known values is therefore audited separately, and its unknowns
are values of units instead of versions of units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.histories import mix_bits


def views(releases: Sequence[Classes]) -> list[list[Classes]]:
    """Return the views from which linear systems are built: the record versions, and each known variable.

    Parameters
    ----------
    releases : sequence of Classes
        Releases, oldest first.
    """
    names = dict.fromkeys(name for release in releases for name in release.values)
    plain = [
        replace(release, means={name: mean for name, mean in release.means.items() if name not in names})
        for release in releases
    ]
    return [plain, *filter(None, (by_value(releases, name) for name in names))]


def by_value(releases: Sequence[Classes], name: str) -> list[Classes]:
    """Return the classes that have a new mean of a variable, with the variable's values as unknowns.

    A class is omitted if the same mean was published before for each of its units, because such a class adds
    no equation.
    """
    published_means = np.zeros(0, np.uint64)
    view = []
    for release in releases:
        if name not in release.values or name not in release.means:
            continue
        mean = release.means[name] + 0.0
        numbers = mix_bits(
            release.unit.astype(np.uint64) + mix_bits(mean.view(np.uint64), 6)[release.class_of], 6
        )
        new = np.zeros(len(release), bool)
        np.logical_or.at(new, release.class_of, ~np.isin(numbers, published_means))
        new &= ~np.isnan(mean)
        published_means = np.union1d(published_means, numbers)
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
