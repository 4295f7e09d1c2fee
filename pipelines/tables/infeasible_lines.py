"""Constraints that prove a table infeasible, named by the codes of their cells."""

from __future__ import annotations

from math import ceil

import numpy as np
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.problem import TableProblem
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.program.infeasible import ImpossibleConstraints
from scipy import sparse

#: Maximum number of constraints in a message, and of parts of each constraint.
_MOST_LINES, _MOST_PARTS = 3, 8


def named(error: ProtectionFailed, cells: Cells, problem: TableProblem, table: Table) -> ProtectionFailed:
    """Return the refusal with a remedy; for finished tables, name the infeasible constraints by codes.

    For records the codes are values of records, and messages never contain these. Without a proof of
    infeasibility the refusal is returned unchanged.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ImpossibleConstraints):
        cause = cause.__cause__
    if cause is None or not len(cause.constraints):
        return error
    if table.source != "cells":
        return ProtectionFailed(f"{error} {_advice(cause, problem, table)}")
    lines = [line_of_codes(cells, problem, int(number)) for number in cause.constraints[:_MOST_LINES]]
    more = len(cause.constraints) - len(lines)
    text = f"{error} The proof: {'; '.join(lines)}{f'; and {more} more constraints' if more else ''}. "
    return ProtectionFailed(text + _advice(cause, problem, table))


def line_of_codes(cells: Cells, problem: TableProblem, line: int) -> str:
    """Return a constraint as "total = part + part" with the codes of each cell; sensitive cells are
    marked.
    """
    relations = sparse.csr_matrix(problem.secret.relations)
    start, stop = relations.indptr[line], relations.indptr[line + 1]
    variables, signs = relations.indices[start:stop], relations.data[start:stop]
    first = np.unique(problem.variables, return_index=True)[1]
    held = np.zeros(len(first), bool) if problem.held is None else np.isfinite(problem.held)

    def name(variable: int) -> str:
        codes = [str(code) for code in cells.codes.iloc[first[variable]]]
        marks = ["sensitive"] if problem.secret.sensitive[variable] else []
        marks += ["published before"] if held[variable] else []
        return " x ".join(codes) + (f" ({', '.join(marks)})" if marks else "")

    total = [name(each) for each in variables[signs < 0]]
    parts = [name(each) for each in variables[signs > 0]]
    shown = parts[:_MOST_PARTS] + ([f"{len(parts) - _MOST_PARTS} more"] if len(parts) > _MOST_PARTS else [])
    return f"{' + '.join(total)} = {' + '.join(shown)}"


def _advice(cause: ImpossibleConstraints, problem: TableProblem, table: Table) -> str:
    """Yield changes that make the constraints feasible; for a single constraint, with the necessary
    capacity.
    """
    ways = []
    percent = capacity_needed(problem, int(cause.constraints[0])) if len(cause.constraints) == 1 else None
    held = problem.held is not None and bool(np.isfinite(problem.held).any())
    given = table.lower_capacity is not None or table.fixed_margins or held
    if percent is not None and percent > table.capacity and not given:
        ways.append(f"set table.capacity to {percent} or more")
    if "capacities" not in table.relax:
        ways.append('allow microguard to widen capacities (table.relax = ["capacities"])')
    if table.fixed_margins:
        ways.append("free the margins (table.fixed_margins = false)")
    ways.append("lower the levels of the sensitive cells, or merge their categories")
    return f"To make it feasible, {'; or '.join(ways)}."


def capacity_needed(problem: TableProblem, line: int) -> int | None:
    """Return the least capacity, in percent of the values, with which a constraint is feasible; None if there
    is none.

    Sensitive cells move by exactly one of their two levels, in the directions that need the least capacity.
    """
    relations = sparse.csr_matrix(problem.secret.relations)
    start, stop = relations.indptr[line], relations.indptr[line + 1]
    variables, signs = relations.indices[start:stop], relations.data[start:stop]
    table = problem.secret
    sensitive = table.sensitive[variables]
    sums = np.zeros(1)
    for cell, sign in zip(variables[sensitive], signs[sensitive], strict=True):
        steps = [table.upper_protection[cell], -table.lower_protection[cell]]
        sums = np.unique(np.concatenate([sums + sign * step for step in steps]))
    room = float(np.abs(table.values[variables[~sensitive]]).sum())
    return ceil(100 * float(np.abs(sums).min()) / room) if room else None
