"""Tests of the page widgets: numbers with all digits, names unchanged, and tables of bounded size."""

import asyncio
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytest.importorskip("nicegui", reason="the extra [workbench] is not installed")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567, "1234567"), (1234567.25, "1234567.25"), (65.0, "65"), (0.1, "0.1"), (0, "0")],
)
def test_widgets_show_numbers_of_the_specification_with_all_digits(value, shown):
    from microguard.pipelines.workbench.widgets import number_of, plain_number

    assert plain_number(value) == shown
    assert number_of(shown) == value


@pytest.mark.parametrize("written", ["nan", "inf", "-inf", "1e999", "x", ""])
def test_number_of_refuses_text_without_a_finite_number(written):
    from microguard.pipelines.workbench.widgets import number_of

    with pytest.raises(ValueError):
        number_of(written)


def test_sentence_keeps_the_capitals_of_names():
    from microguard.pipelines.workbench.widgets import sentence

    assert sentence("set NACE to nominal") == "Set NACE to nominal"
    assert sentence("") == ""


def test_grid_of_many_codes_contains_the_total_and_states_the_number_of_omitted_codes():
    from microguard.pipelines.workbench.table_view import _first

    codes = [f"c{number}" for number in range(1_000)]
    shown, more = _first([*codes, "Total"], "Total", 200)
    assert (len(shown), more, shown[-1]) == (200, 801, "Total")
    assert _first(["a", "Total", "a"], "Total", 200) == (["a", "Total"], 0)


@pytest.mark.parametrize(
    ("line", "key", "written", "keys"),
    [
        ({}, "hierarchy", "codes.csv", {"hierarchy": "codes.csv", "level": 2}),
        ({"level": 3}, "hierarchy", "codes.csv", {"hierarchy": "codes.csv", "level": 3}),
        ({"level": 3}, "hierarchy", " ", {"hierarchy": None, "level": None}),
        ({}, "level", "3", {"level": 3}),
        ({}, "order", "low; some, more; high", {"order": ["low", "some, more", "high"]}),
        ({}, "missing", "97, x", {"missing": [97, "x"]}),
        ({}, "missing", "", {"missing": None}),
        ({}, "top_code", "90.5", {"top_code": 90.5}),
        ({}, "bands", "0, 18", {"bands": [0, 18], "kind": "ordinal", "top_code": None, "bottom_code": None,
                                "round_to": None}),
        ({}, "bands", "", {"bands": None, "kind": "numeric"}),
    ],
)  # fmt: skip
def test_typed_recode_changes_all_keys_of_the_recode(line, key, written, keys):
    from microguard.pipelines.workbench.variable_view import recode_keys

    assert recode_keys(line, key, written) == keys


@pytest.mark.parametrize("state", ["as it is", "changed before the end", "changed while it was drawn"])
def test_methods_are_shown_only_if_they_were_compared_with_the_current_specification(state, monkeypatch):
    from microguard.pipelines.workbench import table_view
    from microguard.pipelines.workbench.commands import Finished

    shown = []
    for name in ("text", "table", "button", "box", "picture"):
        monkeypatch.setattr(table_view, name, lambda *_, **__: shown.append(1) or MagicMock())
    reason = {"method": "rounding", "reason": "is for counts"}
    result = Finished(0, "", {"methods": [reason]}, outdated=state == "changed before the end")
    view = table_view.TableView(SimpleNamespace(finished={"compare": result}))
    view._methods = MagicMock(is_deleted=False)

    async def compared():
        view._sync_methods()
        if state == "changed while it was drawn":
            view._workbench.finished.clear()
            view._sync_methods()
        await asyncio.sleep(0)

    asyncio.run(compared())
    assert bool(shown) == (state == "as it is")
