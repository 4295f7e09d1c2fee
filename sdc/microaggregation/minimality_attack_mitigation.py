"""What a search sees of records whose clusters must not tell hidden values.

Whoever knows the clustered variables of everybody and the method can ask why clusters were not changed where
a change gains: because one of the new ones would have lacked values. That gives hidden values away, as every
criterion does that is met at least cost (the minimality attack of Wong, Fu, Wang and Pei 2007). So a search
sees blurred coordinates, by which many a change that gains is passed over, and its clusters must be diverse
in decoys, too: the hidden variables dealt out anew, which hinder as many changes as the true ones.

Mergers tell most: of two clusters that became one, one lacked values, and where each merged with its nearest
one this was that whose nearest the other is. So a cluster first merges with one drawn from its nearest and
those whose nearest it is. What still lacks values merges with the nearest that brings one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.clusters.diversity import Diversity, diversify
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.distinct_rows import deduplicate
from microguard.sdc.microaggregation.local_search.neighbours import nearest_neighbours
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import typical_cost

#: Standard deviation of the blur, in that of the coordinates within the clusters.
BLUR = 0.5
#: Clusters whose means are near, of which the cheapest to merge with counts as the nearest, and trees that
#: they are looked up in: in 10 dimensions 9 of 10 are the nearest, in a quarter of the time of exact search.
NEAR, TREES = 6, 4
#: A uniform number between -1/2 and 1/2 times this has variance 1.
TO_VARIANCE_1 = 12**0.5
#: What a stream of random numbers is for.
_BLURRING, _MERGING = 0, 1


def concealed(records: Records, labels: np.ndarray, seed: int) -> Records:
    """The records as a search may see them; the same where no hidden variable is asked for.

    Parameters
    ----------
    labels : (n,) int array
        Clusters 0 to m - 1 that owe nothing to hidden values: what a record costs in them scales its blur.
    seed : int
        Secret: whoever guesses it can undo what is done here.

    Returns
    -------
    Records
        Of the same order, weights and variables. Records of one content stay so.
    """
    diversity = records.diversity
    if diversity is None or len(diversity.hidden) == 0:
        return records
    rng = np.random.default_rng([seed, len(records), _BLURRING])
    n, p = records.values.shape
    deviation = np.sqrt(typical_cost(records.values, np.ones(n), labels) / p)
    blur = BLUR * deviation * TO_VARIANCE_1 * (rng.random((n, p)) - 0.5)
    first, contents = np.unique(deduplicate(records.values), return_index=True, return_inverse=True)[1:]
    values = np.ascontiguousarray(records.values + blur[first][contents.ravel()])
    return replace(records, values=values, axis=None, diversity=_with_decoys(diversity, rng))


def merged(seen: Records, labels: np.ndarray, seed: int) -> np.ndarray:
    """Clusters merged until each is diverse.

    Parameters
    ----------
    seen : Records
        As `concealed` gives them; their diversity is asked for.
    labels : (n,) int array
        Clusters 0 to m - 1.
    seed : int
        Secret, as there.

    Returns
    -------
    (n,) int64 array
        Labels of the merged clusters, from 0.
    """
    diversity = seen.diversity
    assert diversity is not None
    if len(diversity.hidden):
        labels = _merged_evenly(seen, labels.astype(np.int64), seed)
    return diversify(seen.values, labels, diversity)


def _merged_evenly(seen: Records, labels: np.ndarray, seed: int) -> np.ndarray:
    """Clusters that lack values merged once, by a draw that tells little of which of two lacked them."""
    assert seen.diversity is not None
    rng = np.random.default_rng([seed, len(seen), _MERGING])
    lacking = rng.permutation(np.flatnonzero(seen.diversity.lacking(labels)))
    if len(lacking) == 0:
        return labels
    partners = _partners(lacking, rng.random(len(lacking)), *_near(seen.values, labels, seed))
    leaders = np.minimum(np.arange(len(partners)), partners)
    numbers = np.cumsum(leaders == np.arange(len(partners))) - 1
    return numbers[leaders[labels]]


def _near(values: np.ndarray, labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each cluster the one that costs least to merge with, and those of which it is that one.

    Returns
    -------
    first : (m + 1,) int64 array
        Where those of each cluster begin.
    near : int64 array
    """
    sizes = np.bincount(labels)
    m = len(sizes)
    means = np.column_stack([np.bincount(labels, column, m) for column in values.T]) / sizes[:, None]
    others = nearest_neighbours(means, NEAR, trees=TREES, seed=seed).astype(np.int64)
    squares = np.square(means[others] - means[:, None]).sum(axis=2)
    cost = squares * sizes[others] / (sizes[others] + sizes[:, None])
    cheapest = others[np.arange(m), np.argmin(cost, axis=1)]
    one, other = np.minimum(np.arange(m), cheapest), np.maximum(np.arange(m), cheapest)
    one, other = np.divmod(np.unique(one * m + other), m)  # each pair once
    origin, near = np.concatenate([one, other]), np.concatenate([other, one])
    by_origin = np.argsort(origin, kind="stable")
    return np.searchsorted(origin[by_origin], np.arange(m + 1)), near[by_origin]


@kernel
def _partners(order, draws, first, near):
    """Whom each cluster merges with, (m,), itself where it does not: in this order, each at most once."""
    partners = np.arange(len(first) - 1)
    for t in range(len(order)):
        a = order[t]
        free = 0
        for b in near[first[a] : first[a + 1]]:
            free += int(partners[b] == b)
        if partners[a] != a or free == 0:
            continue
        drawn = int(draws[t] * free)
        for b in near[first[a] : first[a + 1]]:
            drawn -= int(partners[b] == b)
            if drawn < 0:
                partners[a], partners[b] = b, a
                break
    return partners


def _with_decoys(diversity: Diversity, rng: np.random.Generator) -> Diversity:
    """The same asked of decoys, too: the hidden variables, dealt out anew together."""
    hidden = diversity.hidden
    decoys = diversity.codes[rng.permutation(len(diversity))][:, hidden]
    return Diversity(
        np.ascontiguousarray(np.hstack([diversity.codes, decoys])),
        np.concatenate([diversity.least, diversity.least[hidden]]),
        np.concatenate([diversity.known, np.zeros(len(hidden), dtype=bool)]),
    )
