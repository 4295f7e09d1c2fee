"""Tests of Python logging and Spark job descriptions: names of stages and keys, no values."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

import pytest
from microguard.pipelines.engine.progress import Progress
from microguard.schemas.errors import Failure, InputRejected


class Context:
    """Spark context that keeps the local properties of its thread."""

    def __init__(self) -> None:
        self.description: str | None = "of the caller"

    def getLocalProperty(self, key):
        return self.description

    def setLocalProperty(self, key, value):
        self.description = value


def test_logs_contain_the_start_and_end_of_stages(caplog):
    with caplog.at_level(logging.INFO, "microguard"), Progress(quiet=True).stage("measure"):
        assert caplog.messages == ["measure started"]
    assert caplog.messages[1].startswith("measure done after ")


def test_log_of_a_refusal_contains_its_class_and_keys_without_its_text(caplog):
    error = InputRejected("region Oldtown has 2 records", (Failure("smallest_class", "Oldtown", "2"),))
    with pytest.raises(InputRejected), Progress(quiet=True).stage("check"):
        raise error
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.getMessage() == "check failed: InputRejected (smallest_class)"
    assert "Oldtown" not in caplog.text


def test_logs_print_nothing_without_a_handler(capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger("microguard"), "propagate", False)
    with pytest.raises(ValueError, match="value"), Progress(quiet=True).stage("check"):
        raise ValueError("value")
    assert capsys.readouterr() == ("", "")


def test_spark_jobs_are_described_by_the_stage_and_the_description_is_restored(monkeypatch):
    context = Context()
    spark = SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=context))
    monkeypatch.setitem(sys.modules, "pyspark", spark)
    with Progress(quiet=True).stage("measure"):
        assert context.description == "microguard: measure"
    assert context.description == "of the caller"


def test_spark_is_not_called_after_an_interrupted_stage(monkeypatch):
    context = Context()
    spark = SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=context))
    monkeypatch.setitem(sys.modules, "pyspark", spark)
    stage = Progress(quiet=True).stage("measure")
    stage.__enter__()
    monkeypatch.setattr(context, "setLocalProperty", lambda *_: pytest.fail("called Java"))
    assert not stage.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
