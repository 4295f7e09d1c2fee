"""Tests of series: a specification that the rule of a register does not support is refused with the key."""

from __future__ import annotations

import pytest
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.read import build_specification

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


def test_register_of_units_is_accepted(tmp_path):
    sections = content(series={"pool": 4, "max_ghosts": 0.5}, publish={"approval": "required"})
    spec = build_specification(sections, tmp_path)
    assert (spec.publish.series, spec.series.pool, spec.release.source) == ("register", 4, "register")


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"variables": {"person": {"role": "identifier"}}}, "[variables]"),
        ({"method": {"name": "safe"}}, "[method] name"),
        ({"method": {"unit": "unit"}}, "[method] unit"),
        ({"method": {"unit": "household"}}, "[method] unit"),
        ({"series": {"pool": 2}}, "[series] pool"),
        ({"publish": {"series": "single"}, "series": {"pool": 6}}, "[series] pool"),
        ({"publish": {"series": "single", "changes": "republish"}}, "[publish] changes"),
    ],
)
def test_register_refuses_unsupported_keys_and_names_them(sections, key, tmp_path):
    with pytest.raises(SpecificationError) as caught:
        build_specification(content(**sections), tmp_path)
    assert key in str(caught.value)


def test_register_of_swapped_records_is_refused_with_the_reason_and_what_to_do(tmp_path):
    method = {"name": "swapping", "parameters": {"geography": ["ward"]}}
    ward = VARIABLES | {"ward": {"role": "quasi_identifier", "kind": "nominal"}}
    with pytest.raises(SpecificationError) as caught:
        build_specification(content(method=method, variables=ward), tmp_path)
    message = str(caught.value)
    assert "[method] name" in message
    assert "area differs between two updates" in message
    assert 'series = "single"' in message


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"variables": {"person": {"role": "identifier"}}}, "[variables]"),
        ({"method": {"name": "safe"}}, "[method] name"),
        ({"method": {"unit": "unit"}}, "[method] unit"),
        ({"publish": {"changes": "republish"}}, "[publish] changes"),
    ],
)
def test_append_series_refuses_unsupported_keys_and_names_them(sections, key, tmp_path):
    sections["publish"] = {"series": "append"} | sections.get("publish", {})
    with pytest.raises(SpecificationError) as caught:
        build_specification(content(**sections), tmp_path)
    assert key in str(caught.value)


def test_removed_key_for_waiting_units_is_refused(tmp_path):
    with pytest.raises(SpecificationError, match="max_waiting_for_values"):
        build_specification(content(quality={"max_waiting_for_values": 0.1}), tmp_path)


def test_groups_and_combinations_can_be_appended_and_old_releases_withdrawn(tmp_path):
    groups = [{"name": "a", "variables": ["sex"]}, {"name": "b", "variables": ["income"]}]
    sections = content(publish={"series": "append", "keep": 12, "approval": "required", "format": "delta"})
    assert build_specification({**sections, "groups": groups}, tmp_path).publish.keep == 12


@pytest.mark.parametrize("ledger", ["lake/ledger", "lake"])
def test_shared_ledger_in_the_public_area_is_refused(ledger, tmp_path):
    with pytest.raises(SpecificationError, match=r"\[publish\] ledger"):
        build_specification(content(publish={"ledger": ledger}), tmp_path)
    spec = build_specification(content(publish={"ledger": "../ledger"}), tmp_path)
    assert spec.shared_ledger == str(tmp_path.parent / "ledger")


@pytest.mark.parametrize("key", [{"algorithm": "own-eee"}, {"representative": "control_tables"}])
def test_register_of_nominal_variables_is_protected_by_microaggregation(key, tmp_path):
    variables = {name: role for name, role in VARIABLES.items() if name != "income"}
    (name,) = key
    with pytest.raises(SpecificationError, match=rf"\[method\] {name}.* in a register"):
        build_specification({**content(method=key), "variables": variables}, tmp_path)


def test_register_with_groups_is_refused(tmp_path):
    groups = [{"name": "a", "variables": ["sex"]}, {"name": "b", "variables": ["income"]}]
    with pytest.raises(SpecificationError, match=r"\[\[?groups.*no groups in a register"):
        build_specification({**content(), "groups": groups}, tmp_path)
