"""Tests of the specification text of the workbench: changes keep TOML comments and can be undone."""

import pytest
from microguard.schemas.errors import SpecificationError

pytest.importorskip("tomlkit", reason="the extra [workbench] is not installed")

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
    from microguard.pipelines.workbench.specification_text import SpecificationText

    return SpecificationText(TEXT, tmp_path / "persons.toml")


def test_set_changes_a_line_and_keeps_comments(state):
    state.set("k", (("release", "k"), 5))
    state.set("age", (("variables", "age", "top_code"), 90))
    assert "k = 5    # agreed" in state.text
    assert "top_code = 90" in state.text
    assert "# sure: numbers" in state.text
    assert state.specification().variables["age"].top_code == 90


def test_changed_role_replaces_the_reason_of_the_draft_and_no_other_comment(state):
    state.set("age", (("variables", "age"), {"role": "quasi_identifier", "kind": "nominal"}))
    assert "# sure: numbers" in state.text
    state.set("age", (("variables", "age"), {"role": "identifier"}))
    line = next(line for line in state.text.splitlines() if line.startswith("age"))
    assert line.endswith("# chosen by hand; the draft proposed quasi_identifier")
    state.set("age", (("variables", "age"), {"role": "other"}))
    assert "# chosen by hand; the draft proposed quasi_identifier" in state.text
    state.undo()
    state.undo()
    assert "# sure: numbers" in state.text


def test_set_creates_sections_and_quotes_names(state):
    hostile = 'x"]\n[publish]\npath = "elsewhere'
    state.set("add", (("variables", hostile), {"role": "identifier"}), (("method", "effort"), "fast"))
    content = state.content()
    assert content["publish"]["path"] == "lake"
    assert content["variables"][hostile] == {"role": "identifier"}
    assert state.specification().method.effort == "fast"


def test_undo_and_redo_restore_earlier_and_later_texts(state):
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


def test_apply_line_applies_the_line_that_a_refusal_proposes(state):
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
def test_apply_line_refuses_invalid_text(state, line):
    with pytest.raises(SpecificationError):
        state.apply_line(line)
    assert state.text == TEXT


def test_save_refuses_to_overwrite_a_file_that_another_program_changed(state):
    assert not state.is_saved
    state.save()
    assert state.is_saved
    assert state.path.read_text() == TEXT
    state.path.write_text("other")
    with pytest.raises(SpecificationError, match="changed by another program"):
        state.save()
    assert state.path.read_text() == "other"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_save_keeps_byte_order_mark_line_ends_mode_and_link_of_a_file(tmp_path, mark, line_end):
    from microguard.pipelines.workbench.specification_text import SpecificationText

    (tmp_path / "kept").mkdir()
    place, link = tmp_path / "kept" / "persons.toml", tmp_path / "persons.toml"
    written = mark + TEXT.replace("\n", line_end).encode()
    place.write_bytes(written)
    place.chmod(0o600)
    link.symlink_to(place)
    state = SpecificationText.from_file(link)
    assert state.is_saved
    state.save()
    assert place.read_bytes() == written
    state.set("k: 5", (("release", "k"), 5), (("method", "effort"), "fast"))
    assert not state.is_saved
    state.save()
    assert place.read_bytes() == mark + state.text.replace("\n", line_end).encode()
    assert b"[method]" in place.read_bytes()
    assert link.is_symlink()
    assert place.stat().st_mode & 0o777 == 0o600
    assert SpecificationText.from_file(link).content() == state.content()
    assert [each.name for each in place.parent.iterdir()] == ["persons.toml"]


def test_save_keeps_mixed_line_ends(tmp_path):
    from microguard.pipelines.workbench.specification_text import SpecificationText

    path = tmp_path / "persons.toml"
    path.write_bytes(TEXT.replace("\n", "\r\n", 3).encode())
    state = SpecificationText.from_file(path)
    state.set("k: 5", (("release", "k"), 5))
    state.save()
    assert path.read_bytes() == TEXT.replace("\n", "\r\n", 3).replace("k = 3", "k = 5").encode()
