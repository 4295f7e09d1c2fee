"""Protect one block: cluster its records, and put each cluster's representatives in their place.

Its records become points in units that all blocks share; the method clusters them; each cluster's
representatives are rounded to the type of their column; the loss is measured on the values as they will be
written. A block that fails says so in a status without values: nothing that a record holds may travel
through Spark's exceptions.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.measures.classes import CLOSE
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import BLOCK
from microguard.pipelines.records.coordinates import numbers
from microguard.pipelines.records.finished_blocks import FinishedBlock
from microguard.pipelines.records.points import Points
from microguard.sdc.clusters.codes import category_codes, close_codes, spelled_codes
from microguard.sdc.clusters.diversity import Diversity, least_distinct
from microguard.sdc.clusters.dominance import dominated
from microguard.sdc.clusters.representatives import represent
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, SdcError
from microguard.sdc.measures.moments import Moments
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.clustering import OPTIMALITY_TOLERANCE
from microguard.sdc.microaggregation.global_bound.bound import WORK, file_bound
from microguard.sdc.microaggregation.sse import sum_of_squares

#: Beside a record where representatives are chosen together: its cluster, and with the position of a nominal
#: variable its value before.
CLUSTER, BEFORE = "__cluster", "__before"
#: More clusters than any block has: a cluster of the file is its block times this, and its label.
CLUSTERS_OF_A_BLOCK = 1 << 31

#: What a block is protected by when the method asked for fails on it.
FALLBACK = "mdav"

#: Largest block whose records are all compared for the bound of the whole file, in records and in differences
#: of coordinates (some seconds).
BOUND_RECORDS, BOUND_WORK = 20_000, 2 * 10**10


def protect_block(
    block: pa.Table, clustering: BlockConfig
) -> tuple[pa.Table, dict[str, Any], Moments | None]:
    """One block: its protected records, its report, and its moments (None where it has no numbers).

    A block that cannot be protected comes back without records and with a status: "too few" if it has fewer
    units, "too few values" if it has fewer values of a sensitive variable than every cluster needs.
    """
    start = time.monotonic()
    report: dict[str, Any] = {"block": block[BLOCK][0].as_py(), "records": len(block), "status": "done"}
    try:
        points = Points.of(block, clustering.coordinates, clustering.nominal, _weights(block, clustering))
        if _units(block, clustering) < clustering.k:
            return block.schema.empty_table(), report | {"status": "too few"}, None
        try:
            diversity = _diversity(block, clustering)
        except ImpossibleProtection:
            return block.schema.empty_table(), report | {"status": "too few values"}, None
        solved, certificate = _labels(points, diversity, report["block"], clustering)
        labels = _spread(block, points, solved, clustering)
        if labels.max() < solved.max():
            certificate |= _merged(certificate, points, labels)
        protected = _replaced(block, points, labels, clustering)
        if clustering.jointly:
            protected = _with_clusters(protected, block, labels, clustering)
        moments = _moments(block, protected, clustering)
        report |= certificate | _clusters(block, labels, clustering)
        report["file_bound"] = _file_bound(block, points, clustering, certificate["lower_bound"])
        if moments is not None:
            report |= {"sse": float(moments.sse.sum())}
    except SdcError as error:  # its messages never hold a value
        unsupported = isinstance(error, InvalidParameter)
        report |= {
            "status": "unsupported" if unsupported else "failed",
            "why": f"{type(error).__name__}: {error}",
        }
    except Exception as error:  # the text may hold a value; its type does not
        report |= {"status": "failed", "why": type(error).__name__}
    report["seconds"] = time.monotonic() - start
    if report["status"] != "done":
        return block.schema.empty_table(), report, None
    return protected, report, moments


def _labels(
    points: Points, diversity: Diversity | None, block: int, clustering: BlockConfig
) -> tuple[np.ndarray, dict[str, Any]]:
    """Cluster of each record and what was proved, from the folder of finished blocks where it is there."""
    if points.alike:
        certificate = {
            "algorithm": "none",
            "stopped_by": "proof",
            "objective": 0.0,
            "lower_bound": 0.0,
            "gap": 0.0,
            "optimal": True,
        }
        return np.zeros(len(points), np.int64), certificate
    seed = block_seed(clustering.seed, block)
    finished = FinishedBlock.of(points, diversity, seed, block, clustering)
    resumed = finished.read() if finished is not None else None
    if resumed is not None:
        return resumed
    labels, certificate = _solve(points, diversity, seed, clustering)
    if finished is not None:
        finished.write(labels, certificate)
    return labels, certificate


def _solve(
    points: Points, diversity: Diversity | None, seed: int, clustering: BlockConfig
) -> tuple[np.ndarray, dict[str, Any]]:
    options: dict[str, Any] = {
        "standardise": False,
        "nominal": points.nominal if points.nominal.any() else None,
        "variable_weights": points.weights,
        "record_weights": points.record_weights,
        "diversity": diversity,
        "seed": seed,
        "share_of_run": clustering.share(len(points)),
    }
    fallback: dict[str, Any] = {}
    try:
        clusters = microaggregate(
            points.values,
            clustering.k,
            effort=clustering.effort,
            algorithm=clustering.algorithm,
            parameters=clustering.parameters,
            **options,
        )
    except InvalidParameter:
        raise  # what was asked for is impossible for every block
    except Exception as error:
        fallback = {"fallback": FALLBACK, "why": type(error).__name__}
        clusters = microaggregate(points.values, clustering.k, effort="fast", algorithm=FALLBACK, **options)
    return clusters.labels, fallback | {
        "algorithm": clusters.algorithm,
        "stopped_by": clusters.stopped_by,
        "objective": clusters.sse,
        "lower_bound": clusters.lower_bound,
        "gap": clusters.gap,
        "optimal": clusters.optimal,
        "work": dict(clusters.work),
        "software": in_words(deciding_versions()),
    }


def block_seed(run: int, block: int) -> int:
    """Seed of a block: a function of the run's seed and the block alone."""
    return int.from_bytes(hashlib.blake2b(f"{run}/{block}".encode(), digest_size=7).digest(), "big")


