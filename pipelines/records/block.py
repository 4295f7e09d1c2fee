"""Protection of one block: cluster its records, and replace their values by representatives of the clusters.

Records become points in units that all blocks share, and the method clusters them. Representatives are
rounded to the type of their column, and the loss is measured on the rounded values. A block that fails
reports a status without values, because Spark would pass on the text of an exception.
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
from microguard.sdc.clusters.dominance import dominated, of_one_value
from microguard.sdc.clusters.p_percent import contributions
from microguard.sdc.clusters.published_means import MeanProtection, is_magnitude
from microguard.sdc.clusters.representatives import MEANS, represent
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, SdcError
from microguard.sdc.measures.moments import Moments
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.clustering import OPTIMALITY_TOLERANCE
from microguard.sdc.microaggregation.global_bound.bound import WORK, global_bound
from microguard.sdc.microaggregation.sse import sum_of_squares

#: Columns added to a record if representatives are chosen jointly: its cluster, and, with the position of a
#: nominal variable appended, its original value.
CLUSTER, BEFORE = "__cluster", "__before"
#: Number that exceeds the number of clusters of any block. The number of a cluster in the file is its block
#: number times this number, plus its label.
CLUSTERS_OF_A_BLOCK = 1 << 31

#: Fallback method for a block on which the requested method fails.
FALLBACK = "mdav"

#: Maximum size of a block, in records and in coordinate differences (some seconds), for which all pairs of
#: records are compared for the bound of the whole file.
BOUND_RECORDS, BOUND_WORK = 20_000, 2 * 10**10


def clusterable(block: pa.Table, clustering: BlockConfig) -> bool:
    """Return whether records have enough units and enough distinct sensitive values to form a cluster."""
    try:
        _diversity(block, clustering)
    except ImpossibleProtection:
        return False
    return _units(block, clustering) >= clustering.k


def protect_block(
    block: pa.Table, clustering: BlockConfig, margins: np.ndarray | None = None
) -> tuple[pa.Table, dict[str, Any], Moments | None]:
    """Protect one block; return its protected records, its report, and its moments (None without numbers).

    A block that cannot be protected is returned without records and with a status: "too few" if it has fewer
    units than every cluster needs, "too few values" if it has fewer values of a sensitive variable.

    Parameters
    ----------
    margins : (n,) float array, optional
        Distance within which the block of the plan has no other record, if the given block is a part of it.
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
        labels = _merged_by_share(block, points, solved, clustering)
        if labels.max() < solved.max():
            certificate |= _merged(certificate, points, labels)
        protected = _replaced(block, points, labels, clustering)
        if clustering.jointly:
            protected = _with_clusters(protected, block, labels, clustering)
        moments = _moments(block, protected, clustering)
        report |= certificate | _clusters(block, protected, labels, clustering)
        report["file_bound"] = _global_bound(block, points, clustering, certificate["lower_bound"], margins)
        if moments is not None:
            report |= {"sse": float(moments.sse.sum())}
    except SdcError as error:  # messages of this error never contain a value
        unsupported = isinstance(error, InvalidParameter)
        report |= {
            "status": "unsupported" if unsupported else "failed",
            "why": f"{type(error).__name__}: {error}",
        }
    # only the type is reported, because the text may contain the value of a record
    except Exception as error:
        report |= {"status": "failed", "why": type(error).__name__}
    report["seconds"] = time.monotonic() - start
    if report["status"] != "done":
        return block.schema.empty_table(), report, None
    return protected, report, moments


