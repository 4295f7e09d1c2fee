"""Protect frequencies in partitions of whole regions, if there are too many key combinations for one process.

Tasks write the partitions and search them stage by stage (`sdc.nominal.partitions`). The driver holds the
cells that partitions share (those of tables without the region) and the regions. Codes, counts and
reassignments are in the files of the partitions only. The partitions are determined by the key combinations
of the regions, in order, so that the result is the same for any number of tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.compat import apply_in_arrow
from microguard.pipelines.engine.row_hash import DIGESTS
from microguard.pipelines.engine.tasks import in_tasks
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.combinations import (
    COLLISION,
    COUNT,
    Combinations,
    categories_of,
    codes_of,
    in_order,
    keys_of,
    texts_of,
)
from microguard.pipelines.records.part_files import PartFiles
from microguard.pipelines.records.reassignment import moves_schema, write_moves
from microguard.pipelines.records.similarity import distances
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from microguard.sdc.nominal.bounds import free_bound
from microguard.sdc.nominal.distances import Distance
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.partitions.cell_index import CellIndex
from microguard.sdc.nominal.partitions.part import Part, PartitionRequest, Stage, Standing, VisibleErrors
from microguard.sdc.nominal.partitions.reconcile import SharedState, cut_regions
from microguard.sdc.nominal.similarity import Similarity
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

#: Number of values that are read at a time.
_ROWS = 200_000
_PART = "__part"


@dataclass(frozen=True)
class Layout:
    """The key combinations of a file, and their assignment to partitions of regions.

    Attributes
    ----------
    place : StagingArea
    source : str
        Name of the frame that `write_combinations` wrote there.
    names : tuple of str
        The variables.
    keys : dict of str to pyarrow array
        Values of the region, if any, and of each variable, in the order of codes; by column of the file.
    part_of_region : (regions,) int64 array
    distances : mapping of name to Distance, or None if every mismatch costs the same
    """

    place: StagingArea
    source: str
    names: tuple[str, ...]
    keys: dict[str, pa.Array]
    part_of_region: np.ndarray
    distances: Mapping[Hashable, Distance] | None

    @classmethod
    def of(cls, place: StagingArea, source: str, group: Group, specification: Specification) -> Layout:
        """Read the key combinations once, column by column, and decide the layout.

        Raises
        ------
        ProtectionFailed
            If a region has fewer than k records.
        """
        columns = [f"v{i}" for i in range(len(keys_of(group, specification)))]
        keys = {name: categories_of(_pieces(place, source, name)) for name in columns}
        inside, records = np.array([place.rows(source)]), np.array([specification.release.k])
        if specification.region is not None:
            regions = keys["v0"]
            inside, records = (np.zeros(len(regions), np.int64) for _ in range(2))
            for values, counts in zip(*(_pieces(place, source, name) for name in ("v0", COUNT)), strict=True):
                codes = codes_of(values, regions)
                inside += np.bincount(codes, minlength=len(regions))
                np.add.at(records, codes, counts.to_numpy())
        small = int((records < specification.release.k).sum())
        if small:
            raise ProtectionFailed(
                f"Regions: expected at least k = {specification.release.k} records each, found {small} with "
                'fewer. Set blocking.small_regions to "suppress", or merge regions before the run.'
            )
        asked = distances(list(group.variables), specification)
        return cls(place, source, tuple(group.variables), keys, cut_regions(inside), asked)

    @property
    def by_region(self) -> bool:
        """Whether the key combinations have a region."""
        return len(self.keys) > len(self.names)

    @property
    def categories(self) -> tuple[pa.Array, ...]:
        """The values of each variable."""
        return tuple(self.keys.values())[1 if self.by_region else 0 :]

    @property
    def domain_sizes(self) -> np.ndarray:
        """Number of values of each variable."""
        return np.array([len(values) for values in self.categories])

    def combinations(self, part: pa.Table) -> Combinations:
        """Return the key combinations of a partition in order, from the rows of its codes."""
        codes = [part[name].to_numpy() for name in self.keys]
        regions = codes.pop(0) if self.by_region else None
        counts, sizes = part[COUNT].to_numpy(), self.domain_sizes
        frequencies, order = in_order(np.column_stack(codes), sizes, self.names, regions, counts)
        digests = np.column_stack([part[name].to_numpy() for name in DIGESTS])[order]
        return Combinations(frequencies, self.categories, digests)

    def similarity(self, frequencies: FrequencyVector) -> Similarity | None:
        """Return the distances between key combinations, or None."""
        if self.distances is None:
            return None
        return Similarity.of(frequencies, texts_of(self.categories), self.distances)


@dataclass
class CombinationParts:
    """The partitions of a file in the staging area, and the Spark jobs on them.

    Attributes
    ----------
    spark : SparkSession
    layout : Layout
    asked : PartitionRequest
    files : PartFiles
    finished : stages of partitions that are already finished
    """

    spark: SparkSession
    layout: Layout
    asked: PartitionRequest
    files: PartFiles
    finished: int = 0
    _stage: dict[int, int] = field(default_factory=dict)

    @classmethod
    def write(
        cls, spark: SparkSession, layout: Layout, asked: PartitionRequest, place: StagingArea, name: str
    ) -> CombinationParts:
        """Write the partitions, each with the index of its cells.

        Raises
        ------
        ProtectionFailed
            If two combinations have the same digest, or a partition has no combination.
        """
        files = PartFiles(place, name)
        source = layout.place.read(spark, layout.source)
        alike = source.groupBy(*DIGESTS).count().where(f.col("count") > 1).limit(1).count()
        if alike:
            raise ProtectionFailed(COLLISION)
        columns = ", ".join(f"{name} int" for name in layout.keys)
        rest = ", ".join(f"{name} long" for name in (COUNT, *DIGESTS, _PART))
        coded = source.select(*layout.keys, COUNT, *DIGESTS).mapInArrow(_coded(layout), f"{columns}, {rest}")
        written = apply_in_arrow(coded, [_PART], _written(layout, asked, files), f"{_PART} long")
        parts = cls(spark, layout, asked, files)
        if written.count() != len(parts):
            raise ProtectionFailed("A partition of the key combinations is missing. Nothing was published.")
        return parts

    def __len__(self) -> int:
        return int(self.layout.part_of_region.max()) + 1

    @cached_property
    def index(self) -> CellIndex:
        """Build the index of the shared cells, and write to each partition its positions in it."""
        index = self.files.index(0)
        for part in range(1, len(self)):
            index = index.joined(self.files.index(part))
        for part in range(len(self)):
            mine = self.files.index(part)
            places = index.places(mine)
            self.files.write_held(part, SharedState(places, mine.original), index.original[places])
        return index

    def shared_state(self, part: int) -> SharedState:
        """Return the part of the shared state that a partition contributes."""
        return self.files.held(part)

    def advance(self, stage: Stage, portions: Mapping[int, np.ndarray]) -> int:
        """Run one stage of the search, with one task for each partition; return the number of tried moves."""
        asked, files, moving = self.asked, self.files, len(portions)
        tasks = [(part, self._stage.get(part), errors) for part, errors in portions.items()]

        def run_stage(task: tuple[int, int | None, np.ndarray]) -> int:
            number, before, errors = task
            part = files.part(number)
            standing = Standing(part.frequencies.counts) if before is None else files.standing(number, before)
            seen = VisibleErrors(files.original(number), errors, moving)
            after, tried = part.run_stage(asked, stage, seen, standing)
            change = part.errors(after.counts) - part.errors(standing.counts)
            files.write_standing(number, stage.number, after, change)
            return tried

        tried = in_tasks(self.spark, run_stage, tasks)
        for number, before, _ in tasks:
            self._stage[number] = stage.number
            if before is not None:
                self.files.forget_standing(number, before)
        self.finished += len(tasks)
        return sum(tried)

    def change(self, part: int) -> np.ndarray:
        """Return the changes of the shared cells by the last stage of a partition."""
        return self.files.change(part, self._stage[part])

    def finish(self, moves: str) -> list[dict[str, Any]]:
        """Write the reassignments of every partition; return the report of each.

        Raises
        ------
        ProtectionFailed
            If counts are not protected, or do not add up to the number of records.
        """
        layout, files, k = self.layout, self.files, self.asked.k

        def finished(task: tuple[int, int]) -> dict[str, Any] | None:
            number, stage = task
            part, counts = files.part(number), files.standing(number, stage).counts
            frequencies = part.frequencies
            difference = frequencies.region_matrix() @ (counts - frequencies.counts)
            if difference.any() or ((counts != 0) & (counts < k)).any():
                return None
            similar = layout.similarity(frequencies)
            occurring = Combinations(frequencies, layout.categories, files.digests(number), similar)
            return {
                "moves": write_moves(files.place, moves, number, occurring, counts),
                "records": frequencies.records,
                "clusters": int(np.count_nonzero(counts)),
                "chi2": part.chi2_by_region(counts),
                "lower_bound": free_bound(part.tables.original[~part.shared], k),
            }

        reports = in_tasks(self.spark, finished, sorted(self._stage.items()))
        if None in reports:
            raise ProtectionFailed(
                "A partition of the key combinations is not protected. Nothing was published."
            )
        written = [report.pop("moves") for report in reports]
        files.place.commit_parts(moves, written, moves_schema(layout.categories))
        return reports


def _coded(layout: Layout) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Compute in a task the codes of the values and the partition of each key combination."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            codes = {
                name: codes_of(batch[name].cast(values.type), values) for name, values in layout.keys.items()
            }
            region = codes["v0"] if layout.by_region else np.zeros(len(batch), np.int64)
            rest = {name: batch[name] for name in (COUNT, *DIGESTS)}
            yield pa.record_batch({**codes, **rest, _PART: layout.part_of_region[region]})

    return task


def _written(layout: Layout, asked: PartitionRequest, files: PartFiles) -> Callable[[pa.Table], pa.Table]:
    """Write in a task a partition with its index."""

    def task(rows: pa.Table) -> pa.Table:
        number = rows[_PART][0].as_py()
        occurring = layout.combinations(rows)
        files.write_part(Part.of(number, occurring.frequencies, asked), occurring.digests)
        return pa.table({_PART: pa.array([number], pa.int64())})

    return task


def _pieces(place: StagingArea, source: str, name: str) -> Iterator[pa.Array]:
    """Read a column of the key combinations in pieces, in file order."""
    for part in place.parts(source):
        with pq.ParquetFile(place.file(source, part)) as file:
            for batch in file.iter_batches(_ROWS, columns=[name]):
                yield batch.column(0)
