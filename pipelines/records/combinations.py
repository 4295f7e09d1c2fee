"""Reconcile: nominal quasi-identifiers, protected as counts of combinations on the errors of the whole file.

Records are collapsed to distinct combinations of region and quasi-identifiers. The counts of all of them
are protected together, because errors in the control tables add up over blocks. The answer is carried
back to the records in one shuffle: of the records of a combination, in an order that their content
decides, the first stay and the others take the combinations their surplus flows to.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pipelines.engine.column_names import column, map_in_arrow
from pipelines.engine.row_hash import HASH, content_order, digest, with_hash
from pipelines.measures.block_reports import OF_FILE
from pipelines.measures.pairs import drawn_order
from pipelines.records.combination_blocks import METHODS, proved, solved_by_block
from pipelines.records.method_parameters import combination_parameters
from pipelines.records.similarity import similarity
from schemas.errors import ProtectionFailed
from schemas.specification.model import Specification
from schemas.specification.sections import Group
from sdc.errors import SdcError
from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import FrequencyVector, collapse
from sdc.nominal.methods import ProtectionTask, chosen, protect_counts
from sdc.nominal.region_levels import RegionLevels
from sdc.nominal.similarity import Similarity
from sdc.nominal.transport import transport

_COUNT = "__count"
_DIGESTS = ["__digest0", "__digest1"]


@dataclass(frozen=True)
class Combinations:
    """Distinct combinations of region and quasi-identifiers, in the order of their frequency vector.

    Attributes
    ----------
    frequencies : FrequencyVector
    values : pyarrow.Table
        Quasi-identifiers of each combination, dictionary-encoded.
    digests : (m, 2) int64 array
        What records find their combination by.
    similarity : Similarity or None
        How far combinations are apart; None where every mismatch costs the same.
    """

    frequencies: FrequencyVector
    values: pa.Table
    digests: np.ndarray
    similarity: Similarity | None = None


def on_combinations(group: Group, specification: Specification) -> bool:
    """Whether a clustering is protected as counts of combinations: nominal, with no clusters asked for."""
    return specification.way(group) != "clusters"


def combinations(frame: DataFrame, group: Group, specification: Specification) -> Combinations:
    """Collapse records to distinct combinations; missing values are one more category, the last."""
    names = list(group.variables)
    keys = names if specification.region is None else [specification.region, *names]
    counted = (
        frame.groupBy(*[column(name).alias(f"v{i}") for i, name in enumerate(keys)], *digest(keys))
        .agg(f.count(f.lit(1)).alias(_COUNT))
        .toArrow()
    )
    columns = {name: coded(counted[f"v{i}"]) for i, name in enumerate(keys)}
    codes = np.column_stack([columns[name][0] for name in names])
    sizes = np.array([len(columns[name][1]) for name in names])
    regions = None if specification.region is None else columns[specification.region][0]
    frequencies, place = collapse(
        codes, sizes, tuple(names), regions=regions, counts=counted[_COUNT].to_numpy()
    )
    order = np.empty(len(place), np.int64)
    order[place] = np.arange(len(place))
    digests = np.column_stack([counted[name].to_numpy() for name in _DIGESTS])[order]
    if len(frequencies) != len(counted) or len(np.unique(digests, axis=0)) != len(digests):
        raise ProtectionFailed(
            "Two combinations could not be told apart (a collision of hashes). Nothing was published; please "
            "report this."
        )
    values = {
        name: pa.DictionaryArray.from_arrays(pa.array(frequencies.codes[:, j]), columns[name][1])
        for j, name in enumerate(names)
    }
    categories = [columns[name][1].cast(pa.string()).to_pylist() for name in names]
    similar = similarity(frequencies, categories, specification)
    return Combinations(frequencies, pa.table(values), digests, similar)


def protected_counts(
    spark: SparkSession, collapsed: Combinations, group: Group, specification: Specification
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Protect the counts of all combinations, and report on it as on blocks.

    The recommended search and SAFE work on the errors of the whole file at once; every other algorithm
    is one of the papers' and runs block by block in tasks.

    Raises
    ------
    ProtectionFailed
    """
    region = specification.region
    known = {*group.variables, region}
    tables = [table for table in specification.control_tables if set(table) <= known]
    levels = None if region is None else RegionLevels.single(_regions(collapsed.frequencies), region)
    method, release = specification.method, specification.release
    try:
        task = ProtectionTask(
            collapsed.frequencies,
            release.k,
            ControlTables.of(collapsed.frequencies, tables, levels=levels),
            effort=method.effort,
            seed=release.seed,
            max_absolute_error=method.control_tables.max_absolute_error,
            kept_dimension=method.control_tables.kept_dimension,
            similarity=collapsed.similarity,
        )
        safe = method.name == "safe"
        name = _safe(method.algorithm, method.effort) if safe else chosen(method.algorithm, task)
        fits = method.algorithm == "auto" and not safe  # there "auto" takes what fits the file
        whole = METHODS[name].whole_file or fits
        default = None if whole or method.effort == "exact" else METHODS[name].block_parameters
        task = replace(task, parameters=combination_parameters(method, name, default))
        if not whole:
            return solved_by_block(spark, task, name, specification.max_block_records)
        return _of_whole_file(task, name)
    except SdcError as error:
        raise ProtectionFailed(f"The combinations could not be protected: {error}") from error


def _regions(frequencies: FrequencyVector) -> int:
    return int(frequencies.region_of().max(initial=-1)) + 1


def _safe(algorithm: str, effort: str) -> str:
    """What "auto" stands for with SAFE: its exact form where a proof is asked for."""
    by_effort = "safe-exact" if effort == "exact" else "safe"
    return by_effort if algorithm == "auto" else algorithm


