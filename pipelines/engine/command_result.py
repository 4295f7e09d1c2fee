"""What a verb answers: a text for a person, plain values for a program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class CommandResult:
    """The answer of a pipeline; neither part holds a value of a record."""

    text: str
    content: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """For a person."""
        return self.text

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return dict(self.content)


#: How a call can end before its time; a death ends it without any of these.
ENDED = (Exception, KeyboardInterrupt, SystemExit)


def look_again(act: Callable[[], CommandResult], look: Callable[[], CommandResult | None]) -> CommandResult:
    """Return the outcome of an act; if it was interrupted or failed, say what a second look finds done.

    Parameters
    ----------
    act : callable
    look : callable
        The outcome where the act is done although it did not end; None where it is not.
    """
    try:
        return act()
    except ENDED:
        try:
            done = look()
        except Exception:  # why the act ended is what is told
            done = None
        if done is None:
            raise
        return done


def within(surroundings: AbstractContextManager[T], act: Callable[[T], CommandResult]) -> CommandResult:
    """Return the outcome of an act in its surroundings; an interrupt while they are left does not undo it."""
    outcome = None
    try:
        with surroundings as entered:
            outcome = act(entered)
    except (KeyboardInterrupt, SystemExit):
        if outcome is None:
            raise
    assert outcome is not None
    return outcome


def now() -> str:
    """This moment, for evidence and ledger."""
    return datetime.now(UTC).isoformat(timespec="seconds")
