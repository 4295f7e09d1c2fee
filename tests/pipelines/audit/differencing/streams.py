"""Build single releases and random series of releases in memory, for tests of the joint audit."""

from __future__ import annotations

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes


def release(name, classes, *, k=3, values=None, rounding=0.0, sensitive=None, regions=None, variables=("x",)):
    """Build a release from lists of units, one list per class; `values` maps units to numbers."""
    unit = np.array([member for members in classes for member in members], np.int64)
    of = np.repeat(np.arange(len(classes)), [len(members) for members in classes])
    means = {}
    if values is not None:
        exact = np.array([np.mean([values[member] for member in members]) for members in classes])
        means = {"x": np.rint(exact / rounding) * rounding if rounding else exact}
    return Classes(
        name,
        k,
        variables,
        unit,
        of,
        np.zeros(len(classes), np.int64) if regions is None else np.array(regions),
        means,
        {"x": rounding},
        {} if sensitive is None else {"s": np.array([sensitive[member] for member in unit], np.int64)},
    )


def random_releases(random, units, number, k):
    """Return releases of random subsets of the units, each partitioned into random classes."""
    releases = []
    for i in range(number):
        present = random.permutation(units)[: random.integers(2 * k, units + 1)]
        cuts = np.arange(k, len(present) - k + 1, k)
        releases.append((f"r{i}", [part.tolist() for part in np.split(present, cuts)]))
    return releases