def _of_whole_file(task: ProtectionTask, name: str) -> tuple[np.ndarray, list[dict[str, Any]]]:
    start = time.monotonic()
    solution = protect_counts(task, name, METHODS)
    report = {
        "block": 0,
        "records": task.frequencies.records,
        "status": "done",
        "algorithm": name,
        **proved(solution, task.tables.chi2(solution.counts), OF_FILE),
        "clusters": int(np.count_nonzero(solution.counts)),
        "seconds": time.monotonic() - start,
    }
    return solution.counts, [report]


def carried_back(
    frame: DataFrame,
    collapsed: Combinations,
    counts: np.ndarray,
    group: Group,
    specification: Specification,
) -> DataFrame:
    """Give every record the values of the combination its count flows to."""
    names = list(group.variables)
    keys = names if specification.region is None else [specification.region, *names]
    carrier = _Carrier.of(collapsed, counts)
    # As bytes: the stream that encrypts a broadcast does not take the buffers of arrays.
    broadcast = frame.sparkSession.sparkContext.broadcast(pickle.dumps(carrier))
    published = [name for name in frame.columns if name in specification.published]
    together = (
        with_hash(frame, published)
        .select("*", *digest(keys))
        .repartition(*_DIGESTS)
        .sortWithinPartitions(*_DIGESTS, *content_order(frame, published), *drawn_order(frame))
        .drop(HASH)
    )
    schema = t.StructType([t.StructField(each.name, each.dataType, True) for each in frame.schema])

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        carrier, last, rank = pickle.loads(broadcast.value), -1, 0
        values = carrier.table()
        for batch in batches:
            place = carrier.find(np.column_stack([batch[name].to_numpy() for name in _DIGESTS]))
            ranks = _ranks(place, last, rank)
            if len(place):
                last, rank = int(place[-1]), int(ranks[-1]) + 1
            yield from carrier.carry(values, batch.drop_columns(_DIGESTS), place, ranks).to_batches()

    return map_in_arrow(together, task, schema)


@dataclass(frozen=True)
class _Carrier:
    """Where the records of each combination go; travels to the tasks.

    Attributes
    ----------
    digests : (m, 2) int64 array, sorted by its first column
    place : (m,) int64 array
        Combination of each digest.
    first : (m + 1,) int64 array
        First slot of each combination: one slot a record.
    ends : (flows,) int64 array
        Slot after the last one of each flow; flows of a combination follow each other, staying first.
    target : (flows,) int64 array
        Combination that the records of a flow take.
    values : bytes
        Quasi-identifiers of the combinations, an Arrow table as a stream.
    """

    digests: np.ndarray
    place: np.ndarray
    first: np.ndarray
    ends: np.ndarray
    target: np.ndarray
    values: bytes

    @classmethod
    def of(cls, collapsed: Combinations, counts: np.ndarray) -> _Carrier:
        source, target, records = _flows(collapsed, counts)
        order = np.lexsort((target, target != source, source))
        sorted_digests = np.lexsort((collapsed.digests[:, 1], collapsed.digests[:, 0]))
        return cls(
            digests=collapsed.digests[sorted_digests],
            place=sorted_digests,
            first=np.concatenate([[0], np.cumsum(collapsed.frequencies.counts)]),
            ends=np.cumsum(records[order]),
            target=target[order],
            values=_stream(collapsed.values),
        )

    def find(self, digests: np.ndarray) -> np.ndarray:
        """Combination of each record; equal first halves are told apart by the second."""
        at = np.searchsorted(self.digests[:, 0], digests[:, 0])
        while True:
            wrong = self.digests[at, 1] != digests[:, 1]
            if not wrong.any():
                return self.place[at]
            at = at + wrong

    def table(self) -> pa.Table:
        """Quasi-identifiers of the combinations."""
        return pa.ipc.open_stream(self.values).read_all()

    def carry(
        self, values: pa.Table, batch: pa.RecordBatch, place: np.ndarray, ranks: np.ndarray
    ) -> pa.Table:
        """The records with the `values` of the combinations they are carried to."""
        table = pa.Table.from_batches([batch])
        target = pa.array(self.target[np.searchsorted(self.ends, self.first[place] + ranks, side="right")])
        for name in values.column_names:
            position = table.schema.get_field_index(name)
            kind = table.schema.field(position).type
            table = table.set_column(position, name, values[name].take(target).cast(kind))
        return table


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def coded(values: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """Codes in the order of the values, NULL last, and the values of the codes."""
    distinct = pc.unique(values).drop_null()
    distinct = distinct.take(pc.array_sort_indices(distinct))
    codes = pc.fill_null(pc.index_in(values, value_set=distinct), len(distinct)).to_numpy().astype(np.int32)
    if values.null_count:
        distinct = pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
    return codes, distinct


def _flows(collapsed: Combinations, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records that stay and records that move, as (source, target, records)."""
    moving = transport(collapsed.frequencies, counts, collapsed.similarity)
    stay = np.minimum(collapsed.frequencies.counts, counts)
    every = np.flatnonzero(stay)
    return (
        np.concatenate([every, moving.origin]),
        np.concatenate([every, moving.target]),
        np.concatenate([stay[every], moving.count]),
    )


def _ranks(place: np.ndarray, last: int, rank: int) -> np.ndarray:
    """Rank of each record within its combination, going on from `rank` where the last batch ended in it."""
    starts = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]])) if len(place) else place
    ranks = np.arange(len(place)) - np.repeat(starts, np.diff(np.append(starts, len(place))))
    if len(place) and place[0] == last:
        ranks[: starts[1] if len(starts) > 1 else len(place)] += rank
    return ranks
