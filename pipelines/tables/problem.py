"""From cells and `[table]` to what the methods take: sensitive cells, levels, capacities, costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from pipelines.tables.cells import Cells
from schemas.specification.model import Specification
from schemas.specification.table import Table
from sdc.cta import CellTable
from sdc.cta.rules.identical_cells import identical_cells, merged
from sdc.cta.rules.non_negative import kept_non_negative
from sdc.cta.rules.secret_factor import LARGEST_FACTOR, with_secret_levels
from sdc.cta.rules.sensitivity import (
    Sensitivity,
    capacities,
    dominance,
    inverse_costs,
    minimum_contributors,
    minimum_frequency,
    p_percent,
)


@dataclass(frozen=True, eq=False)
class TableProblem:
    """A table to adjust.

    Attributes
    ----------
    by_rule : CellTable
        All cells, with the levels of the rule: what must be kept.
    variables : (cells,) array
        The variable that each cell is: cells that are one and the same share it.
    secret : CellTable
        The variables, with the levels to adjust to: multiplied by the secret factors.
    known : CellTable
        The variables, with levels and capacities as far as an attacker who knows the rule can tell them.
    """

    by_rule: CellTable
    variables: np.ndarray
    secret: CellTable
    known: CellTable


def table_problem(cells: Cells, specification: Specification, key: bytes) -> TableProblem:
    """Apply the rules of a specification to its cells; everything in units of the last published digit.

    Raises
    ------
    SdcError
        Where values, levels and capacities do not make a table.
    """
    table = specification.table
    assert table is not None
    least = table.minimum_frequency or specification.release.k
    rules = list(_rules(cells, table, least))
    found = reduce(or_, rules) if rules else _none(len(cells))
    whole = _cell_table(cells, table, found)
    variables = identical_cells(whole)
    known = merged(_cell_table(cells, table, _as_known(found, cells, table, least)), variables)
    by_rule = kept_non_negative(whole)
    secret = merged(by_rule, variables)
    if table.levels == "secret":
        names = cells.tabulation.identities()
        first = np.unique(variables, return_index=True)[1]
        secret = kept_non_negative(with_secret_levels(secret, key, [names[cell] for cell in first]))
    return TableProblem(by_rule, variables, secret, known)


def _cell_table(cells: Cells, table: Table, found: Sensitivity) -> CellTable:
    lower, upper = np.ceil(found.lower), np.ceil(found.upper)
    down, up = _capacity(cells, table, "lower", lower), _capacity(cells, table, "upper", upper)
    if table.fixed_margins:
        kept = _margins(cells) & ~found.sensitive
        down, up = np.where(kept, 0.0, down), np.where(kept, 0.0, up)
    return CellTable(
        values=cells.units,
        relations=cells.tabulation.relations,
        sensitive=found.sensitive,
        lower_protection=lower,
        upper_protection=upper,
        lower_capacity=np.floor(down),
        upper_capacity=np.floor(up),
        costs=_costs(cells, table),
    )


def _as_known(found: Sensitivity, cells: Cells, table: Table, least: int) -> Sensitivity:
    """Levels as far as the rule tells them: a count below the least is any from one on, whatever it was."""
    if not _counts(table) or cells.contributors is None:
        return found
    widest = (least - 1) * 10.0**table.digits
    few = found.sensitive & (cells.contributors < least)
    return Sensitivity(
        found.sensitive, np.where(few, widest, found.lower), np.where(few, widest, found.upper)
    )


def _counts(table: Table) -> bool:
    return table.kind == "frequency" and not table.weighted


def _rules(cells: Cells, table: Table, least: int) -> Iterator[Sensitivity]:
    counts = cells.contributors
    if counts is not None and least > 1:
        if _counts(table):
            found = minimum_frequency(counts, least)
            scale = 10.0**table.digits
            yield Sensitivity(found.sensitive, found.lower * scale, found.upper * scale)
        else:
            yield minimum_contributors(counts, cells.units, least, table.safety_range)
    if table.dominance is not None:
        yield dominance(cells.largest, cells.units, table.dominance.n, table.dominance.k)
    if table.p_percent is not None:
        yield p_percent(cells.largest, cells.units, table.p_percent)
    if "lower_protection" in cells.given:
        lower, upper = cells.given["lower_protection"], cells.given["upper_protection"]
        yield Sensitivity((lower > 0) | (upper > 0), lower, upper)


def _capacity(cells: Cells, table: Table, side: str, level: np.ndarray) -> np.ndarray:
    """As given, or by percent; a sensitive cell may go as far as any secret factor takes its like.

    With less room, a sensitive total and a sensitive part that makes up nearly all of it, with different
    factors, could not move together.
    """
    given = cells.given.get(f"{side}_capacity")
    return capacities(cells.units, table.capacity, LARGEST_FACTOR * level) if given is None else given


def _none(count: int) -> Sensitivity:
    return Sensitivity(np.zeros(count, dtype=bool), np.zeros(count), np.zeros(count))


def _costs(cells: Cells, table: Table) -> np.ndarray:
    if table.cost_column is not None:
        return cells.given["costs"]
    return inverse_costs(cells.units) if table.costs == "inverse" else np.ones(len(cells))


def _margins(cells: Cells) -> np.ndarray:
    """(cells,) whether a cell is the total of a line."""
    relations = cells.tabulation.relations
    found = np.zeros(len(cells), dtype=bool)
    found[relations.indices[relations.data < 0]] = True
    return found
