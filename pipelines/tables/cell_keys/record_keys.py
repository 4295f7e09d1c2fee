"""Compute the keys of cells: sums of the secret keys of their records, independent of table and order.

A record's key is a keyed hash of its unit: the same in every table, period and release of an evidence area,
whatever source or name they go by, so that the same records never get noise a second time.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import pandas as pd
import pyarrow as pa
from microguard.pipelines.engine.compat import of_texts
from microguard.pipelines.intake.unit_key import unit_key, unit_text
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.contributions import label
from microguard.pipelines.tables.cells.microdata import grouping_sets
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

_KEY = "__key"
_CONTEXT = b"keys of cells"


def keys_of_cells(frame: DataFrame, specification: Specification, cells: Cells, secret: bytes) -> np.ndarray:
    """Return the (cells,) uint64 keys, 0 for a cell without records.

    Parameters
    ----------
    frame : DataFrame
        The records that `cells` were counted from.
    secret : bytes
        The agency's key. It travels with the task and stands in no plan that Spark shows.

    Raises
    ------
    InputRejected
        Where a unit has several records, or a record no unit: noise hides one record at a time.
    """
    table, unit = specification.table, specification.unit
    assert table is not None
    assert unit is not None
    several = cells.contributors is None or np.any(cells.contributors != cells.units)
    if several:
        raise InputRejected(
            "Units have several records: noise by cell keys hides one record of each. Give the table one "
            f'record a {unit}, or choose table.method = "adjustment".'
        )
    names = {name: f"c{position}" for position, name in enumerate(table.columns)}
    labels = list(names.values())
    keyed = frame.select(
        *[label(name, table).alias(alias) for name, alias in names.items()],
        _hashed(secret, unit_text(unit, frame)).alias(_KEY),
    )
    finest = keyed.groupBy(*labels).agg(_sum())
    sets = [[f.col(names[name]) for name in kept] for kept in grouping_sets(table)]
    sums = finest.groupingSets(sets, *labels).agg(_sum()).toPandas()
    if sums[_KEY].isna().any():
        raise InputRejected(f"A record has no {unit}, and so no key. Give every record one.")
    sums = sums.rename(columns={alias: name for name, alias in names.items()}).fillna(table.total)
    return _in_order(sums, cells)


def _in_order(sums: pd.DataFrame, cells: Cells) -> np.ndarray:
    columns = list(cells.codes)
    keys = cells.codes.merge(sums, how="left", on=columns)[_KEY]
    return keys.fillna(0).to_numpy(np.uint64)


def _hashed(secret: bytes, unit: Column) -> Column:
    derived = hmac.new(secret, _CONTEXT, hashlib.sha256).digest()

    def keys(texts: pa.Array) -> pa.Array:
        hashes = [unit_key(text, derived) for text in texts.to_pylist()]
        return pa.array(
            [None if each is None else int.from_bytes(each[:4], "big") for each in hashes], pa.int64()
        )

    hashed = of_texts(keys, t.LongType())
    key: Column = hashed(unit)
    return key


def _sum() -> Column:
    """Return the sum modulo the span; NULL if a record has no key."""
    lost = f.bool_or(f.col(_KEY).isNull())
    return f.when(~lost, f.pmod(f.sum(_KEY), f.lit(KEY_SPAN))).alias(_KEY)
