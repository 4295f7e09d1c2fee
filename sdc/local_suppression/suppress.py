"""Suppress single values until a file is k-anonymous: first greedily, then by integer programs over blocks of
combinations.

De Waal and Willenborg 1998; Hundepool et al. 2012, section 3.4.2. k-anonymity by suppression is NP-hard
(Meyerson and Williams 2004). Only counts of key combinations are used: the caller draws at random which
records of a combination are suppressed, independently of their other values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.errors import InvalidParameter, SdcError
from microguard.sdc.local_suppression.greedy import ANY_VALUE, CATEGORY, Entries, greedy
from microguard.sdc.local_suppression.patterns import Keys, sums_by
from microguard.sdc.local_suppression.program import improved
from microguard.sdc.solver.program import Limits


class _Work(NamedTuple):
    """Work limits: maximum number of combinations for integer programs, combinations at risk per block,
    passes over all blocks, and branch-and-bound nodes per block.
    """

    keys: int
    block: int
    passes: int
    nodes: int


_WORK: dict[Effort, _Work] = {
    "fast": _Work(0, 0, 0, 0),
    "standard": _Work(20_000, 800, 3, 20),
    "thorough": _Work(60_000, 1_500, 6, 100),
    "exact": _Work(60_000, 1_500, 6, 100),
}
#: Maximum number of combinations for which one program of the whole file is solved to proved optimality.
WHOLE = {"fast": 0, "standard": 60, "thorough": 150, "exact": 400}
_WHOLE_NODES = {"fast": 0, "standard": 1_000, "thorough": 10_000, "exact": 100_000}
#: Maximum number of columns of a program. A block with more columns keeps its greedy solution.
MOST_COLUMNS = 400_000


@dataclass(frozen=True)
class LocalSuppression:
    """Result: the published patterns of the records of each combination.

    Attributes
    ----------
    key, pattern, count : (e,) int64 arrays
        `count` records of combination `key` are published with the variables of the bit mask missing.
    cost, lower_bound : float
        Sum of the weights of all suppressed values; no k-anonymous suppression costs less than the bound.
    optimal : bool
    algorithm : str
    programs, nodes : int
        Integer programs solved, and nodes of branch and bound.
    classes : int
        Distinct combinations that are published.
    """

    key: np.ndarray
    pattern: np.ndarray
    count: np.ndarray
    cost: float
    lower_bound: float
    optimal: bool
    algorithm: str
    programs: int
    nodes: int
    classes: int


def suppress(
    codes: np.ndarray,
    counts: np.ndarray,
    k: int,
    *,
    weights: np.ndarray | None = None,
    missing: str = CATEGORY,
    effort: Effort = "standard",
) -> LocalSuppression:
    """Suppress values with the least sum of weights until each published combination has at least k records.

    Parameters
    ----------
    codes : (n, m) int array
        Distinct combinations in a canonical order; -1 for a missing value.
    counts : (n,) int array
        Number of records of each combination.
    k : int
    weights : (m,) float array, optional
        Cost of suppressing one value of each variable, above 0; by default 1.
    missing : str
        ``"category"``: a missing value is a separate category. ``"any_value"``: a missing value stands for
        any value, and the values that a record shows must be shown by k records.
    effort : str

    Raises
    ------
    InvalidParameter
        If there are fewer than k records, or an argument is not as described.
    """
    codes, counts = np.ascontiguousarray(codes, np.int64), np.asarray(counts, np.int64)
    weights = np.ones(codes.shape[1]) if weights is None else np.asarray(weights, float)
    if missing not in (CATEGORY, ANY_VALUE):
        raise InvalidParameter(
            f"missing: expected {CATEGORY} or {ANY_VALUE}, found {missing!r}", variable="missing"
        )
    if len(weights) != codes.shape[1] or not (weights > 0).all():
        raise InvalidParameter("weights: expected a number above 0 for each variable", variable="weights")
    if (counts < 1).any() or counts.sum() < k:
        raise InvalidParameter(
            (f"counts: expected at least k = {k} records in total, found fewer"), variable="counts"
        )
    keys = Keys(codes, counts, weights)
    entries, bound = greedy(keys, k, missing), lower_bound(keys, k, missing)
    work, name, solved, nodes, optimal = _WORK[effort], "greedy", 0, 0, False
    if len(counts) <= WHOLE[effort]:
        block, limits = np.arange(len(counts)), Limits(nodes=_WHOLE_NODES[effort])
        found = improved(keys, k, missing, block, entries, limits, MOST_COLUMNS)
        if found is not None:
            name, solved, nodes = "integer program", 1, found.nodes
            entries = found.entries if found.cost < entries.cost(keys) else entries
            if keys.smallest_untried is None:
                bound, optimal = max(bound, found.bound), found.optimal
    elif work.passes and len(counts) <= work.keys:
        entries, solved, nodes = _by_blocks(keys, k, missing, entries, work)
        name = "integer programs by block"
    cost = entries.cost(keys)
    classes = _verify(keys, entries, k, missing)
    optimal = optimal or cost <= bound
    return LocalSuppression(
        key=entries.key,
        pattern=entries.pattern,
        count=entries.count,
        cost=cost,
        lower_bound=min(bound, cost),
        optimal=optimal,
        algorithm=name,
        programs=solved,
        nodes=nodes,
        classes=classes,
    )


def lower_bound(keys: Keys, k: int, missing: str) -> float:
    """Return a lower bound on the cost of every k-anonymous suppression.

    A record at risk costs at least the cheapest pattern whose group has k records. If a missing value is a
    separate category, a group with fewer than k records at risk needs donors: if every possible donor has all
    values that the pattern hides, each record at risk is charged its share of the cost of the donors.
    """
    risk = np.flatnonzero(keys.counts < k)
    least = keys.untried(risk)
    for pattern, price in zip(keys.patterns.tolist(), keys.price(keys.patterns), strict=True):
        fits = keys.fits(pattern)
        mine = fits[risk]
        if not mine.any():
            continue
        labels = keys.labels(pattern)
        groups, place = np.unique(labels[risk[mine]], return_inverse=True)
        at_risk = np.bincount(place, keys.counts[risk[mine]], len(groups))
        records = sums_by(groups, labels[fits], keys.counts[fits])
        cost = keys.price(pattern & ~keys.missing[risk[mine]])
        if missing == CATEGORY:
            partly = np.flatnonzero(fits & (keys.counts >= k) & ((keys.missing & pattern) != 0))
            free = sums_by(groups, labels[partly], np.ones(len(partly), np.int64)) == 0
            cost = cost + (price * np.maximum(k / at_risk - 1, 0) * free)[place]
        cost = np.where((records >= k)[place], cost, np.inf)
        least[mine] = np.minimum(least[mine], cost)
    total = float(least @ keys.counts[risk])
    whole = bool((keys.weights == np.rint(keys.weights)).all())
    return float(np.ceil(total - 1e-6)) if whole and np.isfinite(total) else total


def _by_blocks(keys: Keys, k: int, missing: str, entries: Entries, work: _Work) -> tuple[Entries, int, int]:
    """Improve the entries block by block; each pass sorts the combinations at risk by a different order of
    variables.
    """
    risk, solved, nodes = np.flatnonzero(keys.counts < k), 0, 0
    m = keys.codes.shape[1]
    for turn in range(work.passes):
        # the first variable has the most influence on the blocks
        order = [(turn * 3 + j) % m for j in range(m)]
        ranked = risk[np.lexsort(keys.codes[risk][:, order[::-1]].T)]
        for first in range(0, len(ranked), work.block):
            chosen = ranked[first : first + work.block]
            block = np.union1d(chosen, _donors(keys, k, chosen) if missing == CATEGORY else chosen)
            inside = np.isin(entries.key, block)
            before = entries.where(inside)
            reach = np.zeros(len(keys.counts))
            np.maximum.at(reach, before.key, keys.price(before.pattern & ~keys.missing[before.key]))
            safe = keys.counts >= k
            reach[safe] = np.maximum(reach[safe], reach[block].max(initial=0))
            limits = Limits(nodes=work.nodes)
            found = improved(keys, k, missing, block, entries, limits, MOST_COLUMNS, reach)
            if found is None:
                continue
            solved, nodes = solved + 1, nodes + found.nodes
            if found.cost < before.cost(keys) - 1e-9:
                entries = Entries.joined(entries.where(~inside), found.entries)
    return entries, solved, nodes


def _donors(keys: Keys, k: int, chosen: np.ndarray) -> np.ndarray:
    """Return for each combination and variable the largest safe combination that differs in this variable
    only.
    """
    safe = np.flatnonzero(keys.counts > k)
    safe = safe[np.lexsort((safe, -keys.counts[safe]))]
    found = [np.empty(0, np.int64)]
    for j in range(keys.codes.shape[1]):
        labels = keys.labels(1 << j)
        values, first = np.unique(labels[safe], return_index=True)
        found.append(safe[first[np.isin(values, labels[chosen])]])
    return np.unique(np.concatenate(found))


def _verify(keys: Keys, entries: Entries, k: int, missing: str) -> int:
    """Check the result by an independent count; return the number of distinct published combinations.

    Raises
    ------
    SdcError
        If records are lost or a combination is not k-anonymous; this would be a defect of the method.
    """
    records = np.bincount(entries.key, entries.count, len(keys.counts))
    shown = keys.codes[entries.key].copy()
    bits = entries.pattern[:, None] >> np.arange(shown.shape[1]) & 1
    shown[bits == 1] = -1
    published, place = np.unique(shown, axis=0, return_inverse=True)
    counts = np.bincount(place.ravel(), entries.count, len(published))
    fewest = int(counts.min())
    if missing == ANY_VALUE and fewest < k:
        shows, small = published >= 0, counts < k
        fewest = k
        for visible in np.unique(shows[small], axis=0):
            able = shows[:, visible].all(axis=1)
            one = np.unique(published[able][:, visible], axis=0, return_inverse=True)[1].ravel()
            alike = np.bincount(one, counts[able])
            judged = (small & (shows == visible).all(axis=1))[able]
            fewest = min(fewest, int(alike[one[judged]].min()))
    if (records != keys.counts).any() or fewest < k:
        raise SdcError(
            "local suppression returned a result that is not k-anonymous; this is a fault of microguard, "
            "please report it"
        )
    return len(published)
