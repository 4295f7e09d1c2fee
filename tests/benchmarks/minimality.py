"""The minimality attack (Wong, Fu, Wang and Pei 2007) on clusters that require several hidden values.

The attacker knows the clustered variables of all persons, the clusters, the values in each cluster and the
method, but not the assignment of values to persons. If an improving change of two clusters was not made,
either a new cluster would have lacked values, or the mitigation (a decoy or the noise) prevented it. Gibbs
sampling combines the evidence of all changes for each record. At effort fast, the attacker examines clusters
merged from two or three, and enumerates assignments of values and orders of mergers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numba
import numpy as np
from microguard.pipelines.demo import QUASI_IDENTIFIERS
from microguard.pipelines.synthetic.dataset import generate_persons
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.clusters.diversity import Diversity
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.minimality_attack_mitigation import TO_VARIANCE_1, perturbation_of
from microguard.sdc.microaggregation.sse import typical_cost
from scipy.spatial import cKDTree

from tests.benchmarks.mergers import OVERLOOKED, Mergers, members_of
from tests.benchmarks.table import Table

#: Number of neighbours of each record that the attacker considers for changes.
NEAR = 9
#: Maximum number of splits of a cluster, cheapest first, and size of the largest cluster that is split.
SPLITS, LARGEST_SPLIT = 3, 10
#: Probability that the method does not make an improving and permitted split, because it considers few.
SPLIT_OVERLOOKED = 0.1
#: Number of noise draws for each change, and number of sweeps of the sampler.
DRAWS, SWEEPS, FIRST_SWEEPS = 100, 500, 100
#: Effort, persons, k, diagnoses and seeds of the cases.
CASES = (
    ("standard", 600, 3, 2, 8),
    ("standard", 2_500, 3, 2, 3),
    ("standard", 2_500, 5, 2, 3),
    ("standard", 2_500, 5, 3, 3),
    ("fast", 600, 3, 2, 8),
    ("fast", 2_500, 3, 2, 3),
    ("fast", 2_500, 3, 3, 3),
)
QUICK = (("standard", 600, 3, 2, 1), ("fast", 600, 3, 2, 1))
#: Number of evaluated claims: those with the largest increase of odds compared with the values of the
#: cluster.
CLAIMS = 50


@dataclass(frozen=True)
class AttackResult:
    """The result of the attack.

    Attributes
    ----------
    loss : float
        100 SSE/SST of the clusters.
    changes : int
        Number of improving changes that were not made; at effort fast, number of merged clusters.
    right, expected : float
        Share of correct claims, and the mean share of the claimed value in its cluster, which is the expected
        share of correct claims without the attack.
    """

    loss: float
    changes: int
    right: float
    expected: float

    @property
    def odds(self) -> float:
        """Return the ratio of the odds of correct claims with and without the attack; infinite if all are
        correct.
        """
        right, expected = (p / (1 - p) if p < 1 else np.inf for p in (self.right, self.expected))
        return right / expected


@dataclass(frozen=True)
class _Changes:
    """Improving changes: both clusters after each change, (c, w) positions padded with -1, and the
    probability that a permitted change is not made, (c,).
    """

    first: np.ndarray
    second: np.ndarray
    overlooked: np.ndarray


def run(quick: bool = False) -> Iterator[Table]:
    """Attack demo data by effort, k and diversity, with and without mitigation."""
    attacks = {"standard": attacked, "mergers": attacked_mergers}
    rows: list[tuple[object, ...]] = []
    for effort, n, k, least, seeds in QUICK if quick else CASES:
        for concealed in (False, True):
            found = [attacks[effort](n, k, least, concealed, seed) for seed in range(seeds)]
            rows.append(
                (
                    effort,
                    n,
                    k,
                    least,
                    "concealed" if concealed else "as before",
                    max(each.loss for each in found),
                    max(each.changes for each in found),
                    100 * max(each.right for each in found),
                    100 * float(np.mean([each.expected for each in found])),
                    max(each.odds for each in found),
                )
            )
    columns = (
        "effort",
        "persons",
        "k",
        "diagnoses",
        "search",
        "loss, %",
        "changes",
        "right, %",
        "by class, %",
        "odds, times",
    )
    yield Table(
        f"The minimality attack, 10 variables, {CLAIMS} claims, worst of 3 seeds, of 8 for 600 persons",
        columns,
        rows,
        "Changes: those that gain and were passed over; at effort fast the clusters merged of two or three. "
        "By class: the mean share of the value claimed among those of its cluster. Odds: of being right, to "
        "what they are by class.",
    )


def attacked(n: int, k: int, least: int, concealed: bool, seed: int) -> AttackResult:
    """Protect demo persons with several diagnoses in each cluster, and attack the result."""
    values, hidden = _persons(n)
    diversity = Diversity.of(hidden[:, np.newaxis], least, known=not concealed)
    found = microaggregate(values, k, standardise=False, diversity=diversity, seed=seed)
    start = microaggregate(values, k, standardise=False, effort="fast")
    blur = _blur(values, start.labels) if concealed else 0.0
    changes = _changes(values, found.labels, k, blur)
    posterior, share = _told(changes, found.labels, hidden, least, decoys=concealed)
    right, expected = _boldest(posterior, share, hidden)
    return AttackResult(100 * found.information_loss, len(changes.overlooked), right, expected)


def attacked_mergers(n: int, k: int, least: int, concealed: bool, seed: int) -> AttackResult:
    """Protect demo persons by MDAV, whose clusters merge and are not searched further; attack the mergers."""
    values, hidden = _persons(n)
    mdav = partial(microaggregate, values, k, standardise=False, algorithm="mdav")
    found = mdav(diversity=Diversity.of(hidden[:, np.newaxis], least, known=not concealed), seed=seed)
    mergers = Mergers(values, mdav().labels, hidden, least, concealed)
    share = _shares(found.labels, hidden)
    posterior, number = share.copy(), 0
    for members in members_of(found.labels):
        told = mergers.told(members)
        if told is not None:
            posterior[members] = told
            number += 1
    right, expected = _boldest(posterior, share, hidden)
    return AttackResult(100 * found.information_loss, number, right, expected)


def _persons(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised values (n, p) of demo persons, and their diagnoses (n,)."""
    persons = next(generate_persons(n, 2026))
    numbers = [persons[name].to_numpy() for name in QUASI_IDENTIFIERS["numeric"]]
    values = np.nan_to_num(np.column_stack(numbers).astype(float))
    values = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    return values, category_codes(persons["diagnosis"]).astype(np.int64)


