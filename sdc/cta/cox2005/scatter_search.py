"""Scatter search over directions of cells, or of groups of cells (Cox 2005, section 4; Laguna and Marti
2003).

The paper used proprietary software. Choices made here: A point is a 0/1 vector over cells or groups. Two
reference points are combined to ``better + weight (worse - better)``; fractional entries are rounded at
random. The best pair gives five points, the worst pair one. A point enters the reference set if it is cheaper
than the worst member and differs from all members. If no point enters, the elite half is kept and the rest is
replaced; each new point is the most distant from the set among several random points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.program.search import Search


@dataclass(frozen=True)
class ScatterParams:
    """Parameters: linear programs, size and elite of the reference set, candidates per new point, points from
    the best pair.
    """

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
    """Search until the allowed number of programs was solved; `search` keeps the best solution.

    Parameters
    ----------
    search : Search
    params : ScatterParams
    rng : numpy Generator
    groups : (p,) array, optional
        Group of each sensitive cell; default: each cell is a group.

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

    def evaluate(vector: np.ndarray) -> _Point:
        nonlocal requests
        requests += 1
        return _Point(vector, search.evaluate(vector[member]).cost)

    points: list[_Point] = []
    if search.best is not None and groups is None:
        points.append(_Point(search.best.directions, search.best.cost))
    points = _diversify(points, params, length, rng, evaluate)
    while search.programs < budget and requests < 4 * params.programs:
        joined = False
        for vector in _combinations(points, params, rng):
            if search.programs >= budget:
                return
            joined |= _join(points, evaluate(vector))
        if not joined:
            points = _diversify(points[: params.elite], params, length, rng, evaluate)


def _diversify(points, params, length, rng, evaluate) -> list[_Point]:
    points = list(points)
    while len(points) < params.reference:
        drawn = rng.integers(0, 2, (params.candidates, length), dtype=np.int8)
        drawn[0] = 1 - points[-1].vector if points else drawn[0]
        near = [min((np.sum(v != p.vector) for p in points), default=0) for v in drawn]
        points.append(evaluate(drawn[int(np.argmax(near))]))
    return sorted(points, key=lambda p: p.cost)


def _combinations(points: list[_Point], params: ScatterParams, rng: np.random.Generator) -> list[np.ndarray]:
    vectors = []
    last = 2 * len(points) - 3  # worst rank sum of a pair of solutions
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
    """Insert a point into the reference set (sorted by cost) if it is new and cheap enough. Return whether it
    was inserted.
    """
    if point.cost >= points[-1].cost or any(np.array_equal(point.vector, p.vector) for p in points):
        return False
    points[-1] = point
    points.sort(key=lambda p: p.cost)
    return True