def _diversity(block: pa.Table, clustering: BlockConfig) -> Diversity | None:
    """What clusters hold beside k records: k units, and enough values of every sensitive variable."""
    least = {} if clustering.counted is None else {clustering.counted: clustering.k}
    if clustering.min_diversity > 1:
        for name in clustering.sensitive:
            least[name] = max(clustering.min_diversity, least.get(name, 1))
    if not least:
        return None
    codes = {name: _sensitive_codes(block, name, clustering) for name in least}
    hidden = clustering.sensitive if clustering.min_diversity > 1 else ()
    required = [least[name] for name in least for _ in codes[name].T]
    known = [name not in hidden for name in least for _ in codes[name].T]
    return Diversity.of(np.concatenate([*codes.values()], axis=1), required, known)


def _sensitive_codes(block: pa.Table, name: str, clustering: BlockConfig) -> np.ndarray:
    """(n, 1 or 2) codes of which each column must have enough: of close numbers they are equal in one."""
    apart = clustering.close.get(name, 0.0)
    if apart > 0.0:
        return close_codes(numbers(block[name]), CLOSE, apart)
    codes = category_codes if name == clustering.counted else spelled_codes
    return codes(block[name])[:, np.newaxis]


def _spread(block: pa.Table, points: Points, labels: np.ndarray, clustering: BlockConfig) -> np.ndarray:
    """Clusters merged until nobody makes up too much of one."""
    weighing = clustering.weighing
    return labels if weighing is None else weighing.spread(block, points.spread(), labels)


def _merged(certificate: Mapping[str, Any], points: Points, labels: np.ndarray) -> dict[str, Any]:
    """What holds of clusters that were merged: another objective, under a bound that stands."""
    weights = np.ones(len(points)) if points.record_weights is None else points.record_weights
    objective = sum_of_squares(points.spread(), weights, labels)
    gap = None
    if certificate["lower_bound"] is not None:
        gap = max(0.0, 1.0 - certificate["lower_bound"] / objective) if objective > 0 else 0.0
    return {
        "objective": objective,
        "gap": gap,
        "optimal": gap is not None and gap <= OPTIMALITY_TOLERANCE,
    }


