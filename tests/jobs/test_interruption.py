"""Tests that signals end a command at any time, with one line that reports the state of its releases."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from microguard.jobs import command, interruption
from microguard.jobs.command import run_command
from microguard.jobs.interruption import SIGNALS
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger

from tests.jobs.endings import ROOT, replace_verbs

#: A verb in another process, which prints a line to standard error when it starts and then runs the code of a
#: test.
VERB = """
import sys, time, threading
from microguard.jobs import command
import microguard
def call(*_):
    sys.stderr.write("at work\\n")
    {body}
command.call = call
sys.exit(microguard.main(["protect", "x.toml", "--json", {arguments}]))
"""
AGAIN = "To resume, call this again with the same arguments."


def run_with_signals(
    body: str, *signals: signal.Signals, arguments: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a verb, send it signals after it has started, and wait for its end."""
    code = VERB.format(body=body.replace("\n", "\n    "), arguments=arguments)
    run = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_restore_default_handlers,
    )
    assert run.stderr is not None
    assert run.stderr.readline() == "at work\n"
    for each in signals:
        run.send_signal(each)
        time.sleep(0.3)
    out, err = run.communicate(timeout=300)
    return subprocess.CompletedProcess(run.args, run.returncode, out, err)


def _restore_default_handlers() -> None:
    """Restore default handlers of signals that the parent ignores, as a shell does for background jobs."""
    for each, handler in zip(
        SIGNALS, (signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL), strict=True
    ):
        signal.signal(each, handler)


@pytest.fixture(autouse=True)
def _default_handlers() -> Iterator[None]:
    before = [signal.getsignal(each) for each in SIGNALS]
    _restore_default_handlers()
    yield
    for each, handler in zip(SIGNALS, before, strict=True):
        signal.signal(each, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_a_command_with_one_line_that_names_the_signal(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*_: object) -> CommandResult:
        signal.raise_signal(number)
        raise AssertionError("not interrupted")

    before = [signal.getsignal(each) for each in SIGNALS]
    monkeypatch.setattr(command, "call", call)
    assert run_command(["protect", "release.toml", "--json"]) == 130
    out, err = capsys.readouterr()
    assert err.replace("\n", " ").strip() == f"Interrupted by {number.name}. Nothing was published. {AGAIN}"
    assert json.loads(out)["status"] == "interrupted"
    assert json.loads(out)["published"] == []
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_exception_after_a_signal_is_reported_as_the_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*_: object) -> CommandResult:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("numpy failed to import") from None
        raise AssertionError("not interrupted")

    monkeypatch.setattr(command, "call", call)
    assert run_command(["protect", "release.toml"]) == 130
    assert "Interrupted by SIGTERM" in capsys.readouterr().err


def test_interruptible_does_not_handle_ignored_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*_: object) -> CommandResult:
        signal.raise_signal(signal.SIGHUP)
        return CommandResult("Published.", {})

    monkeypatch.setattr(command, "call", call)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup ignores this signal
    try:
        assert run_command(["protect", "release.toml"]) == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("events", "said", "published"),
    [
        (("intended",), "Release r was interrupted during publication: it is not current", []),
        (("intended", "published"), "Release r is published.", ["r"]),
        (("waiting",), "Release r is verified and pending approval.", []),
        (("intended", "abandoned"), "Nothing was published.", []),
        (("withdrawing", "withdrawn"), "Release r is withdrawn.", []),
    ],
)
def test_interruption_reports_the_releases_of_this_process_from_the_ledger(
    events: tuple[str, ...],
    said: str,
    published: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("microguard.pipelines.publication.ledger._WRITTEN", {})
    areas = Areas.from_places(tmp_path / "lake", tmp_path / "evidence")

    def call(*_: object) -> CommandResult:
        areas.evidence.mkdir()
        for event in events:
            Ledger(areas).append(Entry(event, "r", "persons", "2026-01-01", {}))  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "call", call)
    assert run_command(["protect", "release.toml", "--json"]) == 130
    out, err = capsys.readouterr()
    assert said in " ".join(err.split())
    assert ("Nothing was published." in " ".join(err.split())) == (not published)
    assert json.loads(out)["published"] == published


def test_signal_after_the_end_of_the_verb_is_ignored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Slow(CommandResult):
        def summary(self) -> str:
            signal.raise_signal(signal.SIGINT)
            return super().summary()

    monkeypatch.setattr(command, "call", lambda *_: Slow("Published.", {}))
    assert run_command(["protect", "release.toml"]) == 0
    assert capsys.readouterr() == ("Published.\n", "")


def test_every_line_of_a_json_log_is_json_after_a_signal_and_a_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_verbs(monkeypatch, KeyboardInterrupt())
    assert run_command(["protect", "release.toml", "--log", "json"]) == 130
    assert run_command(["protect", "release.toml", "--log=json", "--speed"]) == 2
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [each["event"] for each in events] == ["reason", "end"] * 2
    assert "Nothing was published" in events[0]["reason"]
    assert "--speed" in events[2]["reason"]


def test_second_signal_ends_a_command_that_does_not_stop() -> None:
    stubborn = """while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass"""
    began = time.monotonic()
    done = run_with_signals(stubborn, signal.SIGINT, signal.SIGINT)
    assert time.monotonic() - began < 55
    assert done.returncode == 130
    assert " ".join(done.stderr.split()) == f"Interrupted by SIGINT. Nothing was published. {AGAIN}"
    assert json.loads(done.stdout)["exit_code"] == 130


def test_second_signal_ends_a_command_in_compiled_code() -> None:
    body = """import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
ctypes.CDLL(None).sleep(60)"""
    done = run_with_signals(body, signal.SIGTERM, signal.SIGTERM)
    assert done.returncode == 130
    assert "Interrupted by SIGTERM" in done.stderr


def test_command_that_does_not_stop_within_the_grace_period_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interruption, "GRACE", 0.1)
    ended = threading.Event()
    with interruption.interruptible(lambda _: ended.set()) as state:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert ended.wait(10)
        assert state.signal == "SIGTERM"


def test_threads_and_finalizers_print_no_traceback_after_a_signal() -> None:
    body = """class Noisy:
    def __del__(self):
        raise ValueError("a value")
Noisy()
import logging; logging.getLogger("py4j").error("a value")
import warnings; warnings.warn("a value")
def fails():
    raise ValueError("a value")
each = threading.Thread(target=fails)
each.start()
each.join()
raise KeyboardInterrupt"""
    done = run_with_signals(body)
    assert " ".join(done.stderr.split()) == f"Interrupted by SIGINT. Nothing was published. {AGAIN}"


def test_signal_during_the_imports_prints_one_line_and_no_traceback() -> None:
    code = """import signal, sys, microguard
class Importing:
    def find_spec(self, name, *_):
        if name == "microguard.jobs.command":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Importing())
sys.exit(microguard.main(["draft", "x.csv"]))"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=_restore_default_handlers,
    )
    assert done.returncode == 130
    assert done.stderr == "Interrupted before the command started. Call this again.\n"
