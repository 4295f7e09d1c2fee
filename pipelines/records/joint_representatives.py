"""Choose the nominal representatives of all clusters of a file jointly, by the errors of the control tables.

The mode of a cluster drops every rare value in every cluster, and the errors add up (Cost 2023, Example
5.1.2). Tasks store the original values of each cluster. This module gives each cluster one of its own key
combinations, so that k, diversity and the numeric variables do not change.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.job import Job
from microguard.pipelines.records.block import BEFORE, CLUSTER
from microguard.pipelines.records.combinations import coded
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.methods import BY_CONTROL_TABLES
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from microguard.sdc.nominal.aggregation.joint import joint_representatives
from microguard.sdc.nominal.region_levels import RegionLevels
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

#: Maximum number of records for which the clusters of a file are collected for a joint search; larger files
#: publish modes.
MOST_RECORDS = 500_000
_REGION = "__region"


def chosen_together(group: Group, specification: Specification, records: int) -> bool:
    """Return whether the nominal representatives of a clustering are chosen for the control tables.

    Raises
    ------
    ProtectionFailed
        If cells must be preserved, but there are too many records for a joint search.
    """
    if specification.method.representative not in BY_CONTROL_TABLES or not _tables(group, specification):
        return False
    if records > MOST_RECORDS and specification.method.control_tables.kept_dimension:
        raise ProtectionFailed(
            f"The clustering {group.name} has {records:,} records; representatives are chosen together, as "
            f"method.control_tables.kept_dimension requires, for up to {MOST_RECORDS:,}. Omit that key, or "
            "release parts of the file."
        )
    return records <= MOST_RECORDS


def with_joint_representatives(job: Job, stored: DataFrame, group: Group) -> DataFrame:
    """Replace the nominal values of each cluster by its chosen representatives.

    Parameters
    ----------
    stored : DataFrame
        Protected records with `CLUSTER` and, by position, the nominal values `BEFORE`.
    """
    specification = job.specification
    names = _nominal(group, specification)
    before = [f"{BEFORE}{position}" for position in range(len(names))]
    region = f.lit(0) if specification.region is None else column(specification.region)
    cells = (
        stored.groupBy(CLUSTER, region.alias(_REGION), *before)
        .agg(f.count(f.lit(1)).alias("n"))
        .orderBy(CLUSTER, *before)
        .toArrow()
    )
    by_cluster = job.spark.createDataFrame(representatives(cells, group, specification))
    joined = stored.join(f.broadcast(by_cluster), on=CLUSTER, how="left")
    fresh = {name: f.col(f"__new{position}") for position, name in enumerate(names)}
    types = {field.name: field.dataType for field in stored.schema}
    return joined.select(
        *[
            fresh[name].cast(types[name]).alias(name) if name in fresh else column(name)
            for name in stored.columns
        ]
    )


def representatives(cells: pa.Table, group: Group, specification: Specification) -> pa.Table:
    """Return the nominal values chosen for each cluster: `CLUSTER`, ``__new0``, ``__new1``, ...

    Parameters
    ----------
    cells : pyarrow.Table
        Distinct combinations of each cluster: `CLUSTER`, ``__region``, by position the values `BEFORE`, and
        their number of records ``n``; sorted by cluster and values.
    """
    names = _nominal(group, specification)
    before = [f"{BEFORE}{position}" for position in range(len(names))]
    columns = [coded(cells[name]) for name in before]
    regions, _ = coded(cells[_REGION])
    chosen = joint_representatives(
        np.column_stack([codes for codes, _ in columns]),
        cells[CLUSTER].to_numpy(),
        names,
        _tables(group, specification),
        records=cells["n"].to_numpy(),
        regions=None if specification.region is None else regions,
        levels=None
        if specification.region is None
        else RegionLevels.single(int(regions.max(initial=-1)) + 1, specification.region),
        k=specification.release.k,
        kept_dimension=specification.method.control_tables.kept_dimension,
        effort=specification.method.effort,
        seed=specification.release.seed,
    )
    values = {
        f"__new{position}": categories.take(pa.array(chosen.codes[:, position]))
        for position, (_, categories) in enumerate(columns)
    }
    return pa.table({CLUSTER: chosen.labels} | values)


def _nominal(group: Group, specification: Specification) -> tuple[str, ...]:
    return tuple(name for name in group.variables if name in specification.nominal)


def _tables(group: Group, specification: Specification) -> list[tuple[str, ...]]:
    names = {*_nominal(group, specification), specification.region}
    return [table for table in specification.control_tables if set(table) <= names]
