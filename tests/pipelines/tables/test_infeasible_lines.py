"""Tests of infeasible tables: the refusal names the codes of the constraint that proves infeasibility."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from microguard.pipelines.tables.adjusted import adjusted
from microguard.pipelines.tables.disclosure_audit import intervals_of
from microguard.pipelines.tables.infeasible_lines import capacity_needed, named
from microguard.pipelines.tables.problem import table_problem
from microguard.pipelines.tables.published_before import PublishedValues
from microguard.schemas.errors import ProtectionFailed
from microguard.sdc.cta import CellTable
from microguard.sdc.cta.program import infeasible
from microguard.sdc.cta.program.infeasible import ImpossibleConstraints, check_constraints, prove_or_give_up
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.table.check import check

from tests.attacks.suppression.office import cells_of_finished, of_finished
from tests.pipelines.tables.regions import KEY, regional, regional_cells
from tests.pipelines.tables.suppression.test_references import OWN, pizzas

LEVELS = "region,status,lower_protection,upper_protection\nn,sensitive,40,40\n"


def refused(folder: Path, standing=None, source="cells", **keys: object) -> tuple[ProtectionFailed, object]:
    """Return the refusal of the regions whose first one must move by 40, without a priori information."""
    specification = regional(folder, LEVELS, minimum_frequency=1, **keys)
    cells = regional_cells(specification)
    problem = table_problem(cells, specification, KEY, None if standing is None else standing(cells))
    with pytest.raises(ProtectionFailed) as caught:
        adjusted(problem, specification, specification.table, KEY)
    table = specification.table.model_copy(update={"source": source})
    return named(caught.value, cells, problem, table), (specification, cells, problem)


def test_refusal_names_the_infeasible_constraint_by_codes_and_a_sufficient_capacity(tmp_path: Path) -> None:
    refusal, (_, _, problem) = refused(tmp_path, capacity=2.0)
    text = str(refusal)
    assert "The proof: Total = n (sensitive) + s + w." in text
    percent = capacity_needed(problem, 0)
    assert f"set table.capacity to {percent} or more" in text
    assert 'table.relax = ["capacities"]' in text
    enough = regional(tmp_path, LEVELS, minimum_frequency=1, capacity=float(percent))
    again = table_problem(regional_cells(enough), enough, KEY)
    adjusted(again, enough, enough.table, KEY)


def test_refusal_marks_cells_that_were_published_before(tmp_path: Path) -> None:
    def standing(cells):
        others = (cells.codes["region"] != "n").to_numpy()
        return PublishedValues(others, np.where(others, cells.units, 0.0), ("first",))

    refusal, _ = refused(tmp_path, standing, capacity=100.0)
    assert "Total (published before) = n (sensitive) + s (published before) + w (published before)" in str(
        refusal
    )


def test_refusals_contain_no_codes_of_records(tmp_path: Path) -> None:
    text = str(refused(tmp_path, source="microdata", capacity=2.0)[0])
    assert "The proof" not in text
    assert "set table.capacity to" in text


def test_other_refusals_are_unchanged(tmp_path: Path) -> None:
    error = ProtectionFailed("No protected table was found.")
    assert named(error, None, None, None) is error


def chain(count: int, capacity: float) -> CellTable:
    """Return totals of two parts each, linked by a grand total; the first part of each is sensitive."""
    parts = 2 * count
    lines, cells = [], parts + count + 1
    for i in range(count):
        line = np.zeros(cells)
        line[[2 * i, 2 * i + 1]], line[parts + i] = 1, -1
        lines.append(line)
    grand = np.zeros(cells)
    grand[parts : parts + count], grand[-1] = 1, -1
    values = np.concatenate([np.full(parts, 100.0), np.full(count, 200.0), [200.0 * count]])
    sensitive = np.zeros(cells, bool)
    sensitive[0:parts:2] = True
    level = np.where(sensitive, 20.0, 0.0)
    room = np.where(sensitive, 40.0, 50.0)
    room[[1, parts]] = capacity
    return CellTable(values, np.array([*lines, grand]), sensitive, level, level, room, room)


def test_infeasible_constraint_is_found_before_the_search_by_its_own_capacities() -> None:
    """A cell that rises cannot also fall: the other cells must balance its whole protection level."""
    with pytest.raises(ImpossibleConstraints) as caught:
        check_constraints(Problem.from_table(chain(300, 9.0), "at-least"))
    assert caught.value.constraints.tolist() == [0]
    check_constraints(Problem.from_table(chain(300, 10.0), "at-least"))


def test_deletion_filter_returns_constraints_that_are_jointly_infeasible(monkeypatch) -> None:
    """Each of two constraints is feasible alone: the total may not move, and both of its parts must move."""
    table = chain(200, 50.0)
    fixed = table.upper_capacity.copy()
    fixed[1] = 0.0  # the first total must move by 20 at least
    fixed[400 + 1 : 400 + 200] = 0.0
    fixed[-1] = 0.0  # no other total may move
    stuck = CellTable(table.values, table.relations, table.sensitive, table.lower_protection,
                      table.upper_protection, fixed, fixed)  # fmt: skip
    problem = Problem.from_table(stuck, "at-least")
    check_constraints(problem)
    monkeypatch.setattr(infeasible, "MAX_FILTER_SOLVES", 60)
    with pytest.raises(ImpossibleConstraints, match="2 constraints") as caught:
        prove_or_give_up(problem, 5000, 10**6, 60.0)
    assert caught.value.constraints.tolist() == [0, 200]


@pytest.mark.long
@pytest.mark.parametrize("effort", ["fast", "standard", "thorough", "exact"])
def test_reference_table_of_four_dimensions_is_adjusted_if_its_zeros_are_safe(effort: str) -> None:
    frame, table = pizzas(**OWN)
    frame.loc[frame["pizzas_tot"] == 0, "is_secret_prim"] = "FALSE"
    specification = of_finished(frame, {"method": "adjustment", "effort": effort, "tolerance": 1e9, **table})
    cells = cells_of_finished(frame, specification.table)
    problem = table_problem(cells, specification, KEY)
    problem, adjustment = adjusted(problem, specification, specification.table, KEY)
    assert adjustment.stopped_by == ("work" if effort == "fast" else "proof")
    assert check(problem.secret, adjustment.values, "at-least").sound
    intervals = intervals_of(problem, adjustment, specification.table, most_cells=200, seed=0)
    assert cells.input_columns["status"].tolist().count("sensitive") == 104
    assert len(intervals.cells) == problem.known.sensitive.sum() >= 60  # identical cells are merged into one
    assert not intervals.below_protection.any()
