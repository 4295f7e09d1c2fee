"""Tests of suppressed tables in tau-ARGUS formats: `.tab` for readers, `.jj` for the evidence."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.pipelines.tables.tau_argus import FOLDER as TAU_ARGUS
from microguard.pipelines.tables.tau_argus import same_cells, write_tau_argus
from scipy.optimize import linprog

from tests.attacks.suppression.office import SuppressingOffice
from tests.pipelines.tables.suppression.test_suppression import finished


def test_tau_argus_files_have_a_status_and_no_number_for_suppressed_cells(tmp_path):
    cells, spec = finished()
    published = SuppressingOffice(tmp_path).publish(cells, spec)
    contents = published.protected.contents
    write_tau_argus(published.files, contents, spec.table)
    lines = (
        (published.files / TAU_ARGUS / f"{next(iter(contents)).split('.')[0]}.tab").read_text().splitlines()
    )
    assert "x;p;;U" in lines
    assert "y;Total;150;S" in lines or "y;Total;;U" in lines
    assert '<UNSAFE> "U"' in next((published.files / TAU_ARGUS).glob("*.rda")).read_text()
    assert same_cells(published.files, contents, spec.table)


def read_jj(path):
    """Return cells (value, cost, status, bounds, levels) and constraints of a `.jj` file."""
    words = iter(path.read_text().replace(":", " ").split())
    assert next(words) == "0"
    cells = []
    for number in range(int(next(words))):
        row = [next(words) for _ in range(9)]
        assert int(row[0]) == number
        cells.append((float(row[1]), float(row[2]), row[3], *map(float, row[4:])))
    lines = []
    for _ in range(int(next(words))):
        right, count = float(next(words)), int(next(words))
        line = {int(next(words)): float(next(words).strip("()")) for _ in range(count)}
        lines.append((right, line))
    assert not list(words)
    return cells, lines


@pytest.mark.parametrize("decimals", [0, 2])
def test_evidence_contains_a_jj_file_with_problem_and_solution_that_an_independent_audit_confirms(
    tmp_path, decimals
):
    published = SuppressingOffice(tmp_path).publish(*finished(tau_argus=True, decimals=decimals))
    cells, lines = read_jj(published.evidence / "suppression.jj")
    assert not list(published.files.rglob("*.jj"))
    values, costs, status, lower, upper, *levels = map(np.array, zip(*cells, strict=True))
    assert values == pytest.approx(published.cells.units * 10.0**-decimals)
    assert np.array_equal(np.isin(status, ["u", "m"]), published.suppressed)
    assert np.array_equal(status == "u", published.protected.comparison.by_rule.sensitive)
    assert costs == pytest.approx(published.protected.comparison.problem.costs)
    for right, line in lines:
        assert sum(sign * values[cell] for cell, sign in line.items()) == pytest.approx(right)
    matrix = np.zeros((len(lines), len(cells)))
    for number, (_, line) in enumerate(lines):
        matrix[number, list(line)] = list(line.values())
    level = np.maximum(levels[0] + levels[1], levels[2])
    hidden, equal = published.suppressed, {"A_eq": matrix, "b_eq": np.zeros(len(lines))}
    bounds = np.column_stack([np.where(hidden, lower, values), np.where(hidden, upper, values)])
    for cell in np.flatnonzero(status == "u"):
        ends = [linprog(side * np.eye(len(cells))[cell], bounds=bounds, **equal).fun for side in (1, -1)]
        assert -sum(ends) >= level[cell] * (1 - 1e-6)
