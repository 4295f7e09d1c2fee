"""Suppressed tables as the evidence keeps them: cells, constraints and contributions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from microguard.pipelines.guarantees.original_cells import Contributed, EarlierCells, OriginalCells
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.tables.cells.cell_list import CELLS as LIST
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.cells.identity import cell_codes, cell_measures
from microguard.pipelines.tables.files import decimals
from microguard.pipelines.tables.published_before import PublishedCell
from microguard.pipelines.tables.suppression.jj import FURTHER
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.table import Table
from microguard.sdc.suppression import Contributions, SuppressionProblem
from scipy import sparse

if TYPE_CHECKING:
    from microguard.pipelines.tables.suppression.earlier_tables import Joined

CELLS, LINES, CONTRIBUTIONS = "suppressed_cells.parquet", "lines.parquet", "contributions.parquet"
AMOUNTS = ("units", "lower", "upper", "sliding", "fall", "rise")


@dataclass(frozen=True, eq=False)
class EarlierTable:
    """A suppressed table that was published before.

    Attributes
    ----------
    cells : list of PublishedCell
        Cells with true values and contributors.
    amounts : mapping of `AMOUNTS` to (cells,) arrays, as exact decimals in values
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
        "stay": problem.force,
    }
    for name in AMOUNTS:
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
    amounts = {name: [Decimal(each) for each in kept[name].to_pylist()] for name in AMOUNTS}
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
        for name in AMOUNTS
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
        stay=kept["stay"].to_numpy()[:own] if "stay" in kept.column_names else None,
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


def amounts_of(problem: SuppressionProblem) -> dict[str, np.ndarray]:
    """Return the values, protection levels and public knowledge of each cell; keys are those in
    `AMOUNTS`.
    """
    return {
        "units": problem.values,
        "lower": problem.lower_level,
        "upper": problem.upper_level,
        "sliding": problem.sliding_level,
        "fall": problem.values - problem.lower_bound,
        "rise": problem.upper_bound - problem.values,
    }
