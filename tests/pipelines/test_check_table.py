"""Tests of `check` for a table: it predicts refusals of `adjust` and the cost, and publishes nothing."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from microguard.pipelines import start_job as module
from microguard.pipelines.check import check
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.tables.product import Tables
from microguard.schemas.errors import ProtectionFailed

from tests.pipelines.turnover import records, specification


@pytest.fixture
def checked(spark, monkeypatch, tmp_path):
    @contextmanager
    def shared(private, master, input_path, *, clustering):
        yield spark

    monkeypatch.setattr(module, "session", shared)
    return lambda **table: check(specification(tmp_path, records(), **table), progress=Progress(quiet=True))


def test_check_of_a_table_counts_its_sensitive_cells_and_publishes_nothing(checked, tmp_path):
    answer = checked(method="suppression", effort=None)
    assert answer.content["sensitive"] > 0
    assert answer.content["cost"]["suppressed"] > 0
    assert answer.content["forecast"]["failures"] == []
    assert "adjust would refuse nothing" in answer.text
    assert not list((tmp_path / "lake").glob("*/manifest.json"))


def test_check_of_a_table_predicts_exceeded_limits(checked):
    answer = checked(quality={"max_total_adjustment": 0.0})
    assert [each["key"] for each in answer.content["forecast"]["failures"]] == ["total_adjustment"]


def test_check_of_a_table_predicts_infeasible_protection(checked, monkeypatch):
    def impossible(*_):
        raise ProtectionFailed("The table cannot be protected: 1 line proves it.")

    monkeypatch.setattr(Tables, "with_data_defaults", impossible)
    answer = checked()
    (failure,) = answer.content["forecast"]["failures"]
    assert failure["remedy"] == "remove the cause: The table cannot be protected: 1 line proves it"
