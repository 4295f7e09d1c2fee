"""Tests of the session: Java is prestarted before the session."""

from __future__ import annotations

import threading

import pytest
from microguard.pipelines.engine import session
from microguard.pipelines.engine.jvm import InputSize
from microguard.pipelines.engine.session import prestart_java


@pytest.mark.spark
def test_prestarted_java_has_the_options_of_the_session_and_its_failure_is_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def start_java(settings: dict[str, str]) -> None:
        asked.append(settings)
        raise OSError("a value")

    monkeypatch.setattr(session, "start_java", start_java)
    before = set(threading.enumerate())
    prestart_java("local[2]", "no-such-file")
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert asked[0]["spark.master"] == "local[2,2]"
    assert asked[0]["spark.driver.memory"] == "4g"
    assert capsys.readouterr().err == ""


def test_event_log_is_off_by_default_and_follows_the_setting_of_spark_submit(monkeypatch):
    monkeypatch.setattr(session, "java_home", lambda: "java")
    monkeypatch.setenv("JAVA_HOME", "java")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert session._settings(None, InputSize.LARGE)["spark.eventLog.enabled"] == "false"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    submitted = session._settings(None, InputSize.LARGE)
    assert "spark.eventLog.enabled" not in submitted
    assert submitted["spark.ui.enabled"] == "false"
