"""Map of the members of a release for the joint audit: the class of each unit key, without identifiers."""

from __future__ import annotations

import json

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.files import private_folder, write_atomically
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import FILE, SourceFingerprint
from microguard.pipelines.series.corrected_values import value
from microguard.pipelines.series.settings import VERSION
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

#: Names in the evidence of a release: the folder of the map, the folder of its records (Parquet files), and
#: its lists of values.
MEMBERS, UNITS, LISTS = "members", "units.parquet", "lists.json"
#: Maximum number of distinct values of a variable whose values count as publicly known, like a pay scale.
MOST_VALUES = 200


def write_members(frame: DataFrame, specification: Specification, release_id: str, areas: Areas) -> None:
    """Write the map of a release in the format that `pipelines.audit.differencing.members` reads.

    Parameters
    ----------
    frame : DataFrame
        `UNIT` and the published columns of every record; `VERSION` and `original_values` if units have
        several versions.
    specification : Specification
    release_id : str
    areas : Areas
        The map is written to ``members`` in the evidence folder of the release.
    """
    target = private_folder(private_folder(areas.record(release_id)) / MEMBERS)
    place = areas.staging_area(release_id, MEMBERS, target)
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
    means = specification.numeric if specification.method.representative in ("auto", "mean") else ()
    values = [
        f.coalesce(f.col(value(i)), f.lit(0).cast("bigint")).alias(f"value{i}")
        for i in range(len(means))
        if value(i) in frame.columns
    ]
    units = frame.select(f.col(UNIT).alias("unit"), *version, *classes, *sensitive, *values, *weights)
    place.write(units, UNITS)
    place.fetch(UNITS)
    for i, names in enumerate(groups):
        keys = [column(name) for name in [*region, *names]]
        shown = frame.select(classes[i].alias("__class"), *keys).groupBy("__class", *keys)
        place.write(shown.agg(f.count(f.lit(1)).alias("__records")), f"classes{i}.parquet")
        place.fetch(f"classes{i}.parquet")
    about = {
        "release_id": release_id,
        "k": specification.release.k,
        "region": specification.region,
        "groups": groups,
        "means": list(means),
        "sensitive": list(specification.sensitive),
        **({} if weight is None else {"weighted_by": weight}),
    }
    write_atomically(target / "members.json", json.dumps(about))


def write_value_lists(frame: DataFrame, specification: Specification, release_id: str, areas: Areas) -> None:
    """Write the values of variables with few distinct values next to the map, as publicly known lists.

    Parameters
    ----------
    frame : DataFrame
        Records before protection.
    specification : Specification
    release_id : str
        The fingerprint of this release shows which variables have few values; only these are read.
    areas : Areas
    """
    fingerprint = SourceFingerprint.read(areas.record(release_id) / FILE)
    known = {} if fingerprint is None else fingerprint.cells
    counts = {name: known.get((name,)) for name in specification.numeric}
    few = [name for name, cells in counts.items() if cells is not None and cells.whole]
    lists = {}
    for name in (name for name in few if len(known[name,].cells) <= MOST_VALUES):
        values = frame.select(column(name).cast("double").alias("value")).distinct().toPandas()["value"]
        lists[name] = sorted(values.dropna().tolist())
    if lists:
        write_atomically(areas.record(release_id) / MEMBERS / LISTS, json.dumps(lists))
