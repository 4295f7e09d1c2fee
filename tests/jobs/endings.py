"""Runs that end as a test wants them to."""

from __future__ import annotations

from pathlib import Path

import pytest
from microguard.jobs import command
from microguard.pipelines.engine.command_result import CommandResult

ROOT = Path(__file__).parents[2]
CANARY = "Zebedee"


def ending(monkeypatch: pytest.MonkeyPatch, raised: BaseException | None) -> None:
    """Let every verb end in this way."""

    def call(*_: object) -> CommandResult:
        if raised is not None:
            raise raised
        return CommandResult("Published.", {"release_id": "abc"})

    monkeypatch.setattr(command, "call", call)
