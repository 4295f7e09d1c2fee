"""Compute the key of each cell: the sum of its records' secret keys, independent of table and order.

A record's key is a keyed hash of its unit. It is the same in every table, period and release of an evidence
area, under every source and name. Therefore the same records never get a second noise value.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
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
_CONTEXT, _AMOUNTS = b"keys of cells", b"keys of amounts"
#: Separator between a unit and its amount.
SEPARATOR = "\x1f"


def keys_of_cells(frame: DataFrame, specification: Specification, cells: Cells, secret: bytes) -> np.ndarray:
    """Return the (cells,) uint64 keys of counts, 0 for a cell without records.

    Parameters
    ----------
    frame : DataFrame
        The records that `cells` were counted from.
    secret : bytes
        The agency's key. It is sent with the task and does not appear in a query plan.

    Raises
    ------
    InputRejected
        If a unit has several records, or a record has no unit: the noise protects single records.
    """
    several = cells.contributors is None or np.any(cells.contributors != cells.units)
    if several:
        raise InputRejected(
            "Units have several records: noise by cell keys hides one record of each. Give the table one "
            f'record a {specification.unit}, or choose table.method = "adjustment".'
        )
    assert specification.unit is not None
    key = _hashed(secret, _CONTEXT, unit_text(specification.unit, frame))
    return _sums_of_keys(frame, specification, cells, [key])[:, 0]


def keys_of_amounts(
    frame: DataFrame, specification: Specification, cells: Cells, secret: bytes, factors: int
) -> np.ndarray:
    """Return the (cells, factors) uint64 keys of amounts: one for each contributor that adds noise.

    The key of a record is computed from its unit and its amount, not from the name of the variable. The same
    amounts have the same noise in every table. Two variables of the same units have independent noise, so
    that the noise of one discloses nothing about the other. Amounts of 0 have no key: a contributor of 0 does
    not change the noise of a cell.

    Raises
    ------
    InputRejected
        If a record has no unit.
    """
    table, unit = specification.table, specification.unit
    assert table is not None
    assert table.value is not None
    assert unit is not None
    amount = column(table.value).cast("double")
    text = f.concat(unit_text(unit, frame), f.lit(SEPARATOR), amount.cast("string"))
    keys = [
        f.when(amount == 0, f.lit(0)).otherwise(_hashed(secret, _AMOUNTS + bytes([place]), text, amount_text))
        for place in range(factors)
    ]
    known = column(unit).isNotNull()
    return _sums_of_keys(frame, specification, cells, [f.when(known, key) for key in keys])


def amount_text(text: str) -> str:
    """Return unit and amount as one text, with the amount in the canonical form of a float."""
    unit, amount = text.rsplit(SEPARATOR, 1)
    return f"{unit}{SEPARATOR}{float(amount)!r}"


def _sums_of_keys(
    frame: DataFrame, specification: Specification, cells: Cells, keys: list[Column]
) -> np.ndarray:
    """Return the (cells, keys) sums of the keys of records, modulo the span."""
    table = specification.table
    assert table is not None
    names = {name: f"c{position}" for position, name in enumerate(table.columns)}
    labels, places = list(names.values()), [f"{_KEY}{place}" for place in range(len(keys))]
    keyed = frame.select(
        *[label(name, table).alias(alias) for name, alias in names.items()],
        *[key.alias(place) for key, place in zip(keys, places, strict=True)],
    )
    finest = keyed.groupBy(*labels).agg(*map(_sum, places))
    sets = [[f.col(names[name]) for name in kept] for kept in grouping_sets(table)]
    sums = finest.groupingSets(sets, *labels).agg(*map(_sum, places)).toPandas()
    if sums[places].isna().any(axis=None):
        raise InputRejected(
            f"A record has no {specification.unit}, and therefore no key. Give every record a unit."
        )
    sums = sums.rename(columns={alias: name for name, alias in names.items()}).fillna(table.total)
    found = cells.codes.merge(sums, how="left", on=list(cells.codes))[places]
    lost = found.isna().any(axis=1).to_numpy() & (cells.units != 0)
    if lost.any():  # a missing unit would get the key 0, which is publicly known
        raise InputRejected(
            f"{int(lost.sum())} cell(s) have no key: expected cells of records by their own codes. "
            'Choose table.method = "adjustment", or name coarser codes as columns (table.hierarchies).'
        )
    return found.fillna(0).to_numpy(np.uint64)


def _hashed(
    secret: bytes, context: bytes, text: Column, spelled: Callable[[str], str] | None = None
) -> Column:
    derived = hmac.new(secret, context, hashlib.sha256).digest()

    def keys(texts: pa.Array) -> pa.Array:
        listed = texts.to_pylist()
        if spelled is not None:
            listed = [None if each is None else spelled(each) for each in listed]
        hashes = [unit_key(each, derived) for each in listed]
        return pa.array(
            [None if each is None else int.from_bytes(each[:4], "big") for each in hashes], pa.int64()
        )

    hashed = of_texts(keys, t.LongType())
    key: Column = hashed(text)
    return key


def _sum(name: str) -> Column:
    """Return the sum of keys modulo the span; NULL if a record has no key."""
    lost = f.bool_or(f.col(name).isNull())
    return f.when(~lost, f.pmod(f.sum(name), f.lit(KEY_SPAN))).alias(name)
