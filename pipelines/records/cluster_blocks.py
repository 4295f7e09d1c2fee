"""Protect: the one seam from Spark to the methods. Arrow in, Arrow out, one call per block.

A block arrives whole, in an order that its content decides. Its records become points in units that all
blocks share; the method clusters them; each cluster's representatives are rounded to the type of their
column; the loss is measured on the values as they will be written. A block that fails says so in a status
without values: nothing that a record holds may travel through Spark's exceptions.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pipelines.engine.column_names import map_in_arrow
from pipelines.records.blocks import BLOCK, Plan
from pipelines.records.coordinates import Coordinates, numbers
from pipelines.records.points import Points
from sdc.clusters.codes import category_codes
from sdc.clusters.diversity import diversify, least_distinct
from sdc.clusters.dominance import dominated
from sdc.clusters.representatives import represent
from sdc.errors import InvalidParameter, SdcError
from sdc.measures.moments import Moments
from sdc.microaggregation import microaggregate
from sdc.microaggregation.bounds import nearest_neighbour_bound
from sdc.microaggregation.clustering import OPTIMALITY_TOLERANCE
from sdc.microaggregation.sse import sum_of_squares

#: Report of a block, on its first record; the moments of a partition, on a line of their own.
REPORT = "__report"
CLUSTER = "__cluster"
BEFORE = "__before"
"""With the position of a nominal variable: its value before, where representatives are chosen together."""
#: More clusters than any block has: a cluster of the file is its block times this, and its label.
CLUSTERS_OF_A_BLOCK = 1 << 31

#: What a block is protected by when the method asked for fails on it.
FALLBACK = "mdav"

#: Largest block whose nearest neighbours are all looked up for the bound of the whole file (a second).
BOUND_RECORDS = 20_000


@dataclass(frozen=True)
class ClusteringTask:
    """Everything a task must know to protect a block; travels with the task.

    Attributes
    ----------
    k, seed, effort, algorithm, representative, counted, min_diversity, sensitive : as in the specification
    plan : Plan
        The blocks, and the scales of the numeric variables, whose order is that of the moments.
    nominal : tuple of str
        Nominal variables of the clustering, ordinal and hierarchical ones among them.
    dominance : tuple of (int, float)
        The (n, k) rule that clusters are counted by.
    resume : str, optional
        Private folder that finished blocks are kept in, where it is one that every task can write to.
    jointly : bool
        Whether nominal representatives are chosen for the whole file later: clusters and values before are
        kept beside the records then.
    """

    k: int
    seed: int
    effort: str
    algorithm: str
    representative: str
    counted: str | None
    min_diversity: int
    sensitive: tuple[str, ...]
    plan: Plan
    nominal: tuple[str, ...]
    dominance: tuple[int, float]
    resume: str | None
    jointly: bool = False

    @property
    def coordinates(self) -> Coordinates:
        """How the variables become coordinates of points."""
        return self.plan.coordinates

    @property
    def numeric(self) -> tuple[str, ...]:
        """Numeric variables of the clustering."""
        return tuple(self.coordinates.scales)


def cluster_blocks(frame: DataFrame, clustering: ClusteringTask) -> DataFrame:
    """Protected records with `BLOCK` and `REPORT`.

    Parameters
    ----------
    frame : DataFrame
        Blocked records: sorted by `BLOCK` within partitions.
    clustering : ClusteringTask

    Returns
    -------
    DataFrame
        The same columns and types, the clustering's variables replaced by representatives. A row whose
        `BLOCK` is NULL holds a report only: moments of a partition, or why a block failed.
    """
    beside: list[tuple[str, t.DataType]] = [(CLUSTER, t.LongType())] if clustering.jointly else []
    if clustering.jointly:
        types = {entry.name: entry.dataType for entry in frame.schema}
        beside += [(f"{BEFORE}{place}", types[name]) for place, name in enumerate(clustering.nominal)]
    schema = t.StructType(
        [t.StructField(entry.name, entry.dataType, True) for entry in frame.schema]
        + [t.StructField(name, kind, True) for name, kind in beside]
        + [t.StructField(REPORT, t.StringType(), True)]
    )

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        moments = Moments.none(len(clustering.numeric))
        first = None
        for block in blocks_of(batches):
            first = block.slice(0, 1) if first is None else first
            protected, report, own = protect_block(block, clustering)
            moments = moments if own is None else moments + own
            yield from _reported(_widened(protected, clustering), report).to_batches()
        if first is not None and clustering.numeric:
            row = {
                "first_block": first[BLOCK][0].as_py(),
                "moments": [getattr(moments, name).tolist() for name in moments.__dataclass_fields__],
            }
            yield from _reported(_widened(first.slice(0, 0), clustering), row).to_batches()

    return map_in_arrow(frame, task, schema)


def blocks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of one block each, from batches sorted by block; a block may straddle batches."""
    parts: list[pa.RecordBatch] = []
    current = None
    for batch in batches:
        ids = batch.column(batch.schema.get_field_index(BLOCK)).to_numpy()
        starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1, [len(ids)]])
        for start, stop in pairwise(starts):
            if start == stop:
                continue
            if current is not None and ids[start] != current:
                yield pa.Table.from_batches(parts)
                parts = []
            current = ids[start]
            parts.append(batch.slice(start, stop - start))
    if parts:
        yield pa.Table.from_batches(parts)