def _labels(
    points: Points, diversity: Diversity | None, block: int, clustering: BlockConfig
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the cluster of each record and the certificate, from the files of an earlier run if it solved
    the block.
    """
    if points.alike:
        certificate = {
            "algorithm": "none",
            "stopped_by": "proof",
            "objective": 0.0,
            "lower_bound": 0.0,
            "bound_kind": "no loss",
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
    parameters = clustering.parameters
    try:
        clusters = microaggregate(
            points.values if parameters is None else points.frame,
            clustering.k,
            effort=clustering.effort,
            algorithm=clustering.algorithm,
            parameters=None if parameters is None else parameters.among(points.numeric_names),
            **options,
        )
    except InvalidParameter:
        raise  # the requested method is impossible for every block, so the error is raised
    except Exception as error:
        fallback = {"fallback": FALLBACK, "why": type(error).__name__}
        clusters = microaggregate(points.values, clustering.k, effort="fast", algorithm=FALLBACK, **options)
    return clusters.labels, fallback | {
        "algorithm": clusters.algorithm,
        "stopped_by": clusters.stopped_by,
        "objective": clusters.sse,
        "lower_bound": clusters.lower_bound,
        "bound_kind": clusters.bound_kind,
        "gap": clusters.gap,
        "optimal": clusters.optimal,
        "work": dict(clusters.work),
        "sse_by_heuristic": dict(clusters.sse_by_heuristic),
        "software": in_words(deciding_versions()),
    }


def block_seed(run: int, block: int) -> int:
    """Derive the seed of a block from the run's seed and the block number."""
    return int.from_bytes(hashlib.blake2b(f"{run}/{block}".encode(), digest_size=7).digest(), "big")


def _diversity(block: pa.Table, clustering: BlockConfig) -> Diversity | None:
    """Return the requirements of each cluster in addition to k records: k units, and enough distinct
    sensitive values.
    """
    least = {} if clustering.counted is None else {clustering.counted: clustering.k}
    diverse = clustering.min_diversity > 1 and not _withheld(block, clustering)
    if diverse:
        for name in clustering.sensitive:
            least[name] = max(clustering.min_diversity, least.get(name, 1))
    if not least:
        return None
    codes = {name: _sensitive_codes(block, name, clustering) for name in least}
    hidden = clustering.sensitive if diverse else ()
    required = [least[name] for name in least for _ in codes[name].T]
    known = [name not in hidden for name in least for _ in codes[name].T]
    return Diversity.of(np.concatenate([*codes.values()], axis=1), required, known)


def _withheld(block: pa.Table, clustering: BlockConfig) -> bool:
    """Return whether the sensitive values of the block are withheld, in which case all of them are
    missing.
    """
    return clustering.withholds and all(block[name].null_count == len(block) for name in clustering.sensitive)


def _sensitive_codes(block: pa.Table, name: str, clustering: BlockConfig) -> np.ndarray:
    """Return codes (n, 1 or 2) of a sensitive variable, or of the units that k counts."""
    if name == clustering.counted and not clustering.close.get(name):
        return category_codes(block[name])[:, np.newaxis]
    return sensitive_codes(block[name], clustering.close.get(name, 0.0))


def sensitive_codes(values: pa.ChunkedArray, apart: float) -> np.ndarray:
    """Return codes (n, 1 or 2) of sensitive values; two close numbers have the same code in at least one
    column.
    """
    if apart > 0.0:
        return close_codes(numbers(values), CLOSE, apart)
    return spelled_codes(values)[:, np.newaxis]


def _merged_by_share(
    block: pa.Table, points: Points, labels: np.ndarray, clustering: BlockConfig
) -> np.ndarray:
    """Merge clusters until no unit has too large a share of any cluster."""
    sampling_weights = clustering.sampling_weights
    return labels if sampling_weights is None else sampling_weights.merge(block, points.expand(), labels)


def _merged(certificate: Mapping[str, Any], points: Points, labels: np.ndarray) -> dict[str, Any]:
    """Return the certificate of merged clusters: a new objective with the same lower bound."""
    weights = np.ones(len(points)) if points.record_weights is None else points.record_weights
    objective = sum_of_squares(points.expand(), weights, labels)
    gap = None
    if certificate["lower_bound"] is not None:
        gap = max(0.0, 1.0 - certificate["lower_bound"] / objective) if objective > 0 else 0.0
    return {
        "objective": objective,
        "gap": gap,
        "optimal": gap is not None and gap <= OPTIMALITY_TOLERANCE,
    }


def _weights(block: pa.Table, clustering: BlockConfig) -> np.ndarray | None:
    """Return the weights of the records, (n,); None without weights."""
    sampling_weights = clustering.sampling_weights
    return (
        None if sampling_weights is None or sampling_weights.name is None else sampling_weights.weights(block)
    )


def _units(block: pa.Table, clustering: BlockConfig) -> int:
    """Count the distinct units of a block in the way k counts them (records, units or households)."""
    return len(block) if clustering.counted is None else len(block[clustering.counted].unique())


def _replaced(block: pa.Table, points: Points, labels: np.ndarray, clustering: BlockConfig) -> pa.Table:
    """Replace the values of each cluster by its representatives."""
    asked, sampling_weights, coordinates = (
        clustering.representative,
        clustering.sampling_weights,
        clustering.coordinates,
    )
    means = None if sampling_weights is None else sampling_weights.mean_weights(block, labels)
    votes = None if sampling_weights is None else sampling_weights.mode_weights(block, labels)
    if asked == "medoid":
        return represent(
            block,
            labels,
            numeric=clustering.numeric,
            nominal=clustering.nominal,
            representative=asked,
            points=points.expand(),
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
    return represent(
        protected,
        labels,
        numeric=clustering.numeric,
        record_weights=means,
        protection=_mean_protection(block, clustering),
    )


def _mean_protection(block: pa.Table, clustering: BlockConfig) -> MeanProtection:
    """Return the parameters by which the means of the block's clusters are rounded and displaced."""
    deviations = {name: scale.deviation for name, scale in clustering.coordinates.scales.items()}
    sampling = clustering.sampling_weights
    owners = None if sampling is None else sampling.owners(block)
    return MeanProtection(deviations, block_seed(clustering.secret, block[BLOCK][0].as_py()), owners)


def _with_clusters(
    protected: pa.Table, block: pa.Table, labels: np.ndarray, clustering: BlockConfig
) -> pa.Table:
    """Add the cluster number and the original nominal values, from which representatives are chosen later."""
    cluster = block[BLOCK][0].as_py() * CLUSTERS_OF_A_BLOCK + labels.astype(np.int64)
    protected = protected.append_column(CLUSTER, pa.array(cluster))
    for place, name in enumerate(clustering.nominal):
        protected = protected.append_column(f"{BEFORE}{place}", block[name])
    return protected


def _moments(before: pa.Table, after: pa.Table, clustering: BlockConfig) -> Moments | None:
    if not clustering.numeric or len(after) == 0:
        return None
    numeric = clustering.coordinates.numeric
    return Moments.from_values(numeric(before), numeric(after), _weights(before, clustering))


def _clusters(
    block: pa.Table, protected: pa.Table, labels: np.ndarray, clustering: BlockConfig
) -> dict[str, Any]:
    """Return numbers, dominance and diversity of the published clusters, without values of records."""
    n, k = clustering.dominance
    numeric = [name for name in clustering.numeric if not block[name].null_count]
    counts: dict[str, Any] = {
        "clusters": len(np.unique(labels)),
        "dominated": {name: dominated(numbers(block[name]), labels, n, k) for name in clustering.numeric},
        "of_one_value": {name: of_one_value(numbers(block[name]), labels) for name in numeric},
        "p_percent": {name: _p_percent(block, protected, labels, name, clustering) for name in numeric},
    }
    if clustering.sampling_weights is not None:
        weights = clustering.sampling_weights.weights(block)
        counts["trimmed"] = int(
            np.count_nonzero(clustering.sampling_weights.mean_weights(block, labels) < weights)
        )
    if clustering.min_diversity > 1 and not _withheld(block, clustering):
        counts["diversity"] = {
            name: min(least_distinct(codes, labels) for codes in _sensitive_codes(block, name, clustering).T)
            for name in clustering.sensitive
        }
    return counts


def _p_percent(
    block: pa.Table, protected: pa.Table, labels: np.ndarray, name: str, clustering: BlockConfig
) -> tuple[int, int]:
    """Count the clusters whose total the p % rule forbids, and those among them whose mean still discloses a
    value.

    The counts are 0 if the variable is not a magnitude, or if clusters publish no mean.
    """
    if clustering.representative not in MEANS or not is_magnitude(
        clustering.coordinates.scales[name].deviation, block[name].type
    ):
        return 0, 0
    sampling = clustering.sampling_weights
    weights = np.ones(len(block)) if sampling is None else sampling.mean_weights(block, labels)
    owners = None if sampling is None else sampling.owners(block)
    of = contributions(numbers(block[name]), labels, weights, owners)
    means = np.empty(len(of.first))
    means[labels] = numbers(protected[name])
    return int(np.count_nonzero(of.forbidden)), int(np.count_nonzero(of.known(means)))


def _global_bound(
    block: pa.Table,
    points: Points,
    clustering: BlockConfig,
    lower_bound: float | None,
    margins: np.ndarray | None,
) -> float | None:
    """Compute a lower bound on the loss of these records in any clustering of the whole file; None if the
    block is too large.

    Also None with weights, because a distant neighbour with a small weight hardly adds to the cost of a
    record with a large weight. If the file is not cut, the bound that the method proved (`lower_bound`) is
    valid.
    """
    if points.record_weights is not None:
        return None
    reach = clustering.plan.reach(block[BLOCK][0].as_py() % clustering.plan.blocks, block)
    reach = reach if margins is None else np.minimum(reach, margins)
    if lower_bound is not None and np.all(np.isinf(reach)):
        return lower_bound
    if not clustering.k <= len(points) <= BOUND_RECORDS or len(points) ** 2 * points.width > BOUND_WORK:
        return None
    return global_bound(points.expand(), clustering.k, reach=reach, work=WORK[clustering.effort])
