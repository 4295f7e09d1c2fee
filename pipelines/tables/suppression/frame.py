"""Suppression of the cells of a table of a pandas frame in one call, without Spark, files or a ledger.

Nothing is published and no earlier table is taken into account, unlike with `microguard adjust`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
import pandas as pd
from microguard.sdc.cta.rules.sensitivity import (
    capacities,
    dominance,
    minimum_contributors,
    p_percent,
)
from microguard.sdc.cta.table.relations import Dimension, tabulate
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.suppression import Contributions, Suppression, SuppressionProblem, suppress

COSTS = ("value", "number", "contributors")


@dataclass(frozen=True, eq=False)
class SuppressedFrame:
    """Table with suppressed cells.

    Attributes
    ----------
    frame : DataFrame
        The publishable table: a column for each dimension, the value (NaN where suppressed) and ``status``.
    private : DataFrame
        In the same order ``true``, ``sensitive``, and for sensitive cells ``lowest`` and ``highest``: the
        interval that a reader can compute.
    suppression : Suppression
        Cost, lower bound, gap, and the audit for all attackers.
    """

    frame: pd.DataFrame
    private: pd.DataFrame
    suppression: Suppression

    def grid(self, rows: int = 20, columns: int = 8) -> str:
        """Return the first two dimensions as a grid of text; "x" marks a suppressed cell.

        Cells of further dimensions are summed over. Primary and secondary cells look alike.

        Parameters
        ----------
        rows, columns : int
            Maximum number of codes shown; the last line states how many are left out.
        """
        *dimensions, value, _ = self.frame.columns
        totals = self.frame.iloc[0]
        inside = np.ones(len(self.frame), bool)
        for name in dimensions[2:]:
            inside &= (self.frame[name] == totals[name]).to_numpy()
        cells = self.frame[inside]
        text = cells[value].map(lambda amount: "x" if np.isnan(amount) else f"{amount:,.6g}")
        if len(dimensions) == 1:
            wide = text.to_frame(value).set_axis(cells[dimensions[0]], axis=0)
        else:
            wide = cells.assign(text=text).pivot(index=dimensions[0], columns=dimensions[1], values="text")
            wide = wide.reindex(index=cells[dimensions[0]].unique(), columns=cells[dimensions[1]].unique())
        lines = [wide.fillna("").iloc[:rows, :columns].to_string()]
        if len(wide) > rows or wide.shape[1] > columns:
            lines.append(f"({len(wide)} x {wide.shape[1]} codes; the first {rows} x {columns} are shown)")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return a text with the loss, the proved bounds, and the grid."""
        hidden = int((self.frame["status"] == "suppressed").sum())
        found, sizes = self.suppression, self.private["true"].abs()
        lost = float(sizes[self.frame["status"] == "suppressed"].sum() / max(sizes.sum(), 1e-300))
        if found.optimal:
            proved = "least cost, proved"
        elif found.gap is None:
            proved = "no lower bound was proved"
        else:
            proved = f"at most {100 * found.gap:.2g} % above the least"
        head = (
            f"{hidden} of {len(self.frame)} cells suppressed (x), {100 * lost:.2g} % of the value; {proved}"
        )
        return f"{head}\n{self.grid()}"


