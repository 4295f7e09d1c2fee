"""Tests of cells of 0 declared sensitive: protected by an absolute level, or refused with the rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.guarantees.additive_table import AdditiveTable
from microguard.pipelines.guarantees.original_cells import Published
from microguard.pipelines.tables.adjusted import whole_adjustment
from microguard.pipelines.tables.cells.cells import Cells, tabulated
from microguard.pipelines.tables.disclosure_audit import intervals_of
from microguard.pipelines.tables.measures import ATTACKER, judged_intervals, measured
from microguard.pipelines.tables.problem import TableProblem, table_problem
from microguard.pipelines.tables.product import original_cells
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.requirements.tables import table_requirements
from microguard.schemas.specification.model import Specification
from microguard.sdc.cta import Adjustment
from microguard.sdc.cta.disclosure_audit import Intervals, attacker_intervals

from tests.pipelines.tables.regions import KEY, regional
from tests.schemas.specification.test_table import build
from tests.sdc.cta.tables import two_cells_and_total

VALUES = {"x": (100, 40, 0), "y": (80, 60, 10), "z": (70, 60, 20)}
ZERO = ("x", "r")


def two_way(folder: Path, known: str = "", *, only_zero: bool = False, **keys: object) -> tuple:
    """Return the table of sdcTools/UserSupport#194: nine cells with margins; x by r is a zero declared
    sensitive.
    """
    table = {
        "tables": [["region", "branch"]],
        "decimals": 0,
        "levels": "secret",
        "dominance": {"n": 1, "k": 99},
    }
    specification = regional(folder, known or "region,branch,status\nx,r,sensitive\n", **{**table, **keys})
    assert specification.table is not None
    frame = pd.DataFrame(
        [(a, b, float(v)) for a, row in VALUES.items() for b, v in zip("pqr", row, strict=True)],
        columns=["region", "branch", "v"],
    )
    sums = [frame.groupby(k, as_index=False)["v"].sum() for k in (["region"], ["branch"])]
    grand = pd.DataFrame({"v": [frame["v"].sum()]})
    rows = pd.concat([frame, *sums, grand], ignore_index=True).fillna("Total")
    units = rows.pop("v").to_numpy()
    largest = units[:, None] * np.array([0.3, 0.3])
    largest[0] = units[0] * (0.2 if only_zero else 1.0), 0.0
    contributors = np.full(len(units), 9.0)
    cells = tabulated(rows, specification.table, units=units, contributors=contributors, largest=largest)
    return specification, cells


def protected(specification: Specification, cells: Cells) -> tuple[TableProblem, Adjustment, Intervals]:
    table = specification.table
    assert table is not None
    problem = table_problem(cells, specification, KEY)
    adjustment = whole_adjustment(problem.secret, specification, table)
    return problem, adjustment, intervals_of(problem, adjustment, table, most_cells=100, seed=0)


def place(cells: Cells) -> int:
    return int(np.flatnonzero((cells.codes["region"] == ZERO[0]) & (cells.codes["branch"] == ZERO[1]))[0])


def failures(
    problem: TableProblem, adjustment: Adjustment, intervals: Intervals, cells: Cells, chosen: Specification
) -> set[str]:
    """Return the gate requirements that the metrics of a table fail; a higher limit for moves of small totals
    applies.
    """
    assert chosen.table is not None
    metrics = measured(cells, problem, adjustment, intervals, chosen.table)["metrics"]
    required = [each for each in table_requirements(chosen.table, True) if each.key.metric in metrics]
    required = [each for each in required if each.key.metric != "grand_total_change"]
    return {each.key.metric for each in required if not each.met(metrics[each.key.metric])}


@pytest.mark.parametrize(
    "known", ["", "region,branch,status,lower_protection,upper_protection\nx,r,sensitive,0,0\n"]
)
def test_sensitive_zero_without_a_protection_level_is_refused_before_protection(
    tmp_path: Path, known: str
) -> None:
    specification, cells = two_way(tmp_path, known)
    with pytest.raises(InputRejected, match=r"no protection level.*table\.zero_safety_range") as caught:
        table_problem(cells, specification, KEY)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("only_zero", [False, True])
def test_sensitive_zero_moves_by_the_zero_safety_range_and_passes_the_gate(tmp_path, only_zero) -> None:
    specification, cells = two_way(tmp_path, only_zero=only_zero, zero_safety_range=5.0)
    problem, adjustment, intervals = protected(specification, cells)
    row = place(cells)
    assert problem.by_rule.upper_protection[row] == 5
    assert adjustment.values[problem.variables[row]] >= 5
    at = list(intervals.cells).index(problem.variables[row])
    assert intervals.upper[at] - max(intervals.lower[at], 0) >= 5
    assert not intervals.determined[at]  # a capacity of 0 does not reveal that the zero rose
    assert not failures(problem, adjustment, intervals, cells, specification)
    assert problem.by_rule.sensitive.sum() == (1 if only_zero else 2)


def test_sensitive_zero_moves_by_the_protection_levels_of_the_file(tmp_path: Path) -> None:
    known = "region,branch,status,lower_protection,upper_protection\nx,r,sensitive,7,7\n"
    specification, cells = two_way(tmp_path, known)
    problem, adjustment, _ = protected(specification, cells)
    assert adjustment.values[problem.variables[place(cells)]] >= 7


def test_refusal_of_a_sensitive_zero_that_may_not_rise_names_its_rule(tmp_path: Path) -> None:
    known = "region,branch,status,upper_capacity\nx,r,sensitive,0\n"
    specification, cells = two_way(tmp_path, known, zero_safety_range=5.0)
    with pytest.raises(InputRejected, match=r"may not change.*declare it safe or fixed"):
        table_problem(cells, specification, KEY)


def without_level(tmp_path: Path) -> tuple:
    """Return the table of the previous version, in which the zero is sensitive with a level of 0."""
    specification, cells = two_way(tmp_path, only_zero=True, zero_safety_range=5.0)
    problem, _, _ = protected(specification, cells)
    none = np.zeros(len(cells))
    bare = replace(problem.by_rule, lower_protection=none, upper_protection=none)
    problem = replace(problem, by_rule=bare, secret=bare, known=bare, variables=np.arange(len(cells)))
    adjustment = whole_adjustment(bare, specification, specification.table)
    intervals = attacker_intervals(bare, adjustment.values)
    return specification, cells, problem, adjustment, intervals


def test_gate_refuses_and_reports_a_sensitive_cell_without_a_protection_level(tmp_path: Path) -> None:
    specification, cells, problem, adjustment, intervals = without_level(tmp_path)
    assert intervals.below_protection.tolist() == [True]
    assert {"cells_not_judged", "intervals_below_unit"} <= failures(
        problem, adjustment, intervals, cells, specification
    )
    section = measured(cells, problem, adjustment, intervals, specification.table)["attacker"]
    assert (section["narrowest"], section["not_judged"], section["below_unit"]) == (None, 1, 1)
    assert "1 of 1 sensitive cells have no interval" in next(iter(ATTACKER.attacks(section, 3)))[1]


def test_audit_of_written_files_refuses_a_sensitive_cell_without_a_protection_level(tmp_path: Path) -> None:
    specification, cells, problem, _, _ = without_level(tmp_path)
    original = original_cells(cells, problem, specification.table)
    as_they_were = Published(np.zeros(len(cells)), cells.units, np.zeros(len(cells), bool), foreign=0)
    assert AdditiveTable().compare(as_they_were, original) == (1, 0)


@pytest.mark.parametrize(("width", "found"), [(0.5, 1), (1.9, 1), (2.0, 0)])
def test_gate_refuses_an_interval_narrower_than_a_digit_or_the_least_level(tmp_path, width, found) -> None:
    specification, cells = two_way(tmp_path, zero_safety_range=5.0, quality={"min_interval": 0.0})
    problem, adjustment, intervals = protected(specification, cells)
    rule = problem.by_rule
    # The first level follows from dominance; the level of the zero is 5.
    assert rule.upper_protection[rule.sensitive].min() == 2
    narrow = replace(intervals, lower=intervals.upper - width)
    assert judged_intervals(narrow, problem).below_unit == found * len(intervals.cells)
    assert ("intervals_below_unit" in failures(problem, adjustment, narrow, cells, specification)) == found


def test_gate_refuses_a_sensitive_cell_without_a_tested_attacker(tmp_path: Path) -> None:
    specification, cells = two_way(tmp_path, zero_safety_range=5.0)
    problem, adjustment, _ = protected(specification, cells)
    table = specification.table
    unknown = replace(problem.known, sensitive=np.zeros(problem.known.cells, dtype=bool))
    nobody = attacker_intervals(unknown, adjustment.values)
    missing = replace(problem, known=unknown)
    assert judged_intervals(nobody, missing).missing == 2
    sampled = intervals_of(problem, adjustment, table, most_cells=1, seed=0)
    # table.quality.examined = 1 requires one examined cell
    assert judged_intervals(sampled, problem).missing == 0


def test_attacker_interval_of_a_cell_without_a_protection_level_is_too_narrow() -> None:
    table = two_cells_and_total([5, 0, 5], [5, 0, 5])
    zeros = np.zeros(table.cells)
    bare = replace(table, values=zeros, lower_protection=zeros, upper_protection=zeros)
    assert attacker_intervals(bare, bare.values).below_protection.all()


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"value": "turnover"}, "table.status or table.a_priori"),
        ({"kind": "frequency", "zero_safety_range": 1.0}, "drawn"),
    ],
    ids=["nothing is declared", "counts"],
)
def test_zero_safety_range_is_refused_for_counts_and_undeclared_cells(keys: dict, match: str) -> None:
    with pytest.raises(SpecificationError, match=match):
        build({"tables": [["region"]], "zero_safety_range": 1.0, **keys})
