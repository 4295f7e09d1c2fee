"""What a verb answers: a text for a person, plain values for a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """The answer of a pipeline; neither part holds a value of a record."""

    text: str
    content: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """For a person."""
        return self.text

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return dict(self.content)


def now() -> str:
    """This moment, for evidence and ledger."""
    return datetime.now(UTC).isoformat(timespec="seconds")
