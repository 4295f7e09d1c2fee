"""The state of the workbench is a text of TOML: changes keep its comments, and can be undone."""

import pytest
from microguard.pipelines.workbench.specification_text import SpecificationText
from microguard.schemas.errors import SpecificationError

TEXT = """# A survey.
[release]
name = "persons"
k = 3    # agreed

[input]
path = "persons.parquet"

[variables]
age = { role = "quasi_identifier", kind = "numeric" }    # sure: numbers
'my "own" name' = { role = "other" }

[publish]
path = "lake"
evidence = "evidence"
"""


@pytest.fixture
def state(tmp_path):
    return SpecificationText(TEXT, tmp_path / "persons.toml")


def test_set_changes_a_line_and_keeps_comments(state):
    state.set("k", (("release", "k"), 5))
    state.set("age", (("variables", "age", "top_code"), 90))
    assert "k = 5    # agreed" in state.text
    assert "top_code = 90" in state.text
    assert "# sure: numbers" in state.text
    assert state.specification().variables["age"].top_code == 90


def test_set_creates_sections_and_quotes_names(state):
    hostile = 'x"]\n[publish]\npath = "elsewhere'
    state.set("add", (("variables", hostile), {"role": "identifier"}), (("method", "effort"), "fast"))
    content = state.content()
    assert content["publish"]["path"] == "lake"
    assert content["variables"][hostile] == {"role": "identifier"}
    assert state.specification().method.effort == "fast"


def test_undo_and_redo_are_the_history(state):
    state.set("k: 5", (("release", "k"), 5))
    state.set("k: 7", (("release", "k"), 7))
    state.undo()
    assert (state.content()["release"]["k"], state.changes) == (5, ["k: 5"])
    state.redo()
    assert state.content()["release"]["k"] == 7
    state.undo()
    state.undo()
    state.undo()
    assert state.text == TEXT
    state.set("k: 9", (("release", "k"), 9))
    assert not state.can_redo


def test_apply_line_takes_the_line_of_a_refusal(state):
    state.apply_line("[quality] max_t = 0.4")
    state.apply_line('[publish] accept_dependencies = ["age"]')
    state.apply_line('[publish] accept_dependencies = ["other"]')
    assert state.content()["quality"] == {"max_t": 0.4}
    assert state.content()["publish"]["accept_dependencies"] == ["age", "other"]
    line = '[quality] accept = { max_unique_jointly = "REASON, BY WHOM" }'
    for reason in ("", "  "):
        with pytest.raises(SpecificationError, match="reason"):
            state.apply_line(line, reason)
    state.apply_line(line, 'a "good" reason, A. Steward')
    state.apply_line(line.replace("jointly", "published"), "another, A. Steward")
    assert state.content()["quality"]["accept"] == {
        "max_unique_jointly": 'a "good" reason, A. Steward',
        "max_unique_published": "another, A. Steward",
    }


@pytest.mark.parametrize("line", ["", "no line", "[quality", "[quality] = 3", "[quality]"])
def test_apply_line_refuses_what_is_no_line(state, line):
    with pytest.raises(SpecificationError):
        state.apply_line(line)
    assert state.text == TEXT


def test_save_refuses_to_overwrite_a_file_of_another_program(state):
    assert not state.is_saved
    state.save()
    assert state.is_saved
    assert state.path.read_text() == TEXT
    state.path.write_text("other")
    with pytest.raises(SpecificationError, match="changed by another program"):
        state.save()
    assert state.path.read_text() == "other"
