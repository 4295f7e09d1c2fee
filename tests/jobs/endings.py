"""Replacement of all verbs by a function that returns or raises, for tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from microguard.jobs import command
from microguard.pipelines.engine.command_result import CommandResult

ROOT = Path(__file__).parents[2]
CANARY = "Zebedee"


def replace_verbs(monkeypatch: pytest.MonkeyPatch, raised: BaseException | None) -> None:
    """Replace every verb by a function that raises `raised`, or returns a result if that is None."""

    def call(*_: object) -> CommandResult:
        if raised is not None:
            raise raised
        return CommandResult("Published.", {"release_id": "abc"})

    monkeypatch.setattr(command, "call", call)
