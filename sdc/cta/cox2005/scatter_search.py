"""Scatter search over directions, or over groups that share one (Cox 2005, section 4; Laguna, Marti 2003).

The paper used a closed solver; decided here: a point is a 0/1 vector over cells or groups. Two reference
points combine by the point ``better + weight (worse - better)``, whose fractional entries are settled by
chance; the best pair gives five points, the worst one. A point joins the reference set where it is cheaper
than the worst member and at least one Euclidean unit from every other. When no point joins, the elite half
stays and the rest is drawn again, each the most distant from the set among several random points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.search import Search


@dataclass(frozen=True)
class ScatterParams:
    """Linear programs to solve, size of the reference set and how many of it are elite."""

    programs: int = 300
    reference: int = 10
    elite: int = 5
    candidates: int = 8
    most_combinations: int = 5


@dataclass(frozen=True, eq=False)
class _Point:
    vector: np.ndarray
    cost: float


def scatter_search(
    search: Search, params: ScatterParams, rng: np.random.Generator, groups: np.ndarray | None = None
) -> None:
    """Search until the programs are used up; the search keeps the best.

    Parameters
    ----------
    groups : (p,) array, optional
        Group of each sensitive cell; without it each cell is its own.

    Raises
    ------
    TimeUp
    """
    size = search.problem.size
    member = np.arange(size) if groups is None else groups
    length = int(member.max(initial=-1)) + 1
    if length == 0:
        return
    budget = search.programs + params.programs
    requests = 0

    def ask(vector: np.ndarray) -> _Point:
        nonlocal requests
        requests += 1
        return _Point(vector, search.ask(vector[member]).cost)

    points: list[_Point] = []
    if search.best is not None and groups is None:
        points.append(_Point(search.best.directions, search.best.cost))
    points = _diversify(points, params, length, rng, ask)
    while search.programs < budget and requests < 4 * params.programs:
        joined = False
        for vector in _combinations(points, params, rng):
            if search.programs >= budget:
                return
            joined |= _join(points, ask(vector))
        if not joined:
            points = _diversify(points[: params.elite], params, length, rng, ask)


def _diversify(points, params, length, rng, ask) -> list[_Point]:
    points = list(points)
    while len(points) < params.reference:
        drawn = rng.integers(0, 2, (params.candidates, length), dtype=np.int8)
        drawn[0] = 1 - points[-1].vector if points else drawn[0]
        near = [min((np.sum(v != p.vector) for p in points), default=0) for v in drawn]
        points.append(ask(drawn[int(np.argmax(near))]))
    return sorted(points, key=lambda p: p.cost)


def _combinations(points: list[_Point], params: ScatterParams, rng: np.random.Generator) -> list[np.ndarray]:
    vectors = []
    last = 2 * len(points) - 3  # rank sum of the worst pair
    for one in range(len(points)):
        for two in range(one + 1, len(points)):
            share = 1 - (one + two - 1) / max(1, last - 1)
            count = max(1, round(1 + share * (params.most_combinations - 1)))
            better, worse = points[one].vector, points[two].vector
            for weight in rng.uniform(-0.25, 0.75, count):
                chance = better + weight * (worse.astype(float) - better)
                vectors.append((rng.random(len(better)) < chance).astype(np.int8))
    return vectors


def _join(points: list[_Point], point: _Point) -> bool:
    """Take a point into the reference set, sorted by cost, where it is good and different enough."""
    if point.cost >= points[-1].cost or any(np.array_equal(point.vector, p.vector) for p in points):
        return False
    points[-1] = point
    points.sort(key=lambda p: p.cost)
    return True
