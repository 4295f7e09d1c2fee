"""Problem of cell suppression, built from cells, rules and `[table]`."""

from __future__ import annotations

from typing import Any

import numpy as np
from microguard.pipelines.guarantees.original_cells import Contributed, OriginalCells
from microguard.pipelines.tables.a_priori import FIXED, a_priori_information
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.suppression.earlier_tables import Joined
from microguard.pipelines.tables.suppression.kept_tables import amounts_of
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.schemas.specification.table_input import table_of
from microguard.sdc.cta import CellTable
from microguard.sdc.errors import ImpossibleProtection, SdcError
from microguard.sdc.suppression import SuppressionProblem


def suppression_problem(
    cells: Cells,
    specification: Specification,
    by_rule: CellTable,
    keep: np.ndarray | None = None,
    force: np.ndarray | None = None,
) -> SuppressionProblem:
    """Return the problem in units of the last published digit.

    The capacities of the cells are the prior knowledge of every attacker. If values cannot be negative, a
    lower protection level reaches down to 0 at most, because every attacker knows that.

    Parameters
    ----------
    keep, force : (cells,) boolean arrays, optional
        Cells that were published before (`keep`), and cells that were suppressed before (`force`).

    Raises
    ------
    InputRejected
        If protection levels exceed the prior knowledge of attackers, or a cell must be both published and
        suppressed.
    """
    table = table_of(specification)
    nothing = np.zeros(len(cells), bool)
    a_priori = a_priori_information(cells, specification)
    fixed = nothing if a_priori is None else a_priori.status == FIXED
    keep = fixed if keep is None else keep | fixed
    force = nothing if force is None else force & ~by_rule.sensitive
    lower, upper = by_rule.lower_capacity.copy(), by_rule.upper_capacity.copy()
    level = by_rule.lower_protection.copy()
    level = np.where(lower == np.maximum(cells.units, 0), np.minimum(level, lower), level)
    sliding = np.where(by_rule.sensitive, cells.input_columns.get("sliding_protection", 0.0), 0.0)
    costs = a_priori.costs(_costs(cells, specification)) if a_priori else _costs(cells, specification)
    try:
        return SuppressionProblem(
            values=cells.units,
            relations=by_rule.relations,
            primary=by_rule.sensitive,
            lower_level=level,
            upper_level=by_rule.upper_protection,
            sliding_level=sliding,
            lower_bound=cells.units - lower,
            upper_bound=cells.units + upper,
            costs=costs,
            keep=keep & ~force,
            force=force,
            contributions=cells.contributions,
            unit=1.0,
        )
    except ImpossibleProtection as error:
        raise InputRejected(
            f"Readers would know a sensitive cell too precisely, whatever is suppressed: {error}. Raise "
            f"table.capacity = {table.capacity:g}, or the capacities of these cells. Cells are numbered as "
            "in cells.parquet of the evidence. Nothing was published."
        ) from error
    except SdcError as error:
        raise InputRejected(
            f"The input cannot be tabulated as a table with suppressible cells: {error}. Cells are numbered "
            "as in cells.parquet of the evidence. Nothing was published."
        ) from error


def _costs(cells: Cells, specification: Specification) -> np.ndarray:
    """Return the cost of suppressing each cell; every cost is positive."""
    table = table_of(specification)
    if table.cost_column is not None:
        return cells.input_columns["costs"]
    if table.cost_rule == "value":
        return np.maximum(np.abs(cells.units), 1.0)
    if table.cost_rule == "contributors":
        if cells.contributors is None:
            raise InputRejected(
                'table.costs = "contributors": expected numbers of contributors, found none in the input. '
                'Name their column in table.contributors, or choose "value" or "number".'
            )
        return np.maximum(cells.contributors.astype(float), 1.0)
    return np.ones(len(cells))


def original_cells(cells: Cells, by_rule: CellTable, table: Table, joined: Joined | None) -> OriginalCells:
    """Return the cells before protection; for suppressed tables, with the attackers' prior knowledge."""
    own = len(cells)
    given = None if joined is None else joined.problem.contributions
    amounts: dict[str, Any] = {
        "lower": by_rule.lower_protection,
        "upper": by_rule.upper_protection,
        "fall": by_rule.lower_capacity,
        "rise": by_rule.upper_capacity,
    }
    if joined is not None:
        amounts = {name: array[:own] for name, array in amounts_of(joined.problem).items() if name != "units"}
    return OriginalCells(
        codes=cells.codes,
        units=cells.units,
        sensitive=by_rule.sensitive if joined is None else joined.problem.primary[:own],
        **amounts,
        digits=table.digits,
        zeros_absent=table.counts,
        contributed=None if given is None else Contributed(given.cell, given.unit, given.amount),
        earlier=None if joined is None else joined.earlier,
        stay=None if joined is None else joined.problem.force[:own],
    )
