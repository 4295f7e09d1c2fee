"""The plan of a series: plans of earlier versions continue, different plans are refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.series.plan import plan_of, refuse_other_plan
from microguard.schemas.errors import GateRefused

from tests.pipelines.microdata import specification


def plans(folder):
    """A plan as an earlier version kept it, without a key that came later, and the plan of now."""
    plan = plan_of(specification(folder), Contract(pa.schema([("sex", pa.string())])))
    begun = json.loads(json.dumps(plan))
    for variable in begun["variables"].values():
        del variable["date"]
    return begun, plan


def test_refuse_other_plan_continues_a_plan_without_keys_that_came_later(tmp_path):
    refuse_other_plan(*plans(tmp_path))


@pytest.mark.parametrize(("key", "value"), [("role", "other"), ("date", "year"), ("missing", [9])])
def test_refuse_other_plan_refuses_another_variable(key, value, tmp_path):
    begun, plan = plans(tmp_path)
    plan["variables"]["sex"][key] = value
    with pytest.raises(GateRefused, match="began with another variables"):
        refuse_other_plan(begun, plan)
