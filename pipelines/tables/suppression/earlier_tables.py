"""Suppressed tables in the evidence, which are joined to the problem of a later table of the same records.

A reader may have all tables that were ever published. Constraints (lines) of an earlier table narrow the
intervals of suppressed cells that it shares with a new table, and the reverse. So the problem of the new
table contains the cells and lines of the earlier tables. Their published cells stay published, their
suppressed cells stay suppressed, and their sensitive cells must keep their intervals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.guarantees.original_cells import Contributed, EarlierCells, OriginalCells
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.tables.cells.cell_list import CELLS as LIST
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import (
    cell_codes,
    cell_measures,
    identical_members,
    total_measure,
)
from microguard.pipelines.tables.files import decimals
from microguard.pipelines.tables.published_before import Places, PublishedCell
from microguard.pipelines.tables.suppression.combinations import (
    NotCounted,
    combinations_of,
    may_form_cycle,
    nested_codes,
    same_cells,
)
from microguard.pipelines.tables.suppression.jj import FURTHER
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.table import Table
from microguard.sdc.errors import NotAdditive
from microguard.sdc.suppression import Contributions, SuppressionProblem
from scipy import sparse

CELLS, LINES, CONTRIBUTIONS = "suppressed_cells.parquet", "lines.parquet", "contributions.parquet"
_AMOUNTS = ("units", "lower", "upper", "sliding", "fall", "rise")


@dataclass(frozen=True, eq=False)
class EarlierTable:
    """A suppressed table that was published before.

    Attributes
    ----------
    cells : list of PublishedCell
        Cells with true values and contributors.
    amounts : mapping of `_AMOUNTS` to (cells,) arrays, as exact decimals in values
    sensitive, suppressed : (cells,) boolean arrays
    relations : sparse (lines, cells)
    contributions : table of ``cell``, ``unit`` and ``amount``
    attackers : tuple of str
        Kinds of attacker against whom the table promises protection.
    release_id : str
    """

    cells: list[PublishedCell]
    amounts: dict[str, list[Decimal]]
    sensitive: np.ndarray
    suppressed: np.ndarray
    relations: sparse.csr_matrix
    contributions: pa.Table
    attackers: tuple[str, ...]
    release_id: str


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


def write_suppressed(
    folder: Path,
    cells: Cells,
    table: Table,
    joined: Joined,
    suppressed: np.ndarray,
    lines: int,
    attackers: tuple[str, ...],
) -> None:
    """Write the cells, constraints and contributions of a problem to the evidence.

    Parameters
    ----------
    suppressed : (cells of this table,) boolean array
    lines : int
        Number of the lines that belong to this table.
    attackers : tuple of str
        Kinds of attacker against whom the table promises protection.
    """
    own, problem = len(cells), joined.problem
    arrays, none = amounts_of(problem), [None] * (problem.cells - own)
    members = [None] * own if cells.members is None else [str(each) or None for each in cells.members]
    columns: dict[str, Any] = {
        "own": np.arange(problem.cells) < own,
        "measure": cell_measures(cells, table) + none,
        "codes": [json.dumps(codes) for codes in cell_codes(cells, table)] + none,
        "members": pa.array(members + none, pa.string()),
        "sensitive": problem.primary,
        "suppressed": joined.suppressed(suppressed),
    }
    for name in _AMOUNTS:
        whole = decimals(np.rint(arrays[name][:own]), table.digits)
        # cells that no table has are no whole numbers of units
        exact = decimals(np.rint(arrays[name][own:] * 10.0**FURTHER), table.digits + FURTHER)
        columns[name] = [str(each) for each in (*whole, *exact)]
    promised = {"attackers": json.dumps(attackers)}
    pq.write_table(pa.table(columns).replace_schema_metadata(promised), folder / CELLS)
    entries = problem.relations.tocoo()
    rows = {"line": entries.row, "cell": entries.col, "sign": entries.data.astype(np.int8)}
    pq.write_table(pa.table({**rows, "own": entries.row < lines}), folder / LINES)
    given = problem.contributions or Contributions(np.empty(0), np.empty(0), np.empty(0))
    amounts = [str(each) for each in decimals(np.rint(given.amount), table.digits)]
    contributed = {"cell": given.cell, "unit": given.unit, "amount": pa.array(amounts, pa.string())}
    pq.write_table(pa.table(contributed), folder / CONTRIBUTIONS)


def read_suppressed(folder: Path, release_id: str) -> EarlierTable:
    """Read the table of a release from its evidence, without the tables that were joined to it.

    Raises
    ------
    GateRefused
        If a file is lost.
    """
    lost = [name for name in (CELLS, LINES, CONTRIBUTIONS) if not (folder / name).is_file()]
    if lost:
        raise GateRefused(
            f"The evidence of the table {release_id} is lost: expected {', '.join(lost)} in its folder, "
            "found none. Without it, the knowledge of readers about its suppressed cells cannot be "
            "counted. Nothing was published. Restore the evidence area from its back-up."
        )
    kept = pq.read_table(folder / CELLS)
    attackers = tuple(json.loads(kept.schema.metadata[b"attackers"]))
    kept = kept.filter(kept["own"])
    amounts = {name: [Decimal(each) for each in kept[name].to_pylist()] for name in _AMOUNTS}
    suppressed = kept["suppressed"].to_numpy()
    cells = [
        PublishedCell("", "", measure, tuple((str(n), str(c)) for n, c in json.loads(codes)),
                      None if hidden else original, 0, release_id, original, members)
        for measure, codes, members, hidden, original in zip(
            *(kept[name].to_pylist() for name in ("measure", "codes", "members", "suppressed")),
            amounts["units"], strict=True)
    ]  # fmt: skip
    relations = _read_lines(folder, own=True, width=len(cells))
    given = pq.read_table(folder / CONTRIBUTIONS)
    given = given.filter(pc.less(given["cell"], len(cells)))
    sensitive = kept["sensitive"].to_numpy()
    return EarlierTable(cells, amounts, sensitive, suppressed, relations, given, attackers, release_id)


def kept_original(folder: Path, manifest: Mapping[str, Any]) -> OriginalCells | None:
    """Read the cells of a suppressed table before protection from its evidence; None if there are none.

    Parameters
    ----------
    folder : Path
        Folder of the evidence of the release.
    manifest : mapping
        Manifest of the release.
    """
    if not (folder / CELLS).is_file():
        return None
    kept = pq.read_table(folder / CELLS)
    own = int(kept["own"].to_numpy().sum())
    kind = str(manifest["value"]["type"])
    digits = int(kind.removesuffix(")").rpartition(",")[2]) if kind.startswith("decimal") else 0
    arrays: dict[str, Any] = {
        name: np.array([float(Decimal(each).scaleb(digits)) for each in kept[name].to_pylist()])
        for name in _AMOUNTS
    }
    flags = {name: kept[name].to_numpy() for name in ("sensitive", "suppressed")}
    given = pq.read_table(folder / CONTRIBUTIONS)
    amounts = np.array([float(Decimal(each).scaleb(digits)) for each in given["amount"].to_pylist()])
    contributed = Contributed(given["cell"].to_numpy(), given["unit"].to_numpy(), amounts)
    earlier, lines = None, _read_lines(folder, own=False, width=len(kept))
    if own < len(kept) or lines.shape[0]:
        rest = {name: array[own:] for name, array in {**arrays, **flags}.items()}
        earlier = EarlierCells(**rest, relations=lines)
    listed = pq.read_table(folder / LIST)
    codes = {
        name.removeprefix("code_"): listed[name] for name in listed.column_names if name.startswith("code_")
    }
    return OriginalCells(
        codes=pa.table(codes).to_pandas(),
        **{name: array[:own] for name, array in arrays.items()},
        sensitive=flags["sensitive"][:own],
        digits=digits,
        zeros_absent=manifest["kind"] == "frequency",
        contributed=contributed,
        earlier=earlier,
    )


def _read_lines(folder: Path, *, own: bool, width: int) -> sparse.csr_matrix:
    """Read the constraints of this table, or those of the earlier tables."""
    lines = pq.read_table(folder / LINES)
    lines = lines.filter(pc.equal(lines["own"], own))
    line, cell, sign = (lines[name].to_numpy() for name in ("line", "cell", "sign"))
    rows = np.unique(line, return_inverse=True)[1] if len(line) else line
    shape = (int(rows.max()) + 1 if len(rows) else 0, width)
    return sparse.csr_matrix((sign.astype(float), (rows, cell)), shape=shape)


def tables_before(areas: Areas, releases: Iterable[str]) -> list[EarlierTable]:
    """Read the suppressed tables of some releases, oldest first."""
    return [read_suppressed(areas.record(release_id), release_id) for release_id in dict.fromkeys(releases)]


def joined(problem: SuppressionProblem, cells: Cells, table: Table, before: Iterable[EarlierTable]) -> Joined:
    """Join the cells and constraints of earlier tables to a problem.

    A cell of an earlier table equals a cell of this table with the same codes, or with the same contributors
    and value. If the columns of the tables form a cycle, the result has a second problem with the cells of
    their combinations (`combinations`).
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
        for row, cell in enumerate(earlier.cells):
            then = {name: float(earlier.amounts[name][row].scaleb(table.digits)) for name in _AMOUNTS}
            found = places.of(cell)
            identity = (
                (cell.measure, cell.members, cell.original) if cell.members else (cell.measure, cell.codes)
            )
            if found:
                position[row] = found[0]
            elif identity in seen:
                position[row] = seen[identity]
            else:
                position[row] = seen[identity] = len(arrays["units"])
                added[row] = True
                for name in _AMOUNTS:
                    arrays[name].append(then[name])
                hidden, sensitive = bool(earlier.suppressed[row]), bool(earlier.sensitive[row])
                flags["primary"].append(sensitive)
                flags["keep"].append(not hidden)
                flags["force"].append(hidden and not sensitive)
            if cell.measure == measure:
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
    for name in _AMOUNTS:
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


def amounts_of(problem: SuppressionProblem) -> dict[str, np.ndarray]:
    """Return the values, protection levels and public knowledge of each cell; keys are those in
    `_AMOUNTS`.
    """
    return {
        "units": problem.values,
        "lower": problem.lower_level,
        "upper": problem.upper_level,
        "sliding": problem.sliding_level,
        "fall": problem.values - problem.lower_bound,
        "rise": problem.upper_bound - problem.values,
    }


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
