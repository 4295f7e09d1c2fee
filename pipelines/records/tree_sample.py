"""Sample of large strata, on which the trees of blocks are grown.

The sample depends on the content of the records, not on their order or the units of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.frames import with_constants
from microguard.pipelines.engine.row_hash import EXACT_BITS, HASH, with_hash
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.validate import PATTERN, REGION
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Number of categories of a nominal variable that have a coordinate in the trees: the most frequent ones.
TREE_CATEGORIES = 64


def sample_strata(
    frame: DataFrame,
    strata: pa.Table,
    large: np.ndarray,
    share: float,
    numeric: Mapping[str, Scale],
    nominal: Sequence[str],
    specification: Specification,
) -> tuple[pa.Table, np.ndarray]:
    """Draw a sample of the large strata by a hash of the content; return it and the stratum of each record.

    A sample of some of the records depends on the origin of numbers but not on their unit.
    """
    published = [name for name in frame.columns if name in specification.published]
    keys = [column(name).alias(f"__s{i}") for i, name in enumerate(_key_names(specification))]
    large_strata = strata.take(large)
    chosen = with_hash(with_constants(frame, scale_constants(numeric)), published, without_units(numeric))
    if share < 1.0:
        chosen = chosen.where(_lot(numeric) < f.lit(int(-(2**63) + share * 2**64)))
    table = chosen.select(*keys, *[column(name) for name in [*numeric, *nominal]], HASH).toArrow()
    owner = _owner(table, large_strata, large, specification)
    rows = np.flatnonzero(owner >= 0)
    return table.take(pa.array(rows)), owner[rows]


def without_units(scales: Mapping[str, Scale]) -> dict[str, Column]:
    """Return numeric variables in millionths of their standard deviation, so that their hash does not depend
    on units.

    The frame must have the columns of `scale_constants`. A constant variable becomes 0.
    """
    return {
        name: f.rint(
            (column(name).cast("double") - f.col(f"__mean{i}")) / f.col(f"__deviation{i}") * 2.0**20
        ).cast("bigint")
        if scale.deviation > 0
        else f.lit(0).cast("bigint")
        for i, (name, scale) in enumerate(scales.items())
    }


def scale_constants(scales: Mapping[str, Scale]) -> dict[str, float]:
    """Return means and standard deviations of the non-constant variables, under the names that
    `without_units` uses.
    """
    constants: dict[str, float] = {}
    for i, scale in enumerate(scales.values()):
        if scale.deviation > 0:
            constants |= {f"__mean{i}": scale.mean, f"__deviation{i}": scale.deviation}
    return constants


def frequent(values: pa.ChunkedArray) -> pa.Array:
    """Return the most frequent categories of a sample, sorted; ties are resolved by value."""
    counted = pa.TableGroupBy(pa.table({"value": values}), "value").aggregate([("value", "count")])
    ranked = counted.sort_by([("value_count", "descending"), ("value", "ascending")]).slice(
        0, TREE_CATEGORIES
    )
    return ranked["value"].combine_chunks().drop_null().sort()


def _lot(scales: Mapping[str, Scale]) -> Column:
    """Return a hash for the sample, computed from `HASH` and scaled numbers, so that it does not depend on
    units.

    Numbers are divided by their deviation, with 24 significant bits. One outlier can put all other records
    within one millionth of the deviation. The significant bits still distinguish them, so that they are not
    all drawn or all omitted.
    """
    numbers = [
        (column(name).cast("double") / f.col(f"__deviation{i}")).cast("float")
        for i, (name, scale) in enumerate(scales.items())
        if scale.deviation > 0
    ]
    # another hash than the tie-breaking key, because the keys of the sample must cover the whole range of
    # keys
    return f.xxhash64(f.shiftright(f.col(HASH), EXACT_BITS), *numbers, f.lit("sample"))


def _key_names(specification: Specification) -> list[str]:
    return [PATTERN] if specification.region is None else [PATTERN, specification.region]


def _owner(
    table: pa.Table, large_strata: pa.Table, large: np.ndarray, specification: Specification
) -> np.ndarray:
    owner = np.full(len(table), -1, np.int64)
    for row, place in enumerate(large):
        of_stratum = pc.equal(table["__s0"], large_strata[PATTERN][row])
        if specification.region is not None:
            name = large_strata[REGION][row]
            same = pc.equal(table["__s1"], name) if name.is_valid else pc.is_null(table["__s1"])
            of_stratum = pc.and_(of_stratum, pc.fill_null(same, False))
        owner[of_stratum.to_numpy(zero_copy_only=False).astype(bool)] = place
    return owner