def _blur(values: np.ndarray, labels: np.ndarray) -> float:
    """Return the standard deviation of the noise, which the attacker can compute."""
    typical = typical_cost(values, np.ones(len(values)), labels)
    return float(perturbation_of(len(values)) * (typical / values.shape[1]) ** 0.5)


def _shares(labels: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return the share of each value in the cluster of each record, (n, v)."""
    shares = np.zeros((len(hidden), int(hidden.max()) + 1))
    for members in members_of(labels):
        shares[members] = np.bincount(hidden[members], minlength=shares.shape[1]) / len(members)
    return shares


def _boldest(posterior: np.ndarray, share: np.ndarray, hidden: np.ndarray) -> tuple[float, float]:
    """Count correct claims among those whose odds increased most, with and without the attack."""

    def odds(probability: np.ndarray) -> np.ndarray:
        return np.log((probability + 1e-3) / (1 - probability + 1e-3))

    rose = np.where(share > 0, odds(posterior) - odds(share), -np.inf)
    record, value = np.unravel_index(np.argsort(-rose, axis=None, kind="stable")[:CLAIMS], rose.shape)
    return float(np.mean(hidden[record] == value)), float(share[record, value].mean())


def _changes(values: np.ndarray, labels: np.ndarray, k: int, blur: float) -> _Changes:
    """Return improving swaps, shifts and splits of neighbouring clusters."""
    members = members_of(labels)
    cost = [_sse(values[one]) for one in members]
    near = cKDTree(values).query(values, NEAR)[1]
    random = np.random.default_rng(1)
    found: list[tuple[np.ndarray, np.ndarray, float]] = []
    seen = set()
    for i in range(len(values)):
        a = labels[i]
        rest = members[a][members[a] != i]
        for b in sorted({labels[j] for j in near[i]} - {a}):
            fresh = [j for j in members[b] if (min(i, j), max(i, j)) not in seen]
            seen |= {(min(i, j), max(i, j)) for j in fresh}
            pairs = [(np.append(rest, j), np.append(members[b][members[b] != j], i)) for j in fresh]
            if len(rest) >= k:
                pairs.append((rest, np.append(members[b], i)))
            for one, two in pairs:
                if _sse(values[one]) + _sse(values[two]) < cost[a] + cost[b] - 1e-9:
                    before = [members[a], members[b]]
                    found.append((one, two, _hidden_by_blur(values, before, [one, two], blur, random)))
    for one in members:
        if 2 * k <= len(one) <= LARGEST_SPLIT:
            splits = [
                (np.array(part), np.setdiff1d(one, part))
                for size in range(k, len(one) - k + 1)
                for part in combinations(one, size)
                if one[0] in part
            ]
            splits.sort(key=lambda split: _sse(values[split[0]]) + _sse(values[split[1]]))
            found += [(*split, SPLIT_OVERLOOKED) for split in splits[:SPLITS]]
    width = max(len(part) for one, two, _ in found for part in (one, two))
    return _Changes(
        _filled([one for one, _, _ in found], width),
        _filled([two for _, two, _ in found], width),
        np.array([overlooked for _, _, overlooked in found]),
    )


def _hidden_by_blur(
    values: np.ndarray,
    before: list[np.ndarray],
    after: list[np.ndarray],
    blur: float,
    random: np.random.Generator,
) -> float:
    """Return the probability that an improving change does not improve with noisy coordinates."""
    if blur == 0.0:
        return OVERLOOKED
    records = np.concatenate(before)
    place = {int(record): position for position, record in enumerate(records)}
    noise = blur * TO_VARIANCE_1 * (random.random((DRAWS, len(records), values.shape[1])) - 0.5)
    blurred = values[records] + noise

    def costs(clusters: list[np.ndarray]) -> np.ndarray:
        chosen = [blurred[:, [place[int(record)] for record in cluster]] for cluster in clusters]
        return sum(np.square(one - one.mean(axis=1, keepdims=True)).sum(axis=(1, 2)) for one in chosen)

    return max(OVERLOOKED, float(np.mean(costs(before) <= costs(after))))


def _sse(points: np.ndarray) -> float:
    return float(np.square(points - points.mean(axis=0)).sum())


def _filled(lists: list[np.ndarray], width: int) -> np.ndarray:
    filled = np.full((len(lists), width), -1)
    for row, one in zip(filled, lists, strict=True):
        row[: len(one)] = one
    return filled


def _told(
    changes: _Changes, labels: np.ndarray, hidden: np.ndarray, least: int, *, decoys: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of each value, (n, v), from the changes and from the cluster alone."""
    n, width = len(hidden), int(hidden.max()) + 1
    start = np.empty((1 + decoys, n), dtype=np.int64)
    random = np.random.default_rng(2)
    for members in members_of(labels):
        start[:, members] = random.permutation(
            hidden[members]
        )  # the sampler starts from decoys with diverse values
    touched: list[list[int]] = [[] for _ in range(n)]
    for number, records in enumerate(np.hstack([changes.first, changes.second])):
        for record in np.unique(records[records >= 0]):
            touched[record].append(number)
    touching = _filled([np.array(each, dtype=int) for each in touched], max(map(len, touched)))
    members = _filled(members_of(labels), np.bincount(labels).max())
    counts = _sampled(
        start,
        labels,
        members,
        changes.first,
        changes.second,
        np.log(changes.overlooked),
        touching,
        np.bincount(hidden, minlength=width) / n,
        least,
    )
    return counts / counts.sum(axis=1, keepdims=True), _shares(labels, hidden)


@numba.njit
def _sampled(values, labels, members, first, second, overlooked, touching, common, least):
    """Sample how often each record has each value: members exchange values, decoys are drawn one by one."""
    np.random.seed(3)
    n, width = len(labels), len(common)
    counts, weights = np.zeros((n, width)), np.empty(width)
    for sweep in range(SWEEPS):
        for i in range(n):
            cluster = members[labels[i]]
            for j in cluster:
                if j <= i or values[0, i] == values[0, j]:
                    continue
                before = _log_likelihood(i, j, values, first, second, overlooked, touching, least)
                values[0, i], values[0, j] = values[0, j], values[0, i]
                after = _log_likelihood(i, j, values, first, second, overlooked, touching, least)
                if np.random.random() >= 1.0 / (1.0 + np.exp(before - after)):
                    values[0, i], values[0, j] = values[0, j], values[0, i]
            for decoy in range(1, len(values)):
                for value in range(width):
                    values[decoy, i] = value
                    weights[value] = 0.0
                    if _diverse(cluster, values[decoy], least):
                        fits = _log_likelihood(i, -1, values, first, second, overlooked, touching, least)
                        weights[value] = common[value] * np.exp(fits)
                drawn, value = np.random.random() * weights.sum(), 0
                while value < width - 1 and drawn >= weights[value]:
                    drawn -= weights[value]
                    value += 1
                values[decoy, i] = value
            if sweep >= FIRST_SWEEPS:
                counts[i, values[0, i]] += 1
    return counts


@numba.njit
def _log_likelihood(i, j, values, first, second, overlooked, touching, least):
    """Return the log-probability that no change of record i or j (-1: none) was made."""
    total = 0.0
    for change in touching[i]:
        if change >= 0 and _allowed(first[change], second[change], values, least):
            total += overlooked[change]
    if j >= 0:
        for change in touching[j]:
            fresh = change >= 0 and not np.any(touching[i] == change)
            if fresh and _allowed(first[change], second[change], values, least):
                total += overlooked[change]
    return total


@numba.njit
def _allowed(one, two, values, least):
    allowed = True
    for line in values:
        allowed = allowed and _diverse(one, line, least) and _diverse(two, line, least)
    return allowed


@numba.njit
def _diverse(records, line, least):
    distinct = 0
    for place in range(len(records)):
        if records[place] < 0:
            break
        fresh = True
        for earlier in records[:place]:
            fresh = fresh and line[earlier] != line[records[place]]
        distinct += fresh
    return distinct >= least
