"""The session: Java starts ahead of it."""

from __future__ import annotations

import threading

import pytest
from microguard.pipelines.engine import session
from microguard.pipelines.engine.jvm import InputSize
from microguard.pipelines.engine.session import prestart_java


@pytest.mark.spark
def test_java_starts_ahead_as_the_session_will_want_it_and_fails_in_silence(
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


def test_the_event_log_is_off_and_under_spark_submit_as_the_submitter_set_it(monkeypatch):
    monkeypatch.setattr(session, "java_home", lambda: "java")
    monkeypatch.setenv("JAVA_HOME", "java")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert session._settings(None, InputSize.LARGE)["spark.eventLog.enabled"] == "false"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    submitted = session._settings(None, InputSize.LARGE)
    assert "spark.eventLog.enabled" not in submitted
    assert submitted["spark.ui.enabled"] == "false"
