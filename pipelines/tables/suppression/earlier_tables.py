"""Earlier suppressed tables, which are joined to the problem of a later table of the same records.

A reader may have all tables that were ever published. Constraints (lines) of an earlier table narrow the
intervals of suppressed cells that it shares with a new table, and the reverse. So the problem of the new
table contains the cells and lines of the earlier tables. Their published cells stay published, their
suppressed cells stay suppressed, and their sensitive cells must keep their intervals.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from microguard.pipelines.guarantees.original_cells import EarlierCells
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import (
    cell_codes,
    cell_measures,
    identical_members,
    total_measure,
)
from microguard.pipelines.tables.published_before import Places
from microguard.pipelines.tables.suppression.combinations import (
    NotCounted,
    combinations_of,
    may_form_cycle,
    nested_codes,
    same_cells,
)
from microguard.pipelines.tables.suppression.kept_tables import AMOUNTS, EarlierTable, amounts_of
from microguard.schemas.specification.table import Table
from microguard.sdc.errors import NotAdditive
from microguard.sdc.suppression import Contributions, SuppressionProblem
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Joined:
    """Problem followed by the cells of earlier tables, and these cells as the guarantee needs them.

    Attributes
    ----------
    problem : SuppressionProblem
    earlier : EarlierCells or None
    with_combinations : Joined or None
        The same, followed by cells of combinations that no table has, if they may narrow intervals.
    counts_all : bool
        Whether no such cells were left out because they cannot be counted: they are too many, or a value has
        parts.
    """

    problem: SuppressionProblem
    earlier: EarlierCells | None
    with_combinations: Joined | None = None
    counts_all: bool = True

    def suppressed(self, own: np.ndarray) -> np.ndarray:
        """Return the suppressed cells of the joint problem, (cells,), given those of this table."""
        return own if self.earlier is None else np.concatenate([own, self.earlier.suppressed])


def joined(
    problem: SuppressionProblem,
    cells: Cells,
    table: Table,
    before: Iterable[EarlierTable],
    elsewhere: Container[str] = (),
) -> Joined:
    """Join the cells and constraints of earlier tables to a problem.

    A cell of an earlier table equals a cell of this table with the same codes, or with the same contributors
    and value. If the columns of the tables form a cycle, the result has a second problem with the cells of
    their combinations (`combinations`).

    Parameters
    ----------
    elsewhere : ids of the earlier tables of another source or period
        A cell of such a table with the same codes and another value is another cell. The combinations of a
        table with such cells are not counted together with this table.
    """
    places = Places(cells, table)
    arrays = {name: list(array) for name, array in amounts_of(problem).items()}
    flags = {name: list(getattr(problem, name)) for name in ("primary", "keep", "force")}
    seen: dict[Any, int] = {}
    lines: list[sparse.csr_matrix] = []
    measure = total_measure(table)
    named = zip(cell_measures(cells, table), cell_codes(cells, table), strict=True)
    codes = [(row, each) for row, (summed, each) in enumerate(named) if summed == measure]
    own = len(codes)
    contributed = [] if problem.contributions is None else [problem.contributions]
    for earlier in before:
        position = np.empty(len(earlier.cells), np.int64)
        added = np.zeros(len(earlier.cells), bool)
        by_codes = rows = [places.of(cell) for cell in earlier.cells]
        if earlier.release_id in elsewhere:
            rows = [places.equal(cell, found) for cell, found in zip(earlier.cells, by_codes, strict=True)]
        all_alike = rows == by_codes
        for row, cell in enumerate(earlier.cells):
            then = {name: float(earlier.amounts[name][row].scaleb(table.digits)) for name in AMOUNTS}
            found = rows[row]
            identity = cell.measure, cell.members or cell.codes, cell.original
            if found:
                position[row] = found[0]
            elif identity in seen:
                position[row] = seen[identity]
            else:
                position[row] = seen[identity] = len(arrays["units"])
                added[row] = True
                for name in AMOUNTS:
                    arrays[name].append(then[name])
                hidden, sensitive = bool(earlier.suppressed[row]), bool(earlier.sensitive[row])
                flags["primary"].append(sensitive)
                flags["keep"].append(not hidden)
                flags["force"].append(hidden and not sensitive)
            if cell.measure == measure and all_alike:
                codes.append((int(position[row]), cell.codes))
            if not added[row]:
                _stay_protected(arrays, flags, int(position[row]), then, earlier.sensitive[row])
        width = len(arrays["units"])
        to_joint = sparse.csr_matrix(
            (np.ones(len(position)), (np.arange(len(position)), position)), shape=(len(position), width)
        )
        lines.append(sparse.csr_matrix(earlier.relations @ to_joint))
        contributed += _of_added(earlier, position, added, table.digits)
    if len(table.tables) > 1:
        same = same_cells(identical_members(cells, table), cell_codes(cells, table), problem.relations)
        lines += [same] if same.shape[0] else []
    given = problem, arrays, flags, lines, _together(contributed)
    without = _joined(*given)
    if not may_form_cycle(table, [dict(each) for _, each in codes[own:]]):
        return without
    if table.parts:
        return replace(without, counts_all=False)
    nested = [*nested_codes(cells.codes, table), *(each.codes for each in cells.groupings)]
    try:
        extra = combinations_of(codes, without.problem, nested)
    except NotCounted:
        return replace(without, counts_all=False)
    if extra is None:
        return without
    count = len(extra.values)
    amounts = {"units": extra.values, "fall": extra.values, "rise": extra.most - extra.values}
    for name in AMOUNTS:
        arrays[name].extend(amounts.get(name, np.zeros(count)))
    for name in ("primary", "keep", "force"):
        flags[name].extend([name == "force"] * count)
    lines.append(extra.lines)
    try:
        return replace(without, with_combinations=_joined(*given))
    except NotAdditive:  # amounts so different that no solver finds a table exactly
        return replace(without, counts_all=False)


def _joined(
    problem: SuppressionProblem,
    arrays: Mapping[str, list[Any]],
    flags: Mapping[str, list[Any]],
    lines: list[sparse.csr_matrix],
    contributions: Contributions | None,
) -> Joined:
    """Return a problem with further cells, which follow its own in all arrays, and with further lines."""
    if not lines:
        return Joined(problem, None)
    own, width = problem.cells, len(arrays["units"])
    relations = sparse.vstack([_padded(each, width) for each in lines], format="csr")
    whole = {name: np.array(values, float) for name, values in arrays.items()}
    joint = SuppressionProblem(
        values=whole["units"],
        relations=sparse.vstack([_padded(problem.relations, width), relations], format="csr"),
        primary=np.array(flags["primary"]),
        lower_level=whole["lower"],
        upper_level=whole["upper"],
        sliding_level=whole["sliding"],
        lower_bound=whole["units"] - whole["fall"],
        upper_bound=whole["units"] + whole["rise"],
        costs=np.concatenate([problem.costs, np.zeros(width - own)]),
        keep=np.array(flags["keep"]),
        force=np.array(flags["force"]),
        contributions=contributions,
        unit=problem.unit,
    )
    rest = {name: array[own:] for name, array in whole.items()}
    hidden = joint.primary[own:] | joint.force[own:]
    return Joined(
        joint, EarlierCells(**rest, sensitive=joint.primary[own:], suppressed=hidden, relations=relations)
    )


def _stay_protected(
    arrays: dict[str, list[Any]],
    flags: dict[str, list[Any]],
    place: int,
    then: Mapping[str, float],
    sensitive: bool,
) -> None:
    """Keep the levels of a cell in an earlier table, and what readers know there, if they are stricter."""
    if sensitive:
        flags["primary"][place], flags["force"][place] = True, False
        for name in ("lower", "upper", "sliding"):
            arrays[name][place] = max(arrays[name][place], then[name])
    for name, level in (("fall", "lower"), ("rise", "upper")):
        arrays[name][place] = max(min(arrays[name][place], then[name]), arrays[level][place])


def _of_added(
    earlier: EarlierTable, position: np.ndarray, added: np.ndarray, digits: int
) -> list[Contributions]:
    """Return the contributions to the cells that only earlier tables contain."""
    given = earlier.contributions
    cell = given["cell"].to_numpy()
    here = added[cell]
    amounts = [float(Decimal(each).scaleb(digits)) for each in given["amount"].to_pylist()]
    return [Contributions(position[cell[here]], given["unit"].to_numpy()[here], np.array(amounts)[here])]


def _together(contributed: list[Contributions]) -> Contributions | None:
    if not contributed:
        return None
    return Contributions(
        *(
            np.concatenate([getattr(each, name) for each in contributed])
            for name in ("cell", "unit", "amount")
        )
    )


def _padded(matrix: sparse.csr_matrix, width: int) -> sparse.csr_matrix:
    return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))
