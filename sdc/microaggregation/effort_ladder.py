"""Local search and proof by effort: each effort does more work than the next lower one.

With the same seed, the information loss of thorough never exceeds that of standard or fast. The loss of
standard can exceed that of fast.

- fast: MDAV and a few sweeps.
- standard: a local search. Small blocks are certified by column generation, which usually proves the optimum.
- thorough: It starts from the best result of fast and standard. Small blocks have the work limits of effort
  exact; larger blocks have a longer local search.

Records with weights or with diversity are never certified.
"""

from __future__ import annotations

from dataclasses import replace

from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.local_search.by_effort import search
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

NAME = "local-search"
#: Maximum size of a block that is certified, in records times k, and the maximum k. A proof takes 0.1 to 0.5
#: seconds.
CERTIFIED, MOST_K = 450, 5


def solve(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    effort: str = "standard",
    share_of_run: float = 1.0,
) -> Clustering:
    """Cluster with effort fast, standard or thorough.

    `share_of_run` is the block's share of the records of a run, which limits the work of effort standard.
    """
    if effort == "fast":
        return search(records, k, deadline=deadline, seed=seed, effort="fast")
    found = _standard(records, k, deadline, seed, share_of_run)
    if effort == "standard" or found.stopped_by != "work":
        return found
    found = _better(found, search(records, k, deadline=deadline, seed=seed, effort="fast"))
    if provable(records, k):
        found = _certified(records, k, found, deadline, seed, quick=False)
        if found.stopped_by != "work":
            return found
    longer = search(records, k, deadline=deadline, seed=seed, effort="thorough", start=found.labels)
    return _better(found, longer)


def provable(records: Records, k: int) -> bool:
    """Return whether the block is small enough to be certified."""
    n = len(records)
    small = 2 * k <= n and n * k <= CERTIFIED and k <= MOST_K
    return small and not records.weighted and records.diversity is None


def _standard(records: Records, k: int, deadline: Deadline, seed: int, share_of_run: float) -> Clustering:
    """Cluster with effort standard; a small block is searched for long only if its optimality is not
    proved.
    """
    if not provable(records, k):
        return search(records, k, deadline=deadline, seed=seed, share_of_run=share_of_run)
    found = search(records, k, deadline=deadline, seed=seed, effort="start", share_of_run=share_of_run)
    if found.stopped_by != "work":
        return found
    found = _certified(records, k, found, deadline, seed, quick=True)
    if found.stopped_by != "work":
        return found
    return _better(found, search(records, k, deadline=deadline, seed=seed, share_of_run=share_of_run))


def _certified(
    records: Records, k: int, found: Clustering, deadline: Deadline, seed: int, *, quick: bool
) -> Clustering:
    """Certify a block, starting from the clustering `found` of the local search."""
    # imported here, so that only runs with small blocks load the certified solver
    from microguard.sdc.microaggregation.certified.certify import Work
    from microguard.sdc.microaggregation.certified.certify import solve as certify

    work = Work.quick(len(records)) if quick else None
    return replace(
        _better(found, certify(records, k, deadline=deadline, seed=seed, work=work, start=found)),
        algorithm=NAME,
    )


def _better(found: Clustering, other: Clustering) -> Clustering:
    """Return the clustering with the smaller SSE (if equal, the second) and the larger of both lower
    bounds.
    """
    better, worse = (found, other) if found.sse < other.sse else (other, found)
    bounds = [each for each in (better, worse) if each.lower_bound is not None]
    if not bounds:
        return better
    proof = max(bounds, key=lambda each: each.lower_bound or 0.0)
    bound = min(better.sse, proof.lower_bound or 0.0)
    return replace(better, lower_bound=bound, bound_kind=proof.bound_kind)
