"""Tests of the risk of households, summed over classes and tasks, also without published households."""

from types import SimpleNamespace

import numpy as np
import pytest
from microguard.pipelines.measures.by_class import CLASS, WEIGHT
from microguard.pipelines.measures.household_risk import HouseholdRiskMeasure
from microguard.pipelines.measures.households import HOUSEHOLD, _found, _WithMissed, split
from microguard.sdc.risk.individual import class_risk

from tests.pipelines.microdata import ROLES, specification


def test_household_risk_is_omitted_for_registers_without_households(tmp_path):
    roles = ROLES | {"home": {"role": "household"}}
    spec = specification(tmp_path, roles, publish={"series": "register"})
    comparison = SimpleNamespace(specification=spec, protected=SimpleNamespace(columns=["sex", "age"]))
    assert HouseholdRiskMeasure().compute(comparison) is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tasks", [1, 3])
def test_household_risk_is_the_risk_of_any_member_for_any_number_of_tasks(tasks, weighted):
    random = np.random.default_rng(5)
    n = 200
    records = {CLASS: random.integers(0, 60, n), HOUSEHOLD: random.integers(0, 70, n)}
    if weighted:
        records[WEIGHT] = np.round(random.uniform(1, 5, n), 1)
    work = _WithMissed(lambda columns: {"records": np.array([len(columns[CLASS])])})
    parts = in_tasks(records, tasks, work)
    rows = [
        {name: values[i] for name, values in found.items()}
        for found in (_found(each) for each in by_task(parts, tasks))
        for i in range(len(found["records"]))
    ]
    lines, households = split(rows)
    assert sum(row["records"] for row in lines) == n
    members = np.bincount(records[CLASS])
    masses = np.bincount(records[CLASS], records.get(WEIGHT))
    risk = class_risk(members[members > 0], masses[members > 0]) if weighted else 1 / members[members > 0]
    of_class = dict(zip(np.flatnonzero(members), risk, strict=True))
    missed = dict.fromkeys(records[HOUSEHOLD], 1.0)
    for home, each in zip(records[HOUSEHOLD], records[CLASS], strict=True):
        missed[home] *= 1 - of_class[each]
    assert households.households == len(missed)
    assert households.expected == pytest.approx(sum(1 - each for each in missed.values()))
    assert households.largest == pytest.approx(max(1 - each for each in missed.values()))


def by_task(columns, tasks):
    for task in range(tasks):
        there = columns[CLASS] % tasks == task
        yield {name: values[there] for name, values in columns.items()}


def in_tasks(columns, tasks, work):
    made = [work(each) for each in by_task(columns, tasks)]
    return {name: np.concatenate([each[name] for each in made]) for name in made[0]}
