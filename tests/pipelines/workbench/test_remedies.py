"""Tests of the remedies of the workbench: refusals with the same remedy are one, and a role corrects a
column.
"""

from types import SimpleNamespace

import pandas as pd
import pytest
from microguard.pipelines.workbench.blocks import Estimate
from microguard.schemas.requirements.requirement import MetricKey

pytest.importorskip("nicegui", reason="the extra [workbench] is not installed")

LINE = '[quality] accept = { max_unique_published = "REASON, BY WHOM" }'


def exposed(folder, columns=2, records=300):
    """Return a file in which every record is unique with each of some unmodified columns."""
    frame = pd.DataFrame({"age": range(records), "weight": [1.5 + i for i in range(records)]})
    for number in range(columns):
        frame[f"of {number}"] = [f"t{i}" for i in range(records)]
    frame.to_parquet(folder / "survey.parquet", index=False)
    lines = {"age": {"role": "quasi_identifier", "kind": "numeric"}, "weight": {"role": "weight"}}
    lines |= {name: {"role": "other"} for name in frame.columns[2:]}
    return {
        "release": {"name": "survey", "k": 3},
        "input": {"path": "survey.parquet"},
        "variables": lines,
        "method": {"effort": "fast"},
        "publish": {"path": "lake", "evidence": "evidence"},
    }


def workbench(folder, content):
    """Return the parts of a workbench that remedies use, without a page."""
    import tomlkit
    from microguard.pipelines.workbench.data import Data
    from microguard.pipelines.workbench.specification_text import SpecificationText

    text = SpecificationText(tomlkit.dumps(content), folder / "survey.toml")
    return SimpleNamespace(data=Data(str(folder / "survey.parquet")), text=text, set=text.set)


def failures(opened):
    from microguard.pipelines.workbench.preview import preview

    found = preview(opened.data, opened.text.specification())
    return [each.failure.as_json() for each in found.limits if each.failure is not None]


@pytest.fixture
def shown(monkeypatch):
    """Record texts and buttons instead of building a page."""
    from contextlib import nullcontext

    from microguard.pipelines.workbench import remedies

    seen = SimpleNamespace(buttons={}, texts=[])
    monkeypatch.setattr(remedies, "box", lambda *_, **__: nullcontext())
    monkeypatch.setattr(remedies, "entry", lambda *_, **__: None)
    monkeypatch.setattr(remedies, "text", lambda _, content, *__: seen.texts.append(content))
    monkeypatch.setattr(remedies, "button", lambda label, act, *_: seen.buttons.setdefault(label, act))
    return seen


def test_button_of_a_refused_column_changes_its_role_and_removes_the_refusal(tmp_path, shown):
    from microguard.pipelines.workbench.remedies import remedies

    opened = workbench(tmp_path, exposed(tmp_path))
    remedies(opened, failures(opened), "A run would be refused")
    assert [label for label in shown.buttons if label.startswith("Accept")] == [
        "Accept max_unique_published",
        "Accept max_unique_jointly",
    ]
    shown.buttons["Protect weight"]()
    assert opened.text.content()["variables"]["weight"] == {"role": "quasi_identifier", "kind": "numeric"}
    shown.buttons["Leave out of 1"]()
    assert {each["key"] for each in failures(opened)} == {"unique_published of of 0", "unique_jointly"}


def test_one_button_leaves_out_all_refused_columns(tmp_path, shown):
    from microguard.pipelines.workbench.remedies import MOST_SHOWN, remedies

    opened = workbench(tmp_path, exposed(tmp_path, MOST_SHOWN + 5))
    remedies(opened, failures(opened), "A run would be refused")
    assert "and 6 more." in shown.texts
    shown.buttons[f"Leave out all {MOST_SHOWN + 6} columns"]()
    assert failures(opened) == []


def test_remedies_propose_no_role_for_a_column_that_the_file_lacks():
    from microguard.pipelines.workbench.remedies import grouped, helpful_roles

    failure = {"key": "unique_published of x", "remedy": "r", "line": LINE}
    assert helpful_roles(failure, ["y"]) == ("x", ())
    assert helpful_roles(failure | {"key": "information_loss"}, ["", "x"])[1] == ()
    assert grouped([failure, {"key": "gap"}, failure]) == [[failure, failure], [{"key": "gap"}]]


def test_figures_show_the_most_exposed_columns_and_count_the_others():
    from microguard.pipelines.workbench.figures_view import MOST_COLUMNS, most_exposed

    metrics = {MetricKey("unique_published", str(i)): Estimate(i / 100, 0) for i in range(MOST_COLUMNS + 3)}
    metrics[MetricKey("information_loss")] = Estimate(0.0, 0)
    shown, further = most_exposed(metrics)
    assert (len(shown), {key.variable for key in further}) == (MOST_COLUMNS + 1, {"0", "1", "2"})


def test_preview_states_which_missing_values_reject_records(tmp_path):
    from microguard.pipelines.workbench.preview import preview

    content = exposed(tmp_path)
    frame = pd.read_parquet(tmp_path / "survey.parquet").astype({"age": float})
    frame.loc[:6, "age"] = None
    frame.to_parquet(tmp_path / "survey.parquet", index=False)
    opened = workbench(tmp_path, content)
    found = preview(opened.data, opened.text.specification())
    assert [note for note in found.notes if note.startswith("7 of 300 records") and "age (7)" in note]
    assert (found.rejection.found, found.rejection.limit) == ("7", "at most 0")
    opened.text.apply_line(found.rejection.line)
    kept = preview(opened.data, opened.text.specification())
    assert (found.used, kept.used) == (293, 300)
    assert kept.rejection is None
    assert not any("left out" in note for note in kept.notes)
    opened.set("missing", (("missing", "numeric"), None), (("missing", "max_rejected"), 7))
    assert preview(opened.data, opened.text.specification()).rejection is None
