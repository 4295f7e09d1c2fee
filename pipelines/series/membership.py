"""The map of a release for the joint audit: which unit is in which class, by unit keys, never identifiers."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.engine.files import private_folder, write_atomically
from pipelines.engine.row_hash import content_of
from pipelines.intake.unit_key import UNIT
from pipelines.series.settings import VERSION
from schemas.specification.model import Specification

MEMBERS = "members"


def write_members(frame: DataFrame, specification: Specification, release_id: str, folder: Path) -> None:
    """Write the map of a release in the form that `pipelines.audit.joint.members` reads.

    Parameters
    ----------
    frame : DataFrame
        `UNIT`, where there are several `VERSION`, and the published columns of every record.
    specification : Specification
    release_id : str
    folder : Path
        Evidence folder of the release; the map goes to ``members`` in it.
    """
    target = private_folder(private_folder(folder) / MEMBERS)
    region = [specification.region] if specification.region else []
    groups = [list(group.variables) for group in specification.clusterings]
    classes = [
        f.xxhash64(*content_of([*region, *names])).alias(f"class{i}") for i, names in enumerate(groups)
    ]
    sensitive = [
        f.xxhash64(*content_of([name])).alias(f"sensitive{i}")
        for i, name in enumerate(specification.sensitive)
    ]
    version = [f.col(VERSION).alias("version")] if VERSION in frame.columns else []
    weight = specification.weight_of_means
    weights = [] if weight is None else [column(weight).cast("double").alias("weight")]
    units = frame.select(f.col(UNIT).alias("unit"), *version, *classes, *sensitive, *weights)
    units.write.mode("overwrite").parquet(str(target / "units.parquet"))
    for i, names in enumerate(groups):
        keys = [column(name) for name in [*region, *names]]
        shown = frame.select(classes[i].alias("__class"), *keys).groupBy("__class", *keys)
        shown.agg(f.count(f.lit(1)).alias("__records")).write.mode("overwrite").parquet(
            str(target / f"classes{i}.parquet")
        )
    means = specification.method.representative in ("auto", "mean")
    about = {
        "release_id": release_id,
        "k": specification.release.k,
        "region": specification.region,
        "groups": groups,
        "means": list(specification.numeric) if means else [],
        "sensitive": list(specification.sensitive),
        **({} if weight is None else {"weighted_by": weight}),
    }
    write_atomically(target / "members.json", json.dumps(about))
