"""Protect nominal quasi-identifiers by frequency: the counts of key combinations in the whole file.

Records are counted by distinct key combination of region and quasi-identifiers. All counts are protected
together, because errors in the control tables add up over blocks. `reassignment` carries the protected counts
back to the records.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import DIGESTS, digest
from microguard.pipelines.engine.versions import deciding_versions, in_words
from microguard.pipelines.measures.block_reports import OF_FILE
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.records.combination_blocks import METHODS, proved, solved_by_block
from microguard.pipelines.records.similarity import similarity
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from microguard.sdc.errors import SdcError
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, collapse
from microguard.sdc.nominal.methods import ProtectionTask, chosen, protect_counts
from microguard.sdc.nominal.region_levels import RegionLevels
from microguard.sdc.nominal.similarity import Similarity
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

#: Name of the column with the number of records of a combination, next to its values `v0`, `v1`, ... and its
#: digests.
COUNT = "__count"
NOT_PROTECTED = (
    "The combinations could not be protected: {error}. Nothing was published. Set method.effort or "
    "method.algorithm to another value, or protect fewer quasi-identifiers."
)
COLLISION = "Two key combinations have equal hashes (a collision). Nothing was published; please report this."


@dataclass(frozen=True)
class Combinations:
    """Distinct key combinations, with the region, in the order of their frequency vector.

    Attributes
    ----------
    frequencies : FrequencyVector
    categories : tuple of pyarrow arrays
        Value of each code, by variable.
    digests : (m, 2) int64 array
        Digests by which records are joined to their combination.
    similarity : Similarity or None
        Distances between combinations; None if every mismatch costs the same.
    """

    frequencies: FrequencyVector
    categories: tuple[pa.Array, ...]
    digests: np.ndarray
    similarity: Similarity | None = None


def write_combinations(
    frame: DataFrame, group: Group, specification: Specification, place: StagingArea, name: str
) -> int:
    """Count the records of each key combination, write the counts to staging, and return their number."""
    values = {name: f"v{i}" for i, name in enumerate(keys_of(group, specification))}
    combined = frame.groupBy(*[column(name).alias(alias) for name, alias in values.items()])
    counted = combined.agg(f.count(f.lit(1)).alias(COUNT))
    place.write(counted.select(*values.values(), *digest(list(values.values())), COUNT), name)
    return place.rows(name)


def combinations(place: StagingArea, source: str, group: Group, specification: Specification) -> Combinations:
    """Read all key combinations; a missing value is one more category, the last.

    The columns are read one by one, so that values and codes are not in memory at the same time.
    """
    names = list(group.variables)
    keys = keys_of(group, specification)
    columns = {name: coded(_read(place, source, f"v{i}")) for i, name in enumerate(keys)}
    counts = _read(place, source, COUNT).to_numpy()
    frequencies, order = in_order(
        np.column_stack([columns[name][0] for name in names]),
        np.array([len(columns[name][1]) for name in names]),
        tuple(names),
        None if specification.region is None else columns[specification.region][0],
        counts,
    )
    digests = np.column_stack([_read(place, source, name).to_numpy() for name in DIGESTS])[order]
    if not _all_differ(digests):
        raise ProtectionFailed(COLLISION)
    categories = tuple(columns[name][1] for name in names)
    return Combinations(
        frequencies, categories, digests, similarity(frequencies, texts_of(categories), specification)
    )


def keys_of(group: Group, specification: Specification) -> list[str]:
    """Return the columns of a key combination: the region, if any, and the variables."""
    names = list(group.variables)
    return names if specification.region is None else [specification.region, *names]


def in_order(
    codes: np.ndarray,
    domain_sizes: np.ndarray,
    names: tuple[str, ...],
    regions: np.ndarray | None,
    counts: np.ndarray,
) -> tuple[FrequencyVector, np.ndarray]:
    """Return the frequency vector of distinct key combinations, and the row of each of its positions.

    Raises
    ------
    ProtectionFailed
        If two rows have the same combination.
    """
    frequencies, place = collapse(codes, domain_sizes, names, regions=regions, counts=counts)
    if len(frequencies) != len(counts):
        raise ProtectionFailed(COLLISION)
    order = np.empty(len(place), np.int64)
    order[place] = np.arange(len(place))
    return frequencies, order


def texts_of(categories: Sequence[pa.Array]) -> list[list[str | None]]:
    """Return the values of each variable as text, in the order of their codes."""
    return [values.cast(pa.string()).to_pylist() for values in categories]


def _read(place: StagingArea, source: str, name: str) -> pa.ChunkedArray:
    files = (place.file(source, part) for part in place.parts(source))
    return pa.concat_tables(
        [pq.read_table(file, columns=[name], partitioning=None) for file in files]
    ).column(0)


def _all_differ(digests: np.ndarray) -> bool:
    ordered = digests[np.lexsort(digests.T)]
    return bool((ordered[1:] != ordered[:-1]).any(axis=1).all())


def protected_counts(
    spark: SparkSession, collapsed: Combinations, group: Group, specification: Specification
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Protect the counts of all key combinations; return them with block reports.

    The recommended search and SAFE work on the errors of the whole file at once. All other algorithms come
    from published papers and run block by block in tasks.

    Raises
    ------
    ProtectionFailed
    """
    region = specification.region
    tables = tables_of(group, specification)
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
            parameters=method.algorithm_parameters,
        )
        safe = method.name == "safe"
        name = _safe(method.algorithm, method.effort) if safe else chosen(method.algorithm, task)
        # for these methods, "auto" depends on the size of the file
        fits = method.algorithm == "auto" and not safe
        whole = METHODS[name].whole_file or fits
        if not whole:
            return solved_by_block(spark, task, name, specification.max_block_records)
        return _of_whole_file(task, name)
    except SdcError as error:
        raise ProtectionFailed(NOT_PROTECTED.format(error=error)) from error


