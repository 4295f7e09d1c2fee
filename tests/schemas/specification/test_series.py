"""Where the rule of a register cannot hold, the specification is refused by the key in its way."""

from __future__ import annotations

import pytest

from schemas.errors import SpecificationError
from schemas.specification.read import build_specification

VARIABLES = {
    "person": {"role": "unit"},
    "region": {"role": "region"},
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "income": {"role": "quasi_identifier", "kind": "numeric"},
}


def content(**sections):
    base = {
        "release": {"name": "persons", "k": 3, "period": "2026-11", "source": "register"},
        "input": {"path": "data"},
        "variables": VARIABLES,
        "publish": {"path": "lake", "evidence": "evidence", "series": "register"},
    }
    return {name: base.get(name, {}) | sections.get(name, {}) for name in {**base, **sections}}


def test_a_register_of_units_is_accepted(tmp_path):
    spec = build_specification(content(series={"pool": 4, "max_ghosts": 0.5}), tmp_path)
    assert (spec.publish.series, spec.series.pool, spec.release.source) == ("register", 4, "register")


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"variables": {"person": {"role": "identifier"}}}, "[variables]"),
        ({"method": {"name": "safe"}}, "[method] name"),
        ({"method": {"unit": "unit"}}, "[method] unit"),
        ({"publish": {"approval": "required"}}, "[publish] approval"),
        ({"series": {"pool": 2}}, "[series] pool"),
        ({"publish": {"series": "single"}, "series": {"pool": 6}}, "[series] pool"),
        ({"publish": {"series": "single", "changes": "republish"}}, "[publish] changes"),
    ],
)
def test_what_a_register_cannot_carry_is_refused_by_name(sections, key, tmp_path):
    with pytest.raises(SpecificationError) as caught:
        build_specification(content(**sections), tmp_path)
    assert key in str(caught.value)


def test_groups_do_not_leave_together(tmp_path):
    groups = [{"name": "a", "variables": ["sex"]}, {"name": "b", "variables": ["income"]}]
    with pytest.raises(SpecificationError, match="register"):
        build_specification({**content(), "groups": groups}, tmp_path)
