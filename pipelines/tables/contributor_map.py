"""Contributor map of a table for the joint audit: the finest codes of each unit key, and the key of its
holding, without amounts.
"""

from __future__ import annotations

from microguard.pipelines.engine.files import private_folder
from microguard.pipelines.intake.unit_key import UNIT, with_unit_key
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.tables.cells.contributions import label
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

#: Folder of the contributor map in the evidence of a release, and the subfolder of its records (Parquet
#: files).
CONTRIBUTORS, UNITS = "contributors", "units.parquet"
_KEY = "__key"


def has_contributors(specification: Specification) -> bool:
    """Return whether a table has a map of its contributors, so that the joint audit sees sets of them."""
    table = table_of(specification)
    known = specification.unit is not None and table.source == "microdata"
    return known and not (table.counts or table.weighted or table.expanded)


def write_contributors(frame: DataFrame, specification: Specification, release_id: str, areas: Areas) -> None:
    """Write which units are in which finest cell, in the format that `pipelines.audit.joint.partitions`
    reads.

    Only tables of unweighted amounts of units have such a map: only there a cell is a sum over a set of
    units.

    Parameters
    ----------
    frame : DataFrame
        Records that were not rejected, with the columns of the table and the unit.
    specification : Specification
        As written by the user.
    """
    unit = specification.unit
    if unit is None or not has_contributors(specification):
        return
    table = table_of(specification)
    target = private_folder(private_folder(areas.record(release_id)) / CONTRIBUTORS)
    place = areas.staging_area(release_id, CONTRIBUTORS, target)
    keyed = with_unit_key(frame, unit, [unit], areas.key()).withColumnRenamed(UNIT, _KEY)
    if table.holding is not None:
        keyed = with_unit_key(keyed, table.holding, [unit], areas.key())
    codes = [label(name, table).alias(f"code_{name}") for name in table.columns]
    known = keyed.where(f.col(_KEY).isNotNull()).withColumnRenamed(_KEY, "unit")
    units = known.select("unit", *codes).distinct()
    if table.holding is not None:
        holdings = known.groupBy("unit").agg(f.min(UNIT).alias("holding"))
        units = units.join(holdings, on="unit", how="inner")
    place.write(units, UNITS)
    place.fetch(UNITS)
