"""Measure the distance of a protected table from the original: changed cells, largest and total change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.schemas.specification.table import Table


def change_summary(cells: Cells, table: Table, published: np.ndarray) -> dict[str, Any]:
    """Return the number of changed cells, the largest change in values, and the change of the grand total.

    Parameters
    ----------
    published : (cells,) array
        Protected values in units of the last published digit.

    Returns
    -------
    dict
        ``moved`` (cells), ``largest_change`` (in values), ``grand_total_change`` (relative to the original
        total, signed; 0 if the table has none or it is 0). If all original values are multiples of more than
        one unit and protected values are not, also ``telling_unit``, the greatest common divisor of the
        original values: the last digits then disclose which cells were changed.
    """
    change = published - cells.units
    whole = (cells.codes == table.total).to_numpy().all(axis=1)
    before, moved = cells.units[whole], change[whole]
    relative = moved[before != 0] / np.abs(before[before != 0])
    unit = _common_unit(cells.units)
    telling = table.method == "adjustment" and bool(np.any(np.rint(published) % unit))
    return {
        "moved": int(np.count_nonzero(change)),
        "largest_change": float(np.abs(change).max(initial=0.0)) * 10.0**-table.digits,
        "grand_total_change": float(relative[np.argmax(np.abs(relative))]) if len(relative) else 0.0,
    } | ({"telling_unit": unit * 10.0**-table.digits} if telling else {})


def _common_unit(units: np.ndarray) -> int:
    """Return the greatest common divisor of all values; 1 if all are 0."""
    return max(int(np.gcd.reduce(np.rint(np.abs(units)).astype(np.int64))), 1)


def change_sentence(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence that summarises the section ``table``; nothing for evidence of earlier versions."""
    if "moved" not in section:
        return
    total = section["grand_total_change"]
    kept = f"moved by {100 * total:+.3g} %" if total else "is unchanged"
    yield (
        f"{section['moved']:,} of {section['cells']:,} cells have another value, by "
        f"{section['largest_change']:,.6g} at the most; the grand total {kept}."
    )
    if "telling_unit" in section:
        unit = f"{section['telling_unit']:,.6g}"
        remedy = (
            f"Give the values in units of {unit}" if section["telling_unit"] > 1 else "Lower table.decimals"
        )
        yield (
            f"All original values are multiples of {unit}, and protected ones are not: the last digits "
            f"reveal which cells were moved. {remedy}."
        )
