"""The risk of households where the published records keep none."""

from types import SimpleNamespace

from microguard.pipelines.measures.household_risk import HOUSEHOLD_RISK

from tests.pipelines.microdata import ROLES, specification


def test_household_risk_is_left_out_where_a_register_keeps_no_household(tmp_path):
    roles = ROLES | {"home": {"role": "household"}}
    spec = specification(tmp_path, roles, publish={"series": "register"})
    comparison = SimpleNamespace(specification=spec, protected=SimpleNamespace(columns=["sex", "age"]))
    assert HOUSEHOLD_RISK.compute(comparison) is None
