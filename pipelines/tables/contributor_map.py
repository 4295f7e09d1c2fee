"""Contributor map of a table for the joint audit: the finest codes of each unit key, the key of its
holding, and keys of its records, without amounts.
"""

from __future__ import annotations

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.files import private_folder
from microguard.pipelines.intake.unit_key import ROW, UNIT, with_unit_key
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.tables.cells.contributions import label
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table_input import table_of
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

#: Folder of the contributor map in the evidence of a release, and the subfolder of its records (Parquet
#: files).
CONTRIBUTORS, UNITS = "contributors", "units.parquet"
_KEY, _RECORD = "__key", "__record"


def has_contributors(specification: Specification) -> bool:
    """Return whether a table has a map of its contributors, so that the joint audit sees sets of them."""
    table = table_of(specification)
    known = specification.unit is not None and table.source == "microdata"
    return known and not (table.counts or table.weighted or table.expanded)


def write_contributors(frame: DataFrame, specification: Specification, release_id: str, areas: Areas) -> None:
    """Write which units are in which finest cell, in the format that `pipelines.audit.joint.partitions`
    reads: a row for each record, with keys of its unit, its holding (or null) and itself. A record without a
    unit is its own unit.

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
    known, holding = f.col(_KEY), f.lit(None).cast("binary")
    if table.holding is not None:
        keyed = with_unit_key(keyed, table.holding, [unit], areas.key())
        of_unit = f.min(UNIT).over(Window.partitionBy(_KEY))
        holding = f.when(known.isNull(), f.col(UNIT)).otherwise(of_unit)
    labels = [label(name, table) for name in table.columns]
    amount = column(str(table.value)).cast("double").cast("string")
    # equal amounts of a unit may be exchanged, so their order does not matter
    number = f.row_number().over(Window.partitionBy(known, amount).orderBy(*labels)).cast("string")
    record = f.concat_ws(" ", f.coalesce(f.hex(known), f.lit("")), amount, number)
    codes = [each.alias(f"code_{name}") for name, each in zip(table.columns, labels, strict=True)]
    records = keyed.select(known, holding.alias("holding"), record.alias(_RECORD), *codes)
    records = with_unit_key(records, _RECORD, [_KEY], areas.key()).withColumnRenamed(UNIT, "record")
    records = records.withColumn("unit", f.coalesce(_KEY, "record"))
    place.write(records.drop(_KEY, _RECORD, ROW), UNITS)
    place.fetch(UNITS)