def _weights(block: pa.Table, clustering: BlockConfig) -> np.ndarray | None:
    """What the records weigh, (n,), where they do."""
    weighing = clustering.weighing
    return None if weighing is None or weighing.name is None else weighing.weights(block)


def _units(block: pa.Table, clustering: BlockConfig) -> int:
    """How many of what k counts the block holds."""
    return len(block) if clustering.counted is None else len(block[clustering.counted].unique())


def _replaced(block: pa.Table, points: Points, labels: np.ndarray, clustering: BlockConfig) -> pa.Table:
    """The block with representatives: what is a record's own value is voted on, the rest is a mean."""
    asked, weighing, coordinates = clustering.representative, clustering.weighing, clustering.coordinates
    means = None if weighing is None else weighing.mean_weights(block, labels)
    votes = None if weighing is None else weighing.mode_weights(block, labels)
    steps = None if weighing is None else weighing.steps
    if asked == "medoid":
        return represent(
            block,
            labels,
            numeric=clustering.numeric,
            nominal=clustering.nominal,
            representative=asked,
            points=points.spread(),
            record_weights=votes,
        )
    protected = represent(
        block,
        labels,
        nominal=clustering.nominal,
        orders=coordinates.orders,
        trees=coordinates.trees,
        costs=coordinates.costs,
        record_weights=votes,
    )
    if asked == "median":
        return represent(
            protected, labels, numeric=clustering.numeric, representative=asked, record_weights=votes
        )
    return represent(protected, labels, numeric=clustering.numeric, record_weights=means, steps=steps)


def _with_clusters(
    protected: pa.Table, block: pa.Table, labels: np.ndarray, clustering: BlockConfig
) -> pa.Table:
    """Beside the protected records: their cluster in the file, and their nominal values before."""
    cluster = block[BLOCK][0].as_py() * CLUSTERS_OF_A_BLOCK + labels.astype(np.int64)
    protected = protected.append_column(CLUSTER, pa.array(cluster))
    for place, name in enumerate(clustering.nominal):
        protected = protected.append_column(f"{BEFORE}{place}", block[name])
    return protected


def _moments(before: pa.Table, after: pa.Table, clustering: BlockConfig) -> Moments | None:
    if not clustering.numeric or len(after) == 0:
        return None
    numeric = clustering.coordinates.numeric
    return Moments.of(numeric(before), numeric(after), _weights(before, clustering))


def _clusters(block: pa.Table, labels: np.ndarray, clustering: BlockConfig) -> dict[str, Any]:
    """What is reported of the clusters as they are published: number, dominance, diversity."""
    n, k = clustering.dominance
    counts: dict[str, Any] = {
        "clusters": len(np.unique(labels)),
        "dominated": {name: dominated(numbers(block[name]), labels, n, k) for name in clustering.numeric},
    }
    if clustering.weighing is not None:
        weights = clustering.weighing.weights(block)
        counts["steps"] = {name: float(step) for name, step in clustering.weighing.steps.items()}
        counts["trimmed"] = int(np.count_nonzero(clustering.weighing.mean_weights(block, labels) < weights))
    if clustering.min_diversity > 1:
        counts["diversity"] = {
            name: min(least_distinct(codes, labels) for codes in _sensitive_codes(block, name, clustering).T)
            for name in clustering.sensitive
        }
    return counts


def _file_bound(
    block: pa.Table, points: Points, clustering: BlockConfig, lower_bound: float | None
) -> float | None:
    """What these records cost at least in any clustering of the whole file; None for too large a block.

    None with weights, too: a light neighbour far away costs a heavy record hardly anything. A bound that the
    method proved (`lower_bound`) holds where nothing was cut off.
    """
    if points.record_weights is not None:
        return None
    reach = clustering.plan.reach(block[BLOCK][0].as_py(), block)
    if lower_bound is not None and np.all(np.isinf(reach)):
        return lower_bound
    if not clustering.k <= len(points) <= BOUND_RECORDS or len(points) ** 2 * points.width > BOUND_WORK:
        return None
    return file_bound(points.spread(), clustering.k, reach=reach, work=WORK[clustering.effort])