def suppress_table(
    frame: pd.DataFrame,
    dimensions: Sequence[str | Sequence[str]],
    value: str,
    *,
    unit: str | None = None,
    minimum_frequency: int | None = 3,
    safety_range: float = 20.0,
    nk: tuple[int, float] | None = (1, 85.0),
    p: float | None = None,
    costs: str = "value",
    capacity: float = 100.0,
    attackers: Sequence[str] = ("outsider", "single", "pair", "unit"),
    effort: str = "standard",
    seed: int = 0,
) -> SuppressedFrame:
    """Suppress the sensitive cells of a table, and further cells so that no attacker can compute the
    sensitive ones.

    Parameters
    ----------
    frame : DataFrame
        One row for each contribution; rows without a value are left out.
    dimensions : sequence
        A column, or the columns of a hierarchy from coarse to fine, for each dimension.
    value : str
        Column that is summed.
    unit : str, optional
        Column of the contributor; by default each row is one.
    minimum_frequency, safety_range : int or None, float
        A cell with fewer contributors is sensitive; its protection levels are `safety_range` percent of its
        value.
    nk : (n, k), optional
        Dominance rule: a cell is sensitive if its n largest contributors exceed k percent of the value.
    p : float, optional
        p-percent rule.
    costs : "value", "number" or "contributors"
    capacity : float
        How closely everybody knows a cell beforehand, in percent of its value.
    attackers, effort, seed
        As in `microguard.sdc.suppression.suppress`.

    Raises
    ------
    InvalidParameter, ImpossibleProtection
    """
    if costs not in COSTS:
        raise InvalidParameter(
            f"costs: expected one of {', '.join(COSTS)}, found {costs!r}", variable="costs"
        )
    levels = [(each,) if isinstance(each, str) else tuple(each) for each in dimensions]
    rows = frame[frame[value].notna()]
    columns = [name for names in levels for name in names]
    named = [*columns, *([] if unit is None else [unit])]
    missing = [name for name in named if rows[name].isna().any()]
    if missing:
        raise InvalidParameter(
            f"{', '.join(missing)}: expected a value in every row, found rows without one. Add a code for "
            "these rows, or leave them out",
            variable=missing[0],
        )
    contributor = pd.Series(np.arange(len(rows)), rows.index) if unit is None else rows[unit]
    rows = rows.assign(__unit=contributor).groupby([*columns, "__unit"], as_index=False)[[value]].sum()
    trees = [Dimension.from_levels(names[-1], *(rows[name] for name in names)) for names in levels]
    codes = [tree.labels(len(names) - 1, rows[names[-1]]) for tree, names in zip(trees, levels, strict=True)]
    tabulation = tabulate(trees, codes)
    cells, records = tabulation.pairs(codes)
    units = np.unique(rows["__unit"].to_numpy(), return_inverse=True)[1]
    own = pd.DataFrame(
        {"cell": cells, "unit": units[records], "amount": rows[value].to_numpy(float)[records]}
    )
    own = own.groupby(["cell", "unit"], as_index=False)[["amount"]].sum()
    values = np.bincount(own["cell"], own["amount"], minlength=tabulation.cells)
    gross = np.bincount(own["cell"], own["amount"].abs(), minlength=tabulation.cells)
    number = np.bincount(own["cell"], minlength=tabulation.cells)
    largest = _largest(own, tabulation.cells, max(nk[0] if nk else 0, 2))
    rules = []
    if minimum_frequency:
        rules.append(minimum_contributors(number, values, minimum_frequency, safety_range, gross))
    if nk:
        rules.append(dominance(largest, values, *nk, gross))
    if p:
        rules.append(p_percent(largest, values, p, gross=gross))
    if not rules:
        raise InvalidParameter("rule: expected minimum_frequency, nk or p, found none of them", variable="nk")
    rule = reduce(or_, rules)
    room = capacities(values, capacity, np.maximum(rule.lower, rule.upper))
    signed = bool(np.any(own["amount"] < 0))
    price = {"value": np.abs(values), "number": np.ones(len(values)), "contributors": number.astype(float)}
    positive = own[own["amount"] != 0]
    problem = SuppressionProblem(
        values=values,
        relations=tabulation.relations,
        primary=rule.sensitive,
        lower_level=rule.lower if signed else np.minimum(rule.lower, values),
        upper_level=rule.upper,
        lower_bound=values - room if signed else np.maximum(values - room, 0.0),
        upper_bound=values + room,
        costs=np.maximum(price[costs], price["value"][values != 0].min() if costs == "value" else 1.0),
        contributions=Contributions(*(positive[name].to_numpy() for name in ("cell", "unit", "amount"))),
    )
    found = suppress(problem, effort=effort, attackers=tuple(attackers), seed=seed)
    shown = {names[-1]: tabulation.codes(place) for place, names in enumerate(levels)}
    hidden = found.suppressed
    lowest, highest = np.full((2, len(values)), np.nan)
    lowest[found.audit.cells], highest[found.audit.cells] = (
        found.audit.lowest[:, 0],
        found.audit.highest[:, 0],
    )
    return SuppressedFrame(
        pd.DataFrame(
            {
                **shown,
                value: np.where(hidden, np.nan, values),
                "status": np.where(hidden, "suppressed", "published"),
            }
        ),
        pd.DataFrame({"true": values, "sensitive": rule.sensitive, "lowest": lowest, "highest": highest}),
        found,
    )


def _largest(own: pd.DataFrame, cells: int, most: int) -> np.ndarray:
    """Return the largest contributions (cells, most), in descending order of size."""
    sizes = own.assign(size=own["amount"].abs()).sort_values(["cell", "size"], ascending=[True, False])
    rank = sizes.groupby("cell").cumcount().to_numpy()
    largest = np.zeros((cells, most))
    top = rank < most
    largest[sizes["cell"].to_numpy()[top], rank[top]] = sizes["size"].to_numpy()[top]
    return largest