def protect_block(
    block: pa.Table, clustering: ClusteringTask
) -> tuple[pa.Table, dict[str, Any], Moments | None]:
    """One block: its protected records, its report, and its moments (None where it has no numbers).

    A block that cannot be protected comes back without records and with a status.
    """
    start = time.monotonic()
    report: dict[str, Any] = {"block": block[BLOCK][0].as_py(), "records": len(block), "status": "done"}
    try:
        points = Points.of(block, clustering.coordinates, clustering.nominal)
        if _units(block, clustering) < clustering.k:
            return block.schema.empty_table(), report | {"status": "too few"}, None
        labels, told = _labels(points, report["block"], clustering)
        found = labels
        labels = _diverse(block, points, found, clustering)
        if labels.max() < found.max():
            told |= _merged(told, points.spread(), labels)
        protected = _replaced(block, points, labels, clustering)
        if clustering.jointly:
            protected = _with_clusters(protected, block, labels, clustering)
        moments = _moments(block, protected, clustering)
        report |= told | _clusters(block, labels, clustering)
        report["file_bound"] = _file_bound(block, points, clustering)
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


def _labels(points: Points, block: int, clustering: ClusteringTask) -> tuple[np.ndarray, dict[str, Any]]:
    """Cluster of each record and what was proved, from the folder of finished blocks where it is there."""
    if points.alike:
        told = {
            "algorithm": "none",
            "stopped_by": "proof",
            "objective": 0.0,
            "lower_bound": 0.0,
            "gap": 0.0,
            "optimal": True,
        }
        return np.zeros(len(points), np.int64), told
    seed = block_seed(clustering.seed, block)
    finished = _finished(points, seed, block, clustering)
    resumed = _resumed(finished, len(points), clustering.k)
    if resumed is not None:
        return resumed
    labels, told = _solve(points, seed, clustering)
    if finished is not None:
        fresh = finished.with_name(f".{finished.name}.{os.getpid()}")
        with open(fresh, "wb") as file:
            np.savez(file, labels=labels.astype(np.int32), told=json.dumps(told))
        fresh.replace(finished)
    return labels, told


def _resumed(finished: Path | None, records: int, k: int) -> tuple[np.ndarray, dict[str, Any]] | None:
    """What an earlier run left of the block; None where it left nothing, or nothing that can be believed."""
    if finished is None or not finished.is_file():
        return None
    try:
        with np.load(finished, allow_pickle=False) as kept:
            labels, told = kept["labels"], dict(json.loads(str(kept["told"])))
    except Exception:  # a damaged archive raises anything; the block is solved anew
        return None
    sound = labels.shape == (records,) and np.unique(labels, return_counts=True)[1].min() >= k
    return (labels, told | {"resumed": True}) if sound else None


def _solve(points: Points, seed: int, clustering: ClusteringTask) -> tuple[np.ndarray, dict[str, Any]]:
    options: dict[str, Any] = {
        "standardise": False,
        "nominal": points.nominal if points.nominal.any() else None,
        "variable_weights": points.weights,
        "seed": seed,
    }
    told: dict[str, Any] = {}
    try:
        found = microaggregate(
            points.values, clustering.k, effort=clustering.effort, algorithm=clustering.algorithm, **options
        )
    except InvalidParameter:
        raise  # what was asked for is impossible for every block
    except Exception as error:
        told = {"fallback": FALLBACK, "why": type(error).__name__}
        found = microaggregate(points.values, clustering.k, effort="fast", algorithm=FALLBACK, **options)
    return found.labels, told | {
        "algorithm": found.algorithm,
        "stopped_by": found.stopped_by,
        "objective": found.sse,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "optimal": found.optimal,
        "work": dict(found.work),
    }


def block_seed(run: int, block: int) -> int:
    """Seed of a block: a function of the run's seed and the block alone."""
    return int.from_bytes(hashlib.blake2b(f"{run}/{block}".encode(), digest_size=7).digest(), "big")


def _finished(points: Points, seed: int, block: int, clustering: ClusteringTask) -> Path | None:
    """File of a finished block: named by everything its labels depend on."""
    if clustering.resume is None:
        return None
    content = hashlib.blake2b(np.ascontiguousarray(points.values).tobytes(), digest_size=16)
    content.update(points.mismatches.tobytes())
    asked = (clustering.k, seed, clustering.effort, clustering.algorithm, points.values.shape)
    content.update(repr(asked).encode())
    return Path(clustering.resume) / f"{block}-{content.hexdigest()}.npz"


