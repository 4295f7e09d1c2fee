"""Run a job through the real block functions without Spark, with Arrow tables as input and output.

The parts that Spark does in a run are done with pandas: rejecting records, collecting the records of a block,
and assigning protected counts to records. Plan, points, methods, representatives, weights and reports use the
code of the pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.row_hash import HASH
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.recode import band_labels
from microguard.pipelines.intake.validate import PATTERN, REGION, merge_strata, pattern_mask
from microguard.pipelines.measures.block_reports import BlockReports, collected
from microguard.pipelines.measures.classes import CLOSE
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.records import (
    blocks,
    combination_blocks,
    combinations,
    joint_representatives,
    protect_by_microaggregation,
)
from microguard.pipelines.records.block import BEFORE, CLUSTER
from microguard.pipelines.records.cluster_blocks import cluster_blocks, protected_schema
from microguard.pipelines.records.coordinates import numbers
from microguard.pipelines.records.reassignment import write_moves
from microguard.pipelines.records.sampling_weights import SamplingWeights
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from pyspark.sql.pandas.types import from_arrow_schema

from tests.system.pairwise.jobs import PairwiseJob

#: Number of records per Arrow batch, so small that blocks span several batches.
BATCH = 17
ROW = "row"


def accepted_table(job: PairwiseJob, specification: Specification) -> pa.Table:
    """Return the accepted records as the pipeline types them, with `ROW`, `PATTERN` and `HASH`."""
    frame = job.accepted.drop(columns="name")
    for name in specification.nominal:
        bands = specification.variables[name].bands
        if bands is not None:
            place = np.searchsorted(bands, frame[name].astype(float), side="right")
            frame[name] = pd.Series(np.array(band_labels(bands))[place], frame.index).where(
                frame[name].notna()
            )
    pattern = sum(
        (frame[name].isna().astype(np.int64) * 2**i for i, name in enumerate(specification.numeric)),
        start=pd.Series(0, frame.index, np.int64),
    )
    spread = np.random.default_rng(1).permutation(len(frame)).astype(np.int64)
    frame = frame.assign(**{ROW: np.arange(len(frame)), PATTERN: pattern, HASH: spread})
    for group in specification.clusterings:
        keys = [*filter(None, [specification.region]), pattern & pattern_mask(group, specification)]
        of_strata = frame.groupby(keys)
        units = of_strata.size() if job.counted is None else of_strata[job.counted].nunique()
        assert units.min() >= job.k, "the pipeline rejects an input with so small a stratum"
    return pa.Table.from_pandas(frame, preserve_index=False)


def protected_records(
    table: pa.Table, specification: Specification, folder: Path
) -> tuple[pd.DataFrame, list[BlockReports]]:
    """Return the published columns and `ROW` of the protected records, and the reports of each clustering.

    Raises
    ------
    SpecificationError, ProtectionFailed, InputRejected
    """
    of_clusterings = []
    for group in specification.clusterings:
        by = _by_combination if specification.strategy(group) != "microaggregation" else _by_cluster
        table, reports = by(table, group, specification, folder)
        of_clusterings.append(reports)
    published = [name for name in specification.published if name in table.column_names]
    return table.select([*published, ROW]).to_pandas(), of_clusterings


def _by_cluster(
    table: pa.Table, group: Group, specification: Specification, folder: Path
) -> tuple[pa.Table, BlockReports]:
    """Protect by microaggregation, like `pipelines.records.protect_by_microaggregation`."""
    mask = pattern_mask(group, specification)
    strata, of_stratum = _strata(table, mask, specification)
    frame = table.to_pandas()
    scales = {name: _scale(table[name]) for name in specification.numeric}
    domains = {name: frame[name].nunique(dropna=False) for name in specification.nominal}

    def sample(_frame, _strata, large, *_others):
        rows = np.flatnonzero(np.isin(of_stratum, large))
        return table.take(pa.array(rows)), of_stratum[rows]

    with patch.object(blocks, "sample_strata", sample):
        plan = blocks.plan(None, strata, group, specification, scales, domains)
    close = {
        name: CLOSE * float(np.ptp(numbers(table[name])))
        for name in specification.sensitive
        if specification.method.min_diversity > 1 and frame[name].dtype.kind == "f"
    }
    weighing = _weighing(table, group, specification)
    jointly = joint_representatives.chosen_together(group, specification, len(table))
    while True:
        task = protect_by_microaggregation._clustering_task(
            plan, group, specification, 7, None, jointly, close, weighing
        )
        blocked = _blocked(table, of_stratum, plan)
        schema = protected_schema(from_arrow_schema(blocked.schema), task)
        tables, reports = zip(
            *cluster_blocks(blocked.to_batches(max_chunksize=BATCH), task, schema), strict=True
        )
        protection = collected(reports, len(task.numeric))
        if not protection.too_few:
            break
        plan = plan.without_trees(protection.too_few, protection.lacking_values)
    protected = pa.concat_tables(tables)
    if jointly:
        protected = _represented(protected, group, specification)
    return protected.select(table.column_names), protection


def _strata(table: pa.Table, mask: int, specification: Specification) -> tuple[pa.Table, np.ndarray]:
    """Return the strata of a clustering, and the stratum of each record."""
    regions = pa.chunked_array([[0] * len(table)])
    if specification.region is not None:
        regions = table[specification.region]
    counted = pa.table({REGION: regions, PATTERN: table[PATTERN], "records": pa.array([1] * len(table))})
    if specification.region is None:
        counted = counted.drop_columns(REGION)
    strata = merge_strata(counted, mask)
    keys = [name for name in strata.column_names if name != "records"]
    strata = strata.sort_by([(name, "ascending") for name in keys])
    places = {tuple(row[name] for name in keys): i for i, row in enumerate(strata.to_pylist())}
    records = counted.set_column(
        counted.column_names.index(PATTERN), PATTERN, pa.array(table[PATTERN].to_numpy() & mask)
    )
    return strata, np.array([places[tuple(row[name] for name in keys)] for row in records.to_pylist()])


def _scale(values: pa.ChunkedArray) -> Scale:
    known = numbers(values)[~np.isnan(numbers(values))]
    return Scale(float(known.mean()), float(known.std(ddof=1)), len(known))


def _weighing(table: pa.Table, group: Group, specification: Specification) -> SamplingWeights | None:
    name, counted, k = specification.weighted_by(group), specification.counted, specification.release.k
    if name is None:
        return None if counted is None else SamplingWeights(None, 1.0, k, counted)
    return SamplingWeights(name, float(numbers(table[name]).mean()), k, counted)


def _blocked(table: pa.Table, of_stratum: np.ndarray, plan: blocks.Plan) -> pa.Table:
    """Return the records with their block, sorted by it."""
    first, tree = (plan.strata[name].to_numpy()[of_stratum] for name in ("__first", "__tree"))
    if plan.trees:
        points, keys = plan.coordinates.points(table), table[HASH].to_numpy()
        for place in np.unique(tree[tree >= 0]):
            inside = tree == place
            first = first.copy()
            first[inside] += plan.trees[place].assign(points[inside], keys[inside])
    return table.append_column(blocks.BLOCK, pa.array(first.astype(np.int64))).sort_by(
        [(blocks.BLOCK, "ascending"), (HASH, "ascending")]
    )


def _represented(protected: pa.Table, group: Group, specification: Specification) -> pa.Table:
    """Replace representatives like `pipelines.records.joint_representatives.with_joint_representatives`."""
    names = [name for name in group.variables if name in specification.nominal]
    before = [f"{BEFORE}{position}" for position in range(len(names))]
    regions = pa.chunked_array([[0] * len(protected)])
    if specification.region is not None:
        regions = protected[specification.region]
    cells = protected.append_column("__region", regions).group_by([CLUSTER, "__region", *before])
    counted = cells.aggregate([([], "count_all")]).rename_columns([CLUSTER, "__region", *before, "n"])
    chosen = joint_representatives.representatives(
        counted.sort_by([(name, "ascending") for name in (CLUSTER, *before)]), group, specification
    )
    places = pd.Index(chosen[CLUSTER].to_numpy()).get_indexer(protected[CLUSTER].to_numpy())
    for position, name in enumerate(names):
        values = chosen[f"__new{position}"].take(pa.array(places)).cast(protected[name].type)
        protected = protected.set_column(protected.column_names.index(name), name, values)
    return protected


def _by_combination(
    table: pa.Table, group: Group, specification: Specification, folder: Path
) -> tuple[pa.Table, BlockReports]:
    """Protect by frequency in this process, like `pipelines.records.protect_by_frequency`."""
    keys = combinations.keys_of(group, specification)
    counted = (
        table.group_by(keys).aggregate([([], "count_all")]).sort_by([(key, "ascending") for key in keys])
    )
    counts = counted["count_all"].to_numpy()
    columns = {name: combinations.coded(counted[name]) for name in keys}
    names = tuple(group.variables)
    frequencies, order = combinations.in_order(
        np.column_stack([columns[name][0] for name in names]),
        np.array([len(columns[name][1]) for name in names]),
        names,
        None if specification.region is None else columns[specification.region][0],
        counts,
    )
    categories = tuple(columns[name][1] for name in names)
    distances = combinations.similarity(frequencies, combinations.texts_of(categories), specification)
    digests = np.column_stack([np.arange(len(counts))] * 2)[order]
    occurring = combinations.Combinations(frequencies, categories, digests, distances)
    with patch.object(
        combination_blocks, "in_tasks", lambda _, solve, tasks: [solve(each) for each in tasks]
    ):
        protected, reports = combinations.protected_counts(None, occurring, group, specification)
    place = FolderStagingArea(folder)
    write_moves(place, group.name, 0, occurring, protected)
    moves = pq.read_table(folder / group.name / "part-00000.parquet").to_pylist()
    of_combination = {tuple(row[key] for key in keys): i for i, row in enumerate(counted.to_pylist())}
    records = table.to_pylist()
    ranks: dict[int, int] = {}
    for record in records:
        place_of = of_combination[tuple(record[key] for key in keys)]
        ranks[place_of] = rank = ranks.get(place_of, 0) + 1
        record |= dict(zip(names, _taken(moves, place_of, rank), strict=False))
    made = pa.Table.from_pylist(records, schema=table.schema)
    return made, collected([json.dumps(report) for report in reports], 0)


def _taken(moves: list[dict[str, object]], left: int, rank: int) -> Iterator[object]:
    """Yield the new values of each record of a key combination, or None if the record does not change."""
    for move in moves:
        if move["__left0"] == left and move["__above"] < rank <= move["__last"]:
            yield from (value for name, value in move.items() if name.startswith("__taken"))
