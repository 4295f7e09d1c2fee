"""Runs that end as a test wants them to."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import command
from pipelines.engine.outcome import Outcome

ROOT = Path(__file__).parents[2]
CANARY = "Zebedee"


def ending(monkeypatch: pytest.MonkeyPatch, raised: BaseException | None) -> None:
    """Let every verb end in this way."""

    def call(*_: object) -> Outcome:
        if raised is not None:
            raise raised
        return Outcome("Published.", {"release_id": "abc"})

    monkeypatch.setattr(command, "call", call)