def _diverse(block: pa.Table, points: Points, labels: np.ndarray, clustering: ClusteringTask) -> np.ndarray:
    """Clusters merged until each has k units, and enough values of every sensitive variable."""
    wanted = [(clustering.sensitive, clustering.min_diversity)] if clustering.min_diversity > 1 else []
    if clustering.counted is not None:
        wanted.insert(0, ((clustering.counted,), clustering.k))
    for names, least in wanted:
        codes = np.column_stack([category_codes(block[name]) for name in names])
        labels = diversify(points.spread(), labels, codes, least)
    return labels


def _merged(told: Mapping[str, Any], points: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """What holds of clusters that were merged: another objective, under a bound that stands."""
    objective = sum_of_squares(points, np.ones(len(points)), labels)
    gap = None
    if told["lower_bound"] is not None:
        gap = max(0.0, 1.0 - told["lower_bound"] / objective) if objective > 0 else 0.0
    return {
        "objective": objective,
        "gap": gap,
        "optimal": gap is not None and gap <= OPTIMALITY_TOLERANCE,
    }


def _units(block: pa.Table, clustering: ClusteringTask) -> int:
    """How many of what k counts the block holds."""
    return len(block) if clustering.counted is None else len(block[clustering.counted].unique())


def _replaced(block: pa.Table, points: Points, labels: np.ndarray, clustering: ClusteringTask) -> pa.Table:
    return represent(
        block,
        labels,
        numeric=clustering.numeric,
        nominal=clustering.nominal,
        representative=clustering.representative,
        orders=clustering.coordinates.orders,
        trees=clustering.coordinates.trees,
        points=points.spread() if clustering.representative == "medoid" else None,
    )


def _with_clusters(
    protected: pa.Table, block: pa.Table, labels: np.ndarray, clustering: ClusteringTask
) -> pa.Table:
    """Beside the protected records: their cluster in the file, and their nominal values before."""
    cluster = block[BLOCK][0].as_py() * CLUSTERS_OF_A_BLOCK + labels.astype(np.int64)
    protected = protected.append_column(CLUSTER, pa.array(cluster))
    for place, name in enumerate(clustering.nominal):
        protected = protected.append_column(f"{BEFORE}{place}", block[name])
    return protected


def _widened(table: pa.Table, clustering: ClusteringTask) -> pa.Table:
    """A table with the columns of `_with_clusters`; one that lacks them has no records."""
    if not clustering.jointly or CLUSTER in table.column_names:
        return table
    table = table.append_column(CLUSTER, pa.array([], pa.int64()))
    for place, name in enumerate(clustering.nominal):
        table = table.append_column(f"{BEFORE}{place}", table[name])
    return table


def _moments(before: pa.Table, after: pa.Table, clustering: ClusteringTask) -> Moments | None:
    if not clustering.numeric or len(after) == 0:
        return None
    return Moments.of(clustering.coordinates.numeric(before), clustering.coordinates.numeric(after))


def _clusters(block: pa.Table, labels: np.ndarray, clustering: ClusteringTask) -> dict[str, Any]:
    """What is told of the clusters as they are published: number, dominance, diversity."""
    n, k = clustering.dominance
    told: dict[str, Any] = {
        "clusters": len(np.unique(labels)),
        "dominated": {name: dominated(numbers(block[name]), labels, n, k) for name in clustering.numeric},
    }
    if clustering.min_diversity > 1:
        told["diversity"] = {
            name: least_distinct(category_codes(block[name]), labels) for name in clustering.sensitive
        }
    return told


def _file_bound(block: pa.Table, points: Points, clustering: ClusteringTask) -> float | None:
    """What these records cost at least in any clustering of the whole file; None for too large a block."""
    if not clustering.k <= len(points) <= BOUND_RECORDS:
        return None
    reach = clustering.plan.reach(block[BLOCK][0].as_py(), block)
    return nearest_neighbour_bound(points.spread(), clustering.k, reach=reach)


def _reported(table: pa.Table, report: Mapping[str, Any]) -> pa.Table:
    """Add the report to the first record, or as a line of its own where there is none."""
    rows = max(len(table), 1)
    schema = pa.schema([pa.field(each.name, each.type) for each in table.schema] + [(REPORT, pa.string())])
    texts = pa.concat_arrays(
        [pa.array([json.dumps(report, sort_keys=True)]), pa.nulls(rows - 1, pa.string())]
    )
    columns = table.columns if len(table) else [pa.nulls(1, each.type) for each in table.schema]
    return pa.table([*columns, texts], schema=schema)
