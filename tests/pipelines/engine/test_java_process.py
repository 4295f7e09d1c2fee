"""Tests of calls to Java: a call that a signal interrupts logs no traceback."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from microguard.pipelines.engine import java_process
from py4j.java_gateway import GatewayClient
from pyspark.sql import functions as f


def interrupted_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call Java over a connection on which a signal arrives."""

    def send_command(*_: object) -> None:
        raise KeyboardInterrupt

    connection = SimpleNamespace(send_command=send_command, socket=None)
    client = GatewayClient()
    monkeypatch.setattr(client, "_get_connection", lambda: connection)
    with pytest.raises(KeyboardInterrupt):
        client.send_command("c")


def test_interrupted_java_call_logs_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger(), "filters", [])
    interrupted_call(monkeypatch)
    # control: py4j without our handler
    assert [record.exc_info is not None for record in caplog.records] == [True]
    caplog.clear()
    java_process.silence_calls()
    interrupted_call(monkeypatch)
    assert caplog.records == []
    logging.getLogger().error("of somebody else")
    assert len(caplog.records) == 1


def test_java_is_started_without_code_between_fork_and_exec_and_ignores_signals(tmp_path: Path) -> None:
    def never() -> None:
        raise AssertionError("Python takes locks for it, which threads that import hold")

    state = tmp_path / "state"
    java = java_process._Java(
        [
            "sh",
            "-c",
            f"cat /proc/$$/status >{state}; kill -INT $$; kill -TERM $$; kill -HUP $$; echo alive >>{state}",
        ],
        env=dict(os.environ),
        preexec_fn=never,
    )
    try:
        assert java.wait() == 0
    finally:
        java_process._started.remove(java)
    assert state.read_text().endswith("alive\n")


@pytest.mark.spark
def test_static_method_of_java_is_looked_up_once(spark, monkeypatch: pytest.MonkeyPatch) -> None:
    f.col("a")
    commands, sends = [], GatewayClient.send_command

    def send_command(client: GatewayClient, command: str, *rest: object, **named: object) -> object:
        commands.append(command)
        return sends(client, command, *rest, **named)

    monkeypatch.setattr(GatewayClient, "send_command", send_command)
    columns = [f.col("a"), f.col("b")]
    assert [command[0] for command in commands if not command.startswith("m\nd")] == ["c"] * len(columns)
