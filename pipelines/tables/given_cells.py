"""Rows of a finished table, prepared for tabulation: codes without blanks, one total mark, computed
margins.
"""

from __future__ import annotations

import pandas as pd
from microguard.pipelines.tables.hierarchy import families
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table

#: Rounding error of floating-point sums, relative to their size.
_FLOAT_TOLERANCE = 1e-9
#: Number of sums that are not equal to a code by chance, unless all are the same.
_SUMS = 3
#: Number of codes of which one is the total. Of two, each has the sum of the other if they are equal.
_CODES = 3


def prepared(rows: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return rows with the codes, the total mark and the margins that a tabulation requires.

    Parameters
    ----------
    rows : DataFrame
        Codes of `Table.columns` in ``c0``, ``c1``, ..., numbers of `Table.numbers` in ``n0``, ..., and
        ``status`` if the table has one.

    Raises
    ------
    InputRejected
        If a total mark is also a code, no cell is a total in a dimension, or margins cannot be computed.
    """
    labels = {name: f"c{position}" for position, name in enumerate(table.columns)}
    rows = rows.assign(**{label: rows[label].str.strip() for label in labels.values()})
    for name, mark in table.totals.items():
        codes = rows[labels[name]]
        if mark != table.total and (codes == table.total).any():
            raise InputRejected(
                f"The column {name} contains the code {table.total!r} in addition to the total mark "
                f"{mark!r} of table.totals. Set table.total to a text that is not a code."
            )
        rows[labels[name]] = codes.replace(mark, table.total)
    if table.margins == "computed":
        return _with_margins(rows, table, labels)
    coarsest = [columns[0] for columns in families(table)]
    without = [name for name in coarsest if not (rows[labels[name]] == table.total).any()]
    if without:
        raise InputRejected(
            f"No cell has the total mark {table.total!r} in {', '.join(without)}: set table.total (or "
            "table.totals for one column) to the code of the total. If the file contains internal cells "
            'only, set table.margins to "computed".'
        )
    return rows


def _with_margins(rows: pd.DataFrame, table: Table, labels: dict[str, str]) -> pd.DataFrame:
    """Return the internal cells and all margins computed from them; largest contributions are merged."""
    given = [name for name in table.numbers if name not in (table.value, table.shadow, table.contributors)]
    foreign = [name for name in given if name not in table.largest]
    if len(table.tables) > 1 or foreign:
        what = (
            f"{len(table.tables)} tables" if len(table.tables) > 1 else f"the column(s) {', '.join(foreign)}"
        )
        raise InputRejected(
            f'Margins cannot be computed with {what} (table.margins = "computed"). Add the margins to the '
            "file."
        )
    keys = list(labels.values())
    if (rows[keys] == table.total).any(axis=None):
        raise InputRejected(
            f"Some cells have the total mark {table.total!r}, expected internal cells only, from which "
            'margins are computed. Remove the totals, or set table.margins to "given".'
        )
    if rows[keys].duplicated().any():
        raise InputRejected("The input contains a cell twice. Keep one row for each combination of codes.")
    value = f"n{table.numbers.index(str(table.value))}"
    for name, label in labels.items():
        _refuse_hidden_total(rows, name, label, [each for each in keys if each != label], value)
    whole = rows
    for columns in families(table):
        parents = table.parents.get(columns[-1])
        whole = _with_ancestors(whole, [labels[name] for name in columns], parents, table.total)
    numbers = {name: f"n{table.numbers.index(name)}" for name in table.numbers}
    sums = [numbers[name] for name in table.numbers if name not in table.largest]
    cells = whole.groupby(keys, sort=True)[sums].sum().reset_index()
    if table.largest:
        sizes = [numbers[name] for name in table.largest]
        long = whole.melt(keys, sizes, value_name="size").sort_values("size", ascending=False, kind="stable")
        long["rank"] = long.groupby(keys).cumcount()
        top = long[long["rank"] < len(sizes)].pivot(index=keys, columns="rank", values="size").fillna(0.0)
        top.columns = pd.Index(sizes[: top.shape[1]])
        cells = cells.merge(top.reset_index(), on=keys)
    if "status" in rows:
        cells = cells.merge(rows[[*keys, "status"]], on=keys, how="left")
    return cells


def _refuse_hidden_total(rows: pd.DataFrame, name: str, label: str, others: list[str], value: str) -> None:
    """Refuse a code whose cells are the sums of the cells of all other codes: a total under another mark.

    Its cells would count as internal ones, and margins would be twice the sums. Everybody could compute a
    suppressed or changed cell from this code. Fewer than three sums may be equal by chance.
    """
    if not others or rows[label].nunique() < _CODES:
        return
    amounts = rows[value].astype(float)
    groups = [rows[each] for each in others]
    sums = amounts.groupby(groups, dropna=False).transform("sum")
    sizes = amounts.abs().groupby(groups, dropna=False).transform("sum")
    near = (2 * amounts - sums).abs() <= _FLOAT_TOLERANCE * sizes
    telling = sums.abs() > _FLOAT_TOLERANCE * sizes
    everywhere = rows[telling].groupby(others, dropna=False).ngroups
    of_code = pd.DataFrame({"near": near, "telling": telling, "amount": amounts.where(telling)})
    of_code = of_code.groupby(rows[label]).agg({"near": "all", "telling": "sum", "amount": "nunique"})
    if (
        everywhere >= _SUMS
        and (of_code["near"] & (of_code["telling"] == everywhere) & (of_code["amount"] > 1)).any()
    ):
        raise InputRejected(
            f"In each of the {everywhere} rows of the table, one code of {name} has the sum of all other "
            'codes: expected internal cells only (table.margins = "computed"), found a total. Remove its '
            'cells, or name its code in table.totals and set table.margins to "given".'
        )


def _with_ancestors(
    rows: pd.DataFrame, columns: list[str], parents: dict[str, str] | None, total: str
) -> pd.DataFrame:
    """Return each row once for its code and once for each of the code's ancestors in one dimension."""
    chains: list[pd.DataFrame] = []
    if parents is None:
        for depth in range(len(columns) + 1):
            chains.append(rows.assign(**dict.fromkeys(columns[depth:], total)))
        return pd.concat(chains, ignore_index=True)
    (column,) = columns
    level = rows
    while True:
        chains.append(level)
        level = level[level[column] != total]
        if level.empty:
            return pd.concat(chains, ignore_index=True)
        level = level.assign(**{column: level[column].map(parents).fillna(total)})
