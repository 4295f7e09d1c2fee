"""Tests of the plan of a series: a run continues plans of earlier versions and refuses different plans."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.series.plan import plan_of, refuse_other_plan
from microguard.schemas.errors import GateRefused

from tests.pipelines.microdata import specification


def plans(folder):
    """Return a plan without a key that was added later, as an earlier version stored it, and the current
    plan.
    """
    plan = plan_of(specification(folder), Contract(pa.schema([("sex", pa.string())])))
    begun = json.loads(json.dumps(plan))
    for variable in begun["variables"].values():
        del variable["date"]
    return begun, plan


def test_refuse_other_plan_accepts_a_plan_without_later_keys(tmp_path):
    refuse_other_plan(*plans(tmp_path))


@pytest.mark.parametrize(("key", "value"), [("role", "other"), ("date", "year"), ("missing", [9])])
def test_refuse_other_plan_refuses_a_plan_with_another_variable(key, value, tmp_path):
    begun, plan = plans(tmp_path)
    plan["variables"]["sex"][key] = value
    with pytest.raises(GateRefused, match="began with another variables"):
        refuse_other_plan(begun, plan)
