"""Simulate a statistical office in memory: it tabulates, protects and publishes like `microguard adjust`,
without Spark.

The office stores the published cells, as the ledger does. An attack program uses the ``published`` values
that `publish` returns, and only those ``true`` values that its attacker is assumed to know.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from microguard.pipelines.tables.adjusted import adjusted, protect_beside_earlier_releases
from microguard.pipelines.tables.cells.cells import Cells, tabulated
from microguard.pipelines.tables.cells.identity import cell_codes, cell_measures, measures_of
from microguard.pipelines.tables.cells.microdata import contributions_needed, grouping_sets
from microguard.pipelines.tables.problem import TableProblem, table_problem
from microguard.pipelines.tables.published_before import (
    PublishedCell,
    new_cells,
    of_the_same_records,
    standing_cells,
)
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.table import Table

from tests.reference import reference_file

ROLES: dict[str, dict[str, Any]] = {
    "firm": {"role": "unit"},
    "turnover": {"role": "sensitive", "kind": "numeric"},
    "production": {"role": "sensitive", "kind": "numeric"},
    "weight": {"role": "weight"},
}


def business_survey() -> pd.DataFrame:
    """Return the records of the business survey with a number for each firm; skip the test if they are
    absent.
    """
    frame = pd.read_csv(reference_file("business_survey.csv"), dtype={"a88": str})
    return frame.assign(firm=np.arange(len(frame)))


def specification(
    frame: pd.DataFrame, table: dict[str, Any], *, units: bool = True, **release: Any
) -> Specification:
    """Return the specification of a table of some records; `units` states whether it has a unit variable."""
    columns = [name for name in frame if units or name != "firm"]
    return build_specification(
        {
            "release": {"name": "survey", "k": 3, **release},
            "input": {"path": "records.parquet"},
            "variables": {name: ROLES.get(name, {"role": "other"}) for name in columns},
            "publish": {"path": "lake", "evidence": "evidence"},
            "table": {"effort": "fast", **table},
        },
        Path("/nowhere"),
    )


class Office:
    """Office with a key and a ledger of published cells."""

    def __init__(self, key: int | bytes) -> None:
        self.key = key if isinstance(key, bytes) else hashlib.sha256(b"office %d" % key).digest()
        self.ledger: list[PublishedCell] = []
        self.objective = self.moved = 0.0

    def publish(self, frame: pd.DataFrame, chosen: Specification) -> pd.DataFrame:
        """Publish a table; return codes, ``true`` and ``published`` values, contributors and direction."""
        table = chosen.table
        assert table is not None
        cells = cells_of(frame, chosen).keyed(self.key)
        origin = {
            "source": chosen.release.source or chosen.release.name,
            "period": chosen.release.period or "",
            "release_id": f"release {len({cell.release_id for cell in self.ledger})}",
        }
        before = [cell for cell in self.ledger if cell.measure in measures_of(table)]
        standing = standing_cells(cells, table, of_the_same_records(cells, table, before, origin))
        problem = table_problem(cells, chosen, self.key, standing)
        problem, adjustment = protect_beside_earlier_releases(adjusted, problem, chosen, table, self.key)
        units = adjustment.values[problem.variables]
        self.ledger += new_cells(cells, table, units, standing, origin)
        self.objective = float(adjustment.objective)
        self.moved = float(np.abs(units - cells.units).sum() / max(np.abs(cells.units).sum(), 1.0))
        return _shown(cells, problem, units, table)


def identities(cells: Cells, table: Table) -> list[tuple[str, Any]]:
    """Return measure and codes of each cell."""
    return list(zip(cell_measures(cells, table), cell_codes(cells, table), strict=True))


def _shown(cells: Cells, problem: TableProblem, units: np.ndarray, table: Table) -> pd.DataFrame:
    unit = 10.0**-table.digits
    return cells.codes.assign(
        true=cells.units * unit,
        published=units * unit,
        contributors=cells.contributors,
        sensitive=problem.by_rule.sensitive,
        level=problem.by_rule.upper_protection * unit,
        members=cells.members,
    )


def cells_of(frame: pd.DataFrame, chosen: Specification) -> Cells:
    """Return the cells of some records as `cells_of_microdata` counts them with Spark."""
    table = chosen.table
    assert table is not None
    columns, scale = list(table.columns), 10.0**table.digits
    amounts = np.ones(len(frame)) if table.value is None else frame[table.value].to_numpy(float)
    weights = frame[chosen.weight].to_numpy(float) if table.weighted else np.ones(len(frame))
    records = (
        frame[columns]
        .astype(str)
        .assign(contribution=np.rint(amounts * scale), amount=np.rint(amounts * weights * scale))
    )
    known = np.ones(len(frame), dtype=bool)
    if chosen.unit is not None:
        identity = frame[chosen.unit]
    else:
        identity = records["contribution"]
        known = np.zeros(len(frame), bool) if table.counts else ~identity.duplicated(keep=False).to_numpy()
    marks = [_mark(str(each)) for each in identity]
    records = records.assign(mark_1=[m[0] for m in marks], mark_2=[m[1] for m in marks], known=known)
    parts = [_summed(records, columns, kept, table) for kept in grouping_sets(table)]
    summed = pd.concat(parts, ignore_index=True)
    members = np.where(summed["known"], summed["mark"], "").astype(str)
    return tabulated(
        summed[columns],
        table,
        units=summed["amount"].to_numpy(),
        contributors=summed["number"].to_numpy(np.int64),
        gross=summed["gross"].to_numpy(),
        largest=np.array(summed["largest"].tolist()).reshape(len(summed), contributions_needed(table)),
        members=members,
    )


def _summed(records: pd.DataFrame, columns: list[str], kept: tuple[str, ...], table: Table) -> pd.DataFrame:
    most = contributions_needed(table)
    rows = []
    groups = records.groupby(list(kept), sort=True) if kept else [((), records)]
    for codes, group in groups:
        sizes = np.sort(np.abs(group["contribution"].to_numpy()))[::-1][:most]
        named = dict(zip(kept, codes if isinstance(codes, tuple) else (codes,), strict=True))
        mark = [int(np.bitwise_xor.reduce(group[name].to_numpy(np.uint64))) for name in ("mark_1", "mark_2")]
        rows.append(
            {
                **{name: named.get(name, table.total) for name in columns},
                "amount": group["amount"].sum(),
                "gross": group["amount"].abs().sum(),
                "number": len(group),
                "largest": np.pad(sizes, (0, most - len(sizes))),
                "known": bool(group["known"].any()),
                "mark": f"{mark[0]:016x}{mark[1]:016x}",
            }
        )
    return pd.DataFrame(rows)


def _mark(identity: str) -> tuple[int, int]:
    digest = hashlib.sha256(identity.encode()).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big")
