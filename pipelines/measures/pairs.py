"""Sample of records with their values before and after protection.

Records have no key while they are protected. A hash of their content selects about `SAMPLED` of them,
independently of their order. Perturbative methods number equal records and sample by the key of a record
instead: otherwise a file of few distinct records could have all or none of them in the sample. Sampled
records have their original values in a further column, which protection does not read and which is never
staged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.unit_key import UNIT
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Column that contains the original quasi-identifiers of a sampled record; NULL for all other records.
ORIGINAL = "__original"
#: Size of the sample; shares estimated from it have an error of about one percent.
SAMPLED = 2_000
_PLACES = 1 << 30


@dataclass(frozen=True)
class Pairs:
    """Sampled records, (n,) each, sorted by content.

    Attributes
    ----------
    of : int
        Number of records from which the sample was drawn.
    numeric, nominal : tuple of str
        Quasi-identifiers, in the order of the columns below.
    numbers_before, numbers_after : (n, p) float arrays
        NaN where missing.
    codes_before, codes_after : (n, q) int64 arrays
        Codes of the nominal variables, the same before and after; a missing value has a code.
    categories : tuple of (r,) object arrays
        Value of each code, None where it is missing.
    regions : (n,) int64 array
        Codes of the regions; zeros without regions.
    region_names : (r,) object array
    weights : (n,) float array or None
    """

    of: int
    numeric: tuple[str, ...]
    nominal: tuple[str, ...]
    numbers_before: np.ndarray
    numbers_after: np.ndarray
    codes_before: np.ndarray
    codes_after: np.ndarray
    categories: tuple[np.ndarray, ...]
    regions: np.ndarray
    region_names: np.ndarray
    weights: np.ndarray | None

    def __len__(self) -> int:
        return len(self.regions)


def with_originals(
    frame: DataFrame, specification: Specification, records: int, *identity: Column
) -> DataFrame:
    """Return the records to protect with the column `ORIGINAL`; the sample is drawn by their content or by
    `identity`.
    """
    values = [column(name).alias(f"v{i}") for i, name in enumerate(specification.quasi_identifiers)]
    return frame.withColumn(
        ORIGINAL, f.when(_drawn(frame, specification, records, *identity), f.struct(*values))
    )


def drawn_of(frame: DataFrame, specification: Specification, records: int) -> DataFrame:
    """Return the columns of the sampled records: `UNIT` (the key of the published record) and `ORIGINAL`."""
    drawn = frame.where(_drawn(frame, specification, records))
    return with_originals(drawn, specification, 0).select(UNIT, ORIGINAL)


def _drawn(frame: DataFrame, specification: Specification, records: int, *identity: Column) -> Column:
    """Return for each record whether it is in the sample."""
    published = [name for name in frame.columns if name in specification.published]
    place = f.pmod(f.xxhash64(f.lit("pairs"), *(identity or content_of(published))), f.lit(_PLACES))
    return place < math.ceil(_PLACES * min(1.0, SAMPLED / max(records, 1)))


def drawn_order(frame: DataFrame) -> list[Column]:
    """Return additional sort keys for the sample, because records with equal published values may have
    different originals.
    """
    return [f.col(ORIGINAL)] if ORIGINAL in frame.columns else []


def pairs_of(protected: DataFrame, specification: Specification, records: int) -> Pairs | None:
    """Collect the sampled records; return None if there are none, or if the frame has no column
    `ORIGINAL`.
    """
    if ORIGINAL not in protected.columns:
        return None
    drawn = protected.where(f.col(ORIGINAL).isNotNull()).select(*pair_columns(specification))
    return pairs_from(drawn.toArrow(), specification, records)


def pair_columns(specification: Specification) -> list[Column]:
    """Return the columns of a sampled record, from which `pairs_from` builds the pairs."""
    names = specification.quasi_identifiers
    kinds = _kinds(specification)
    before = [f.col(ORIGINAL)[f"v{i}"].cast(kind).alias(f"b{i}") for i, kind in enumerate(kinds)]
    after = [column(name).cast(kinds[i]).alias(f"a{i}") for i, name in enumerate(names)]
    region = f.lit("") if specification.region is None else column(specification.region).cast("string")
    weight = f.lit(1.0) if specification.weight is None else column(specification.weight).cast("double")
    return [*before, *after, region.alias("region"), weight.alias("weight")]


def pairs_from(drawn: pa.Table, specification: Specification, records: int) -> Pairs | None:
    """Build the pairs from the `pair_columns` of sampled records; return None without sampled records."""
    if len(drawn) == 0:
        return None
    names = specification.quasi_identifiers
    kinds = _kinds(specification)
    drawn = drawn.sort_by([(name, "ascending") for name in drawn.column_names])
    numeric = [i for i, kind in enumerate(kinds) if kind == "double"]
    nominal = [i for i, kind in enumerate(kinds) if kind == "string"]
    coded = [_coded(drawn[f"b{i}"].to_pandas(), drawn[f"a{i}"].to_pandas()) for i in nominal]
    regions, region_names = pd.factorize(drawn["region"].to_pandas(), sort=True)
    return Pairs(
        of=records,
        numeric=tuple(names[i] for i in numeric),
        nominal=tuple(names[i] for i in nominal),
        numbers_before=_columns([drawn[f"b{i}"].to_numpy() for i in numeric], len(drawn), np.float64),
        numbers_after=_columns([drawn[f"a{i}"].to_numpy() for i in numeric], len(drawn), np.float64),
        codes_before=_columns([codes for codes, _, _ in coded], len(drawn), np.int64),
        codes_after=_columns([codes for _, codes, _ in coded], len(drawn), np.int64),
        categories=tuple(values for _, _, values in coded),
        regions=regions.astype(np.int64),
        region_names=np.asarray(region_names, dtype=object),
        weights=None if specification.weight is None else drawn["weight"].to_numpy(),
    )


def _kinds(specification: Specification) -> list[str]:
    return ["double" if n in specification.numeric else "string" for n in specification.quasi_identifiers]


def _columns(columns: list[np.ndarray], rows: int, kind: type) -> np.ndarray:
    return np.column_stack(columns).astype(kind) if columns else np.empty((rows, 0), kind)


def _coded(before: pd.Series, after: pd.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes in the order of the values (missing values last), and the value of each code."""
    codes, values = pd.factorize(pd.concat([before, after]), sort=True)
    absent = len(values)
    codes = np.where(codes < 0, absent, codes).astype(np.int64)
    return codes[: len(before)], codes[len(before) :], np.array([*values, None], dtype=object)
