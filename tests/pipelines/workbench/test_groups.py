"""Tests of groups of quasi-identifiers: each variable is in one group after moves and role changes."""

import pytest
from microguard.pipelines.workbench.groups import OWN, fitted, group_of, moved

NAMES = ["age", "sex", "income"]
CONTENT = {"variables": {name: {"role": "quasi_identifier"} for name in NAMES} | {"key": {"role": "unit"}}}


def variables(groups):
    return {each["name"]: each["variables"] for each in groups}


def test_groups_move_a_variable_to_a_separate_group_and_back():
    groups = moved(CONTENT, "income", OWN)
    assert variables(groups) == {"group_1": ["age", "sex"], "group_2": ["income"]}
    content = CONTENT | {"groups": groups}
    assert [group_of(content, name) for name in NAMES] == ["group_1", "group_1", "group_2"]
    assert group_of(CONTENT, "age") == "all"
    assert variables(moved(content, "sex", "group_2")) == {"group_1": ["age"], "group_2": ["income", "sex"]}
    assert len(moved(content, "sex", OWN)) == 3
    assert moved(content, "income", "group_1") is None  # all variables are protected together again


def test_groups_change_with_the_roles_of_variables():
    content = CONTENT | {"groups": moved(CONTENT, "income", OWN)}
    assert variables(fitted(content, [*NAMES, "new"]))["group_1"] == ["age", "sex", "new"]
    assert fitted(content, ["age", "sex"]) is None


def test_groups_are_written_to_toml_and_removed_again(tmp_path):
    pytest.importorskip("tomlkit", reason="the extra [workbench] is not installed")
    from microguard.pipelines.workbench.specification_text import SpecificationText

    lines = [f'{name} = {{ role = "quasi_identifier", kind = "numeric" }}' for name in NAMES]
    text = "\n".join(
        ['[release]\nname = "a"\nk = 3\n\n[input]\npath = "a.parquet"\n\n[variables]', *lines,
         '\n[publish]\npath = "lake"\nevidence = "evidence"\n']
    )  # fmt: skip
    state = SpecificationText(text, tmp_path / "a.toml")
    state.set("groups", (("groups",), moved(state.content(), "income", OWN)))
    assert [each.name for each in state.specification().groups] == ["group_1", "group_2"]
    assert state.text.count("[[groups]]") == 2
    state.set("groups", (("groups",), moved(state.content(), "sex", "group_2")))
    assert state.text.count("[[groups]]") == 2
    assert state.specification().groups[1].variables == ("income", "sex")
    state.set("groups", (("groups",), None))
    assert state.specification().groups == ()
    assert tuple(state.content()) == ("release", "input", "variables", "publish")