def tables_of(group: Group, specification: Specification) -> tuple[tuple[str, ...], ...]:
    """Return the control tables of a clustering."""
    known = {*group.variables, specification.region}
    return tuple(table for table in specification.control_tables if set(table) <= known)


def _regions(frequencies: FrequencyVector) -> int:
    return int(frequencies.region_of().max(initial=-1)) + 1


def _safe(algorithm: str, effort: str) -> str:
    """Return the algorithm that "auto" selects for SAFE: safe-exact if effort is exact, else safe."""
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
        "software": in_words(deciding_versions()),
        **proved(solution, task.tables.chi2(solution.counts), OF_FILE),
        "clusters": int(np.count_nonzero(solution.counts)),
        "seconds": time.monotonic() - start,
    }
    return solution.counts, [report]


def coded(values: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """Return codes in the order of the values, NULL last, and the values of the codes."""
    categories = categories_of([values])
    return codes_of(values, categories), categories


def categories_of(pieces: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Return the distinct values of all pieces in order, NULL last if it occurs."""
    distinct: pa.Array | None = None
    for piece in pieces:
        fresh = pc.unique(piece)
        distinct = fresh if distinct is None else pc.unique(pa.concat_arrays([distinct, fresh]))
    assert distinct is not None
    known = distinct.drop_null()
    known = known.take(pc.array_sort_indices(known))
    return pa.concat_arrays([known, pa.nulls(1, known.type)]) if distinct.null_count else known


def codes_of(values: pa.Array | pa.ChunkedArray, categories: pa.Array) -> np.ndarray:
    """Return the code of each value, (n,) int32: its position among the categories."""
    known = len(categories) - categories.null_count
    codes = pc.fill_null(pc.index_in(values, value_set=categories.slice(0, known)), known)
    return np.asarray(
        codes.to_numpy(zero_copy_only=False) if isinstance(codes, pa.Array) else codes.to_numpy()
    ).astype(np.int32)
