"""Tests of the plots of the page."""

from xml.etree import ElementTree

import pytest
from microguard.pipelines.evidence.plots import stage_plot, trade_off_plot


def test_stage_plot_has_a_bar_for_each_stage_as_long_as_its_seconds():
    drawn = ElementTree.fromstring(stage_plot({"read": 1.0, "protect <all>": 4.0, "write": 0.0}))
    names = [each.text for each in drawn.iter("text")]
    assert names == ["read", "1 s", "protect <all>", "4 s", "write", "0 s"]
    lengths = [float(bar.get("width")) for bar in drawn.iter("rect")]
    assert lengths == [pytest.approx(lengths[1] / 4, abs=0.1), lengths[1], 0]
    assert 0 < lengths[1] < float(drawn.get("viewBox").split()[2])
    assert stage_plot({"read": 0.0})


def test_trade_off_plot_marks_rows_with_an_exceeded_limit():
    row = {"information_loss": 0.1, "categories_changed": None, "unique_jointly": None, "homogeneous": None}
    kept, beyond = (
        trade_off_plot([row | {"k": k, "choice": "a", "broken": broken} for k in (3, 5)])
        for broken in ((), ("gap",))
    )
    assert "a limit is exceeded" in beyond
    assert "a limit is exceeded" not in kept
    assert beyond.count("fill: #ffffff") > kept.count("fill: #ffffff")
