"""Comparison of methods on one table: the cost of each for users, and the sensitive cells that it
discloses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.feasible_intervals import widest_intervals
from microguard.schemas.method_registry import BUILT_IN
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.schemas.specification.table_input import table_of
from scipy import sparse

#: Keys of `[table]` that apply to every method.
_ALL = set(Table.model_fields) - {
    key for row in BUILT_IN.values() for key in (*row.keys, "method", "preserve", "relax", "zeros", "quality")
}


@dataclass(frozen=True)
class MethodOnTable:
    """Results of one method on a table; shares are of the cells or of the value of all cells.

    Attributes
    ----------
    method : str
    suppressed, changed : float or None
        Shares of the cells that are suppressed, and of those published with a changed value.
    error : float or None
        Mean error of a user, relative to the value, over cells that are not 0. A user estimates a suppressed
        cell by the middle of its interval.
    largest_error : float or None
    value_error : float or None
        Sum of all errors over the sum of all values.
    open_lines : int or None
        Totals that differ from the sum of their parts, among constraints without suppressed cells.
    given_away : int or None
        Sensitive cells that an attacker can estimate more closely than the rule allows.
    reason : str
        Why the method has no figures.
    """

    method: str
    suppressed: float | None = None
    changed: float | None = None
    error: float | None = None
    largest_error: float | None = None
    value_error: float | None = None
    open_lines: int | None = None
    given_away: int | None = None
    reason: str = ""


def with_method(specification: Specification, method: str) -> Specification:
    """Return the specification with another table method, without the keys that this method ignores."""
    table = table_of(specification)
    heeded = _ALL | {key for key in BUILT_IN[method].keys if "." not in key}
    given = {
        name: getattr(table, name)
        for name in table.model_fields_set
        if name in heeded and (name != "costs" or method == table.method)
    }
    given |= {"method": method}
    if method in ("rounding", "small_count_rounding"):
        least = table.minimum_frequency or specification.release.k
        given["base"] = table.base or max(least, 3)
    content = specification.model_dump(exclude_unset=True) | {
        "table": Table(**given).model_dump(exclude_unset=True),
        "publish": specification.publish.model_dump(exclude_unset=True) | {"successive": "accept"},
    }
    from microguard.schemas.specification.read import build_specification

    return build_specification(content, specification.folder)


def row_of(method: str, comparison: Any, metrics: Mapping[str, float]) -> MethodOnTable:
    """Compute the row of a table that one method protected."""
    cells = comparison.cells
    values, given_away = _published(comparison, metrics)
    hidden = np.isnan(values)
    guess = values.copy()
    relations = cells.tabulation.relations
    if hidden.any():
        fall, rise = _read_from_lines(relations, hidden, cells.units)
        lower, upper = widest_intervals(relations, hidden, cells.units, fall, rise)
        guess[hidden] = ((lower + upper) / 2)[hidden]
    error, sizes = np.abs(guess - cells.units), np.abs(cells.units)
    relative = error[sizes > 0] / sizes[sizes > 0]
    whole = (abs(relations) @ hidden.astype(float)) == 0
    open_lines = int(np.sum(np.abs(relations @ np.where(hidden, 0.0, values))[whole] > 0.5))
    return MethodOnTable(
        method,
        suppressed=float(hidden.mean()),
        changed=float(np.mean(~hidden & (values != cells.units))),
        error=float(relative.mean()) if len(relative) else 0.0,
        largest_error=float(relative.max(initial=0.0)),
        value_error=float(error.sum() / sizes.sum()) if sizes.any() else 0.0,
        open_lines=open_lines,
        given_away=given_away,
    )


def _read_from_lines(
    relations: sparse.csr_matrix, hidden: np.ndarray, units: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each suppressed cell's maximum distance from its true value, for a reader who knows no
    contributions.

    If no value is negative, a cell is at least 0. It is at most the sum of the suppressed parts of any
    constraint with a published total.
    """
    far = float(np.abs(units).sum())
    if np.any(units < 0):
        return np.full(len(units), far), np.full(len(units), far)
    rise = np.full(len(units), far)
    for start, stop in zip(relations.indptr[:-1], relations.indptr[1:], strict=True):
        cells, signs = relations.indices[start:stop], relations.data[start:stop]
        parts = cells[(signs > 0) & hidden[cells]]
        if not hidden[cells[signs < 0]].any():
            rise[parts] = np.minimum(rise[parts], units[parts].sum() - units[parts])
    return units.astype(float), rise


def _published(comparison: Any, metrics: Mapping[str, float]) -> tuple[np.ndarray, int]:
    """Return the published values in units, and the number of disclosed sensitive cells."""
    if hasattr(comparison, "audit"):
        narrow = comparison.audit.too_narrow.any(axis=1).sum() if comparison.audit is not None else 0
        return np.asarray(comparison.values, float), int(narrow)
    if hasattr(comparison, "noisy"):
        return comparison.noisy.values.astype(float), int(metrics.get("counts_determined", 0))
    attacker = comparison.sections["attacker"]
    away = max(attacker["below_protection"], attacker["below_unit"], attacker["not_judged"])
    return comparison.adjustment.values[comparison.problem.variables], int(away)


def format_methods(rows: Sequence[MethodOnTable]) -> list[str]:
    """Format the rows as lines of a table with a header."""
    columns = [
        ["method", *(row.method for row in rows)],
        *(
            [title, *(_share(getattr(row, name)) for row in rows)]
            for title, name in (
                ("suppressed", "suppressed"),
                ("changed", "changed"),
                ("mean error", "error"),
                ("largest error", "largest_error"),
                ("error of value", "value_error"),
            )
        ),
        ["totals that do not add up", *(_count(row.open_lines) for row in rows)],
        ["cells given away", *(_count(row.given_away) for row in rows)],
    ]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True))
        for line in zip(*columns, strict=True)
    ]
    return [*lines, *(f"{row.method}: {row.reason}" for row in rows if row.reason)]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)
