"""Problem of a method, built from cells and `[table]`: sensitive cells, levels, capacities, costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import numpy as np
from microguard.pipelines.tables.a_priori import APriori, a_priori_information
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import draw_identities, identical_members, origin_of
from microguard.pipelines.tables.preserved import quality_of
from microguard.pipelines.tables.published_before import (
    PublishedValues,
    StandingValueFails,
    held_values,
    keep_standing,
    refuse_other_multiples,
)
from microguard.pipelines.tables.sensitive_zeros import refuse_fixed_zeros, refuse_levels_of_zero
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.controlled_rounding.controlled_rounding import with_adjacent_multiples
from microguard.sdc.cta.controlled_rounding.transition import rounding_odds
from microguard.sdc.cta.counts.consistent import consistent_draws
from microguard.sdc.cta.counts.count_table import as_known, as_rounded, totals, with_draws
from microguard.sdc.cta.counts.draw import drawn_counts, transition
from microguard.sdc.cta.program.infeasible import NoSolutionFound
from microguard.sdc.cta.program.relaxation import Relaxation, relax
from microguard.sdc.cta.rules.identical_cells import identical_cells, table_of_variables
from microguard.sdc.cta.rules.non_negative import kept_non_negative, with_zeros_unknown
from microguard.sdc.cta.rules.secret_factor import with_room_for_factors, with_secret_levels
from microguard.sdc.cta.rules.sensitivity import (
    Sensitivity,
    capacities,
    dominance,
    inverse_costs,
    minimum_contributors,
    minimum_frequency,
    p_percent,
    requested,
)
from microguard.sdc.cta.small_counts.small_count_rounding import (
    small_count_odds,
    with_room_for_small_counts,
)
from microguard.sdc.cta.table.summation import Summation


@dataclass(frozen=True, eq=False)
class CountMoves:
    """Values to which small counts may be drawn, and their probabilities; unlike the draws, these are public.

    Attributes
    ----------
    base : int
        Small counts are published as 0, the base or twice the base.
    odds : (2 base, 3) array
        Probability of each of these three values, for the counts 0 to 2 base - 1.
    least : int
        The smallest count that may be known.
    everywhere : bool
        Whether all small cells, totals included, are published as multiples of the base.
    """

    base: int
    odds: np.ndarray
    least: int
    everywhere: bool = False


@dataclass(frozen=True, eq=False)
class TableProblem:
    """Table to adjust.

    Attributes
    ----------
    by_rule : CellTable
        All cells, with the protection levels of the rule, which the table must keep.
    variables : (cells,) array
        Number of the variable of each cell; identical cells, such as a total and its single part, share a
        variable.
    secret : CellTable
        The variables, with the levels for the adjustment. For magnitudes these are the levels of the rule
        times secret factors. Small counts must move exactly to the value drawn. For rounding, each variable
        has capacity up to its adjacent multiples.
    known : CellTable
        The variables, with the levels and capacities that an attacker who knows rule and method can infer.
    names : (variables,) tuple
        Name of each variable in the secret draws.
    moves : CountMoves or None
        How the key moves small counts; None if small counts are not drawn.
    held : (variables,) array or None
        Earlier published value of each variable, which it must keep; NaN if there is none.
    relaxation : Relaxation or None
        Capacity that was added because the table could not be protected without it.
    releases : tuple of str
        Ids of the releases that published the held values.
    grand_totals : tuple of int
        Variables that are the total of a whole table.
    """

    by_rule: CellTable
    variables: np.ndarray
    secret: CellTable
    known: CellTable
    names: tuple[str, ...] = ()
    moves: CountMoves | None = None
    held: np.ndarray | None = None
    relaxation: Relaxation | None = None
    releases: tuple[str, ...] = ()
    grand_totals: tuple[int, ...] = ()

    def with_kept_totals(self, share: float) -> TableProblem:
        """Return the problem in which non-sensitive grand totals may change by at most this share of their
        values.
        """
        totals = [each for each in self.grand_totals if not self.secret.sensitive[each]]
        most = np.full(self.secret.cells, np.inf)
        most[totals] = np.floor(share * np.abs(self.secret.values[totals]))
        lower, upper = (np.minimum(c, most) for c in (self.secret.lower_capacity, self.secret.upper_capacity))
        return replace(self, secret=replace(self.secret, lower_capacity=lower, upper_capacity=upper))

    def relaxed(self, table: Table) -> TableProblem | None:
        """Return the problem relaxed as little as possible by the steps of `table.relax`; None if no step
        suffices.

        Raises
        ------
        NoSolutionFound
        """
        steps = [step for step in table.relax if step != "adjacent"]
        standing = None if self.held is None else np.isfinite(self.held)
        relaxation = relax(self.secret, table.mode, steps, standing)
        return None if relaxation is None else self.widened(relaxation)

    def widened(self, room: Relaxation) -> TableProblem:
        """Return the problem with larger capacities, also in `known`, because attackers know the
        relaxation.
        """
        return replace(self, secret=room.apply(self.secret), known=room.apply(self.known), relaxation=room)


def table_problem(
    cells: Cells, specification: Specification, key: bytes, standing: PublishedValues | None = None
) -> TableProblem:
    """Apply the rules of a specification to its cells; all amounts are in units of the last published digit.

    Parameters
    ----------
    cells : Cells
    specification : Specification
    key : bytes
        The secret from which factors and draws are computed.
    standing : PublishedValues, optional
        Earlier published values of cells of this table; they are kept.

    Raises
    ------
    SdcError
        If values, levels and capacities are inconsistent, or an earlier value does not protect its cell.
    """
    table = specification.table
    assert table is not None
    least = table.minimum_frequency or specification.release.k
    by_rule = rule_table(cells, specification)
    variables = identical_cells(by_rule, identical_members(cells, table))
    by_variable = table_of_variables(by_rule, variables)
    names = _names(cells, variables, draw_identities(cells, table, origin_of(specification)))
    moves = _moves(cells, table, least)
    if moves is not None:
        _refuse_counts_of_others(cells, by_rule, least)
    releases = () if standing is None else standing.releases
    try:
        held = np.full(by_variable.cells, np.nan) if standing is None else held_values(variables, standing)
        secret, known = _levels(cells, table, by_variable, moves, key, names, held)
        secret = keep_standing(secret, by_variable, held)
    except (StandingValueFails, NoSolutionFound) as error:
        if not releases:
            raise
        raise type(error)(f"{error} (values of {', '.join(releases[:3])})") from error
    whole = (cells.codes == table.total).to_numpy().all(axis=1)
    totals = tuple(int(each) for each in np.unique(variables[whole]))
    return TableProblem(
        by_rule, variables, secret, known, tuple(names), moves, held, releases=releases, grand_totals=totals
    )


def _levels(
    cells: Cells,
    table: Table,
    by_variable: CellTable,
    moves: CountMoves | None,
    key: bytes,
    names: list[str],
    held: np.ndarray,
) -> tuple[CellTable, CellTable]:
    """Return the table with the levels for the adjustment, and the table as an attacker knows it."""
    if table.method == "rounding":
        assert moves is not None
        refuse_other_multiples(held, moves.base)
        return with_adjacent_multiples(by_variable, moves.base), as_rounded(by_variable, moves.base)
    if table.method == "small_count_rounding":
        assert moves is not None
        return with_room_for_small_counts(by_variable, moves.base), by_variable
    if moves is not None:
        return _as_counts(by_variable, moves.base, key, names, held)
    if table.levels == "secret":
        known = with_room_for_factors(with_zeros_unknown(by_variable), table.spread)
        return _as_signed(cells, table, with_secret_levels(by_variable, key, names, table.spread)), known
    return by_variable, by_variable


def rule_table(cells: Cells, specification: Specification) -> CellTable:
    """Return the cells with the levels and capacities that the rules of a specification determine.

    Raises
    ------
    SdcError
        If values, levels and capacities are inconsistent.
    """
    table = specification.table
    assert table is not None
    rules = list(_rules(cells, table, table.minimum_frequency or specification.release.k))
    by_rules = reduce(or_, rules) if rules else _none(len(cells))
    a_priori = a_priori_information(cells, specification)
    return _as_signed(cells, table, _cell_table(cells, table, by_rules, a_priori))


def _as_signed(cells: Cells, table: Table, problem: CellTable) -> CellTable:
    """Return the table with values that remain non-negative, unless some contributions are negative.

    Sums of another variable (`table.shadow`) do not determine the sign of contributions.
    """
    known = cells.gross is not None and table.shadow is None
    signed = known and bool(np.any(cells.gross > np.abs(cells.units)))
    return problem if signed else kept_non_negative(problem)


def few_with_nothing(cells: Cells, specification: Specification) -> np.ndarray | None:
    """Return whether a magnitude cell has fewer contributors than the minimum, and all of them contribute 0.

    No protection range hides such a zero. A listed zero discloses that each contributor has 0. If the cell is
    left out, readers cannot tell it from a cell without contributors. Returns a (cells,) array; None for
    counts, or if the number of contributors is unknown.
    """
    table = specification.table
    assert table is not None
    if table.kind == "frequency" or cells.contributors is None:
        return None
    least = table.minimum_frequency or specification.release.k
    few = (cells.contributors > 0) & (cells.contributors < least)
    return few & (cells.units == 0) & (_gross(cells) == 0)


def _gross(cells: Cells) -> np.ndarray:
    """Return the sums of absolute contributions (cells,), or of the known ones if not all are known."""
    return cells.largest.sum(axis=1) if cells.gross is None else cells.gross


def _moves(cells: Cells, table: Table, least: int) -> CountMoves | None:
    """Return the possible draws of small counts; None if the specification sets protection levels instead."""
    if table.method == "small_count_rounding":
        assert table.base is not None
        return CountMoves(table.base, small_count_odds(table.base), least, everywhere=True)
    if table.base is not None:
        return CountMoves(table.base, rounding_odds(table.base), least, everywhere=True)
    has_levels = "lower_protection" in cells.input_columns
    if table.counts and table.levels == "secret" and least > 1 and not has_levels:
        return CountMoves(least, transition(least), least)
    return None


def _refuse_counts_of_others(cells: Cells, by_rule: CellTable, least: int) -> None:
    """Refuse sensitive cells whose count differs from their number of contributors.

    Draws depend on the size of a count: 9 records of one unit are a large count and would not be changed.

    Raises
    ------
    InputRejected
    """
    if cells.contributors is None:
        return
    others = by_rule.sensitive & (cells.contributors != cells.units)
    if others.any():
        raise InputRejected(
            f"{int(others.sum())} cell(s) have fewer than {least} contributors but a larger count, because "
            "units have several records. Rounding and adjustment depend on the count and do not hide how "
            "few units contribute. Nothing was published. Use a table with one record of each unit, or "
            'choose table.method = "suppression".'
        )


def _names(cells: Cells, variables: np.ndarray, identities: Sequence[str]) -> list[str]:
    """Return the identity of each variable that its draw depends on: that of its finest cell."""
    depth = np.count_nonzero(cells.tabulation.nodes, axis=1)
    order = np.lexsort((np.arange(len(cells)), -depth, variables))
    first = order[np.unique(variables[order], return_index=True)[1]]
    return [identities[int(cell)] for cell in first]


def _as_counts(
    by_variable: CellTable, base: int, key: bytes, names: list[str], held: np.ndarray
) -> tuple[CellTable, CellTable]:
    """Return the table with drawn small counts, and the table as an attacker knows it."""
    counts = by_variable.values
    drawn = drawn_counts(counts, base, key, names)
    if np.isfinite(held).any() or Summation.from_relations(by_variable.relations) is None:
        drawn = consistent_draws(by_variable.relations, counts, drawn, base, totals(by_variable), held)
    secret = with_draws(by_variable, counts, drawn, base)
    return secret, as_known(secret, counts, base)


def _cell_table(cells: Cells, table: Table, by_rules: Sensitivity, a_priori: APriori | None) -> CellTable:
    sensitivity = by_rules if a_priori is None else a_priori.sensitivity(by_rules, cells, table)
    refuse_levels_of_zero(sensitivity)
    lower, upper = np.ceil(sensitivity.lower), np.ceil(sensitivity.upper)
    down, up = _capacity(cells, table, "lower", lower), _capacity(cells, table, "upper", upper)
    costs = _costs(cells, table)
    if a_priori is not None:
        down, up, costs = (
            a_priori.capacity("lower", down),
            a_priori.capacity("upper", up),
            a_priori.costs(costs),
        )
    if table.fixed_margins:
        fixed = _margins(cells) & ~sensitivity.sensitive
        down, up = np.where(fixed, 0.0, down), np.where(fixed, 0.0, up)
    if a_priori is not None:
        refuse_fixed_zeros(cells, a_priori, np.floor(up) < upper)
    return CellTable(
        values=cells.units,
        relations=cells.tabulation.relations,
        sensitive=sensitivity.sensitive,
        lower_protection=lower,
        upper_protection=upper,
        lower_capacity=np.floor(down),
        upper_capacity=np.floor(up),
        costs=costs,
        quality=quality_of(cells, table),
    )


def _rules(cells: Cells, table: Table, least: int) -> Iterator[Sensitivity]:
    counts = cells.contributors
    sums = cells.units if table.shadow is None else _gross(cells)
    asked = cells.input_columns.get("protected_contributors")
    if counts is not None and least > 1:
        if table.counts:
            sensitivity = minimum_frequency(counts, least)
            scale = 10.0**table.digits
            yield Sensitivity(sensitivity.sensitive, sensitivity.lower * scale, sensitivity.upper * scale)
        else:
            few = minimum_contributors(counts, cells.units, least, table.safety_range, gross=_gross(cells))
            yield few if asked is None else few.only(asked > 0)
    for rule in table.dominance:
        found = dominance(cells.largest, sums, rule.n, rule.k, gross=cells.gross)
        yield found if asked is None else found.only(cells.input_columns["protected_rank"] <= rule.n)
    p = table.estimable_within
    if p is not None:
        protected = cells.input_columns.get("protected_largest")
        yield p_percent(cells.largest, sums, p, q=table.q_percent, gross=cells.gross, protected=protected)
    if table.request is not None:
        shares = cells.input_columns["protected_share"]
        yield requested(cells.largest, sums, shares, table.safety_range)
    if "lower_protection" in cells.input_columns:
        lower, upper = cells.input_columns["lower_protection"], cells.input_columns["upper_protection"]
        yield Sensitivity((lower > 0) | (upper > 0), lower, upper)


def _capacity(cells: Cells, table: Table, side: str, level: np.ndarray) -> np.ndarray:
    """Return the capacity: the column in the input, otherwise a share of the value and at least the cell's
    level.
    """
    capacity_column = cells.input_columns.get(f"{side}_capacity")
    return capacities(cells.units, table.capacity, level) if capacity_column is None else capacity_column


def _none(count: int) -> Sensitivity:
    return Sensitivity(np.zeros(count, dtype=bool), np.zeros(count), np.zeros(count))


def _costs(cells: Cells, table: Table) -> np.ndarray:
    if table.cost_column is not None:
        return cells.input_columns["costs"]
    return inverse_costs(cells.units) if table.costs == "inverse" else np.ones(len(cells))


def _margins(cells: Cells) -> np.ndarray:
    """Return for each cell whether it is the total of a constraint."""
    relations = cells.tabulation.relations
    margins = np.zeros(len(cells), dtype=bool)
    margins[relations.indices[relations.data < 0]] = True
    return margins
