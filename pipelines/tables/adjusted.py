"""Protect the values of a table by adjustment or by rounding, and write the text of refusals."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from microguard.pipelines.tables.problem import TableProblem
from microguard.schemas.errors import InputRejected, ProtectionFailed
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table
from microguard.sdc.cta import Adjustment, CellTable
from microguard.sdc.cta import adjust as adjust_table
from microguard.sdc.cta.controlled_rounding.controlled_rounding import controlled_rounding, room_beyond
from microguard.sdc.cta.program.infeasible import ImpossibleConstraints, NoSolutionFound
from microguard.sdc.cta.small_counts.small_count_rounding import (
    as_known_to_readers,
    small_count_rounding,
)
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter, SdcError, SolverFailed

#: Function that protects the cells of a problem; if it had to relax limits, it returns a widened problem.
ProtectCells = Callable[[TableProblem, Specification, Table, bytes], tuple[TableProblem, Adjustment]]


def protect_beside_earlier_releases(
    protect_cells: ProtectCells,
    problem: TableProblem,
    specification: Specification,
    table: Table,
    key: bytes,
) -> tuple[TableProblem, Adjustment]:
    """Protect the cells; a refusal names the earlier releases whose published values are kept.

    Raises
    ------
    InputRejected, ProtectionFailed
    """
    try:
        return protect_cells(problem, specification, table, key)
    except ProtectionFailed as error:
        if not problem.releases:
            raise
        raise ProtectionFailed(
            f"{error} Cells of it keep the values that {', '.join(problem.releases[:3])} published. Publish "
            "both tables together (table.tables), leave out a dimension that both have, or let capacities "
            'give way (table.relax = ["capacities"]).'
        ) from error


def whole_adjustment(secret: CellTable, specification: Specification, table: Table) -> Adjustment:
    """Adjust the table to whole units (controlled tabular adjustment).

    Raises
    ------
    ProtectionFailed
    """
    try:
        adjustment = adjust_table(
            secret,
            mode=table.mode,
            algorithm=table.algorithm,
            effort=table.effort,
            seed=specification.release.seed,
        )
    except (ImpossibleProtection, NoSolutionFound, SolverFailed) as error:
        raise refusal(error) from error
    if not adjustment.whole:
        raise ProtectionFailed(
            "No protected table was found whose cells are whole units of the last published digit. Nothing "
            "was published. Raise table.decimals or table.effort, or relax table.preserve."
        )
    return adjustment


def refusal(error: SdcError) -> ProtectionFailed:
    """Return the reason why nothing was published, as a paragraph."""
    return ProtectionFailed(
        f"The table cannot be protected: {error}. Cells are numbered as in cells.parquet of the evidence. "
        "Nothing was published."
    )


def rounded(
    problem: TableProblem, specification: Specification, table: Table, key: bytes
) -> tuple[TableProblem, Adjustment]:
    """Round to multiples of the base; return a widened problem if adjacent multiples do not add up.

    Raises
    ------
    InputRejected, ProtectionFailed
    """
    assert problem.moves is not None
    relax = "adjacent" in table.relax
    try:
        adjustment = controlled_rounding(
            problem.secret,
            problem.moves.base,
            key,
            problem.names,
            problem.held,
            relax=relax,
            effort=table.effort,
        )
    except InvalidParameter as error:
        raise InputRejected(f"The input gives no table of rounded counts: {error}.") from error
    except (ImpossibleProtection, NoSolutionFound) as error:
        if relax:
            raise refusal(error) from error
        advice = 'table.relax = ["adjacent"] allows as few cells as necessary to move further'
        raise refusal(type(error)(f"{error}; {advice}")) from error
    except SolverFailed as error:
        raise refusal(error) from error
    room = room_beyond(problem.secret, adjustment.deviations)
    return (problem if room is None else problem.widened(room)), adjustment


def with_small_counts_rounded(
    problem: TableProblem, specification: Specification, table: Table, key: bytes
) -> tuple[TableProblem, Adjustment]:
    """Round small counts only; return the problem with what readers of the table know.

    Raises
    ------
    InputRejected, ProtectionFailed
    """
    assert problem.moves is not None
    base = problem.moves.base
    try:
        adjustment = small_count_rounding(problem.secret, base, key, problem.names, problem.held)
    except InvalidParameter as error:
        raise InputRejected(f"The input gives no table of rounded counts: {error}.") from error
    except (ImpossibleProtection, SolverFailed) as error:
        raise refusal(error) from error
    known = as_known_to_readers(problem.known, adjustment.values, base)
    return replace(problem, known=known), adjustment


def adjusted(
    problem: TableProblem, specification: Specification, table: Table, key: bytes
) -> tuple[TableProblem, Adjustment]:
    """Adjust the table; if possible, keep its grand total within the limit of the gate.

    Raises
    ------
    ProtectionFailed
    """
    problem, adjustment = _relaxed_if_infeasible(problem, specification, table)
    totals = list(problem.grand_totals)
    share = table.quality.default_limit("max_grand_total_change")
    if share is None:
        return problem, adjustment
    if (np.abs(adjustment.deviations[totals]) <= share * np.abs(problem.secret.values[totals])).all():
        return problem, adjustment
    # An adjustment that keeps the total often costs as much, or little more.
    with suppress(ProtectionFailed):
        adjustment = whole_adjustment(problem.with_kept_totals(share).secret, specification, table)
    return problem, adjustment


def _relaxed_if_infeasible(
    problem: TableProblem, specification: Specification, table: Table
) -> tuple[TableProblem, Adjustment]:
    """Adjust; if constraints prove the table infeasible, relax limits and adjust again.

    Raises
    ------
    ProtectionFailed
    """
    try:
        return problem, whole_adjustment(problem.secret, specification, table)
    except ProtectionFailed as error:
        if not table.relax or not isinstance(error.__cause__, ImpossibleConstraints):
            raise
        try:
            relaxed = problem.relaxed(table)
        except NoSolutionFound as unproved:
            raise refusal(unproved) from unproved
        if relaxed is None:
            raise
    return relaxed, whole_adjustment(relaxed.secret, specification, table)
