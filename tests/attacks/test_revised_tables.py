"""Attack on suppressed cells with a later table of revised amounts: final after preliminary results.

The attacker takes the value of a cell of the later table for that of the earlier one. The control does not
keep cells suppressed whose amounts were revised.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.methods.suppression import CellSuppression
from microguard.pipelines.tables.suppression import revised_cells
from microguard.schemas.requirements.requirement import MetricKey

from tests.attacks.office import specification
from tests.attacks.suppression.cells import intervals
from tests.attacks.suppression.office import SuppressingOffice, cells_of_firms
from tests.attacks.test_suppressed_cells import TABLE, firms, sensitive_alone


def revised(frame, seed, late=False):
    """Return the records with amounts that are up to 5 % higher, and late respondents in all cells."""
    random = np.random.default_rng(seed)
    rise = np.maximum(1, (frame["turnover"] * 0.05 * random.random(len(frame))).round())
    final = frame.assign(turnover=frame["turnover"] + rise)
    if not late:
        return final
    firms_of_cells = frame.drop_duplicates(["activity", "region"])
    new = firms_of_cells.assign(turnover=2.0, firm=1_000 + firms_of_cells["firm"])
    return pd.concat([final, new], ignore_index=True)


def preliminary_and_final(folder, seed, late):
    """Publish a table and that of the revised records."""
    office, frame = SuppressingOffice(folder), firms(seed)
    tables = []
    for period, records in (("preliminary", frame), ("final", revised(frame, seed, late))):
        table = {**TABLE, "attackers": ["outsider"]}
        spec = specification(records, table, period=period, name=period, source="survey")
        tables.append(office.publish(cells_of_firms(records, spec), spec))
    return tables


def codes_of(table, where):
    """Return the codes of some cells."""
    return {tuple(row) for row in table.cells.codes[where].to_numpy()}


def disclosed(first, second):
    """Count published estimates of suppressed cells of the first table, and sensitive cells of it that are
    too narrow to whoever uses them.
    """
    codes = [tuple(row) for row in first.cells.codes.to_numpy()]
    true = dict(zip(codes, first.cells.units, strict=True))
    rule = first.protected.comparison.by_rule
    most = {cell: true[cell] + room for cell, room in zip(codes, rule.upper_capacity, strict=True)}
    later = {
        tuple(row): value
        for row, value in zip(second.cells.codes.to_numpy(), second.cells.units, strict=True)
    }
    opened = codes_of(first, first.suppressed) - codes_of(second, second.suppressed)
    opened = {cell for cell in opened if abs(later[cell] - true[cell]) <= 0.2 * true[cell]}
    ends = intervals(first.frame(), most, {cell: true[cell] for cell in opened})
    narrow = 0
    for row in np.flatnonzero(rule.sensitive & first.suppressed):
        low, high = ends[codes[row]]
        value = true[codes[row]]
        narrow += (
            low > value - rule.lower_protection[row] + 1e-6
            or high < value + rule.upper_protection[row] - 1e-6
        )
    return len(opened), narrow


@pytest.mark.parametrize("late", [False, True])
def test_final_table_discloses_the_preliminary_one_only_if_revised_cells_may_be_published(
    tmp_path, monkeypatch, late
):
    seeds = (0, 8, 21, 31)
    for seed in seeds:
        tables = preliminary_and_final(tmp_path / f"safe{seed}", seed, late)
        assert all(table.broken == [] for table in tables)
        assert disclosed(*tables) == (0, 0)
    monkeypatch.setattr(
        revised_cells, "estimates_of_suppressed", lambda cells, *_: np.zeros(len(cells), bool)
    )
    control = [disclosed(*preliminary_and_final(tmp_path / f"control{n}", n, late)) for n in seeds]
    assert sum(opened for opened, _ in control) > 4
    assert sum(narrow for _, narrow in control) > 4


def test_count_on_the_files_finds_published_estimates_of_suppressed_cells(tmp_path, monkeypatch):
    office, frame = SuppressingOffice(tmp_path), firms(8)
    records = {"preliminary": frame, "final": revised(frame, 8)}
    first, second = (
        specification(each, TABLE, period=period, name=period, source="survey")
        for period, each in records.items()
    )
    office.publish(cells_of_firms(frame, first), first)
    monkeypatch.setattr(CellSuppression, "protect", sensitive_alone)
    published = office.publish(cells_of_firms(records["final"], second), second)
    assert published.written.count.metrics[MetricKey("cells_unprotected")] > 0
    assert "cells_unprotected" in published.broken


def test_cell_that_stays_suppressed_is_not_disclosed_by_sums_if_others_of_its_line_are_published(tmp_path):
    """Cells that were suppressed together with it change so much in a year that they are published."""
    random = np.random.default_rng(0)
    office, frame = SuppressingOffice(tmp_path), firms(0)
    for year in range(2015, 2018):
        spec = specification(
            frame, {**TABLE, "attackers": ["outsider"]}, period=str(year), name=f"y{year}", source="survey"
        )
        table = office.publish(cells_of_firms(frame, spec), spec)
        assert table.broken == []
        changed = (frame["turnover"] * np.exp(random.normal(0.02, 0.1, len(frame)))).round() + 1
        staying = frame.assign(turnover=changed)[random.random(len(frame)) < 0.95]
        new = firms(year - 1915).sample(frac=0.05, random_state=year - 2015)
        frame = pd.concat([staying, new.assign(firm=new["firm"] + 10_000 * year)], ignore_index=True)
    problem = table.protected.comparison.problem
    assert (problem.force[: len(table.cells)] & table.suppressed).any()


def test_table_of_the_next_year_is_published_if_one_firm_has_the_same_amount(tmp_path):
    """The firm is alone in its cell, which both tables suppress. All other amounts changed, and a cell has
    no firm any more.
    """
    office, frame = SuppressingOffice(tmp_path), firms(0)
    number = frame.groupby(["activity", "region"])["firm"].transform("size")
    same, closed = frame["firm"][number == 1].iloc[:2]
    changed = frame["turnover"] + np.where(frame["firm"] == same, 0, 7 + frame["firm"] % 5)
    later = frame.assign(turnover=changed)[frame["firm"] != closed]
    for year, records in (("2021", frame), ("2022", later)):
        spec = specification(records, TABLE, period=year, name=f"y{year}", source="survey")
        assert office.publish(cells_of_firms(records, spec), spec).broken == []
