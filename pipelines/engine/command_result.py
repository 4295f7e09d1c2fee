"""Result of a verb: a text for the user, and plain values for programs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class CommandResult:
    """Result of a verb; no part of it contains the value of a record.

    Attributes
    ----------
    text : str
        Text for the user.
    content : dict
        Values for programs.
    brief : str
        The result in one line, which `--quiet` prints; empty if `--quiet` prints nothing.
    """

    text: str
    content: dict[str, Any] = field(default_factory=dict)
    brief: str = ""

    def with_note(self, note: str, **content: Any) -> CommandResult:
        """Return the result with a note before its text and with additional values for programs."""
        return CommandResult(f"{note}\n{self.text}", self.content | content, self.brief)

    def summary(self) -> str:
        """Return the text that the user sees."""
        return self.text

    def as_json(self) -> dict[str, Any]:
        """Return the values for programs as JSON."""
        return dict(self.content)


#: Exceptions that interrupt a call; the killing of a process raises none of them.
ENDED = (Exception, KeyboardInterrupt, SystemExit)


def look_again(act: Callable[[], CommandResult], look: Callable[[], CommandResult | None]) -> CommandResult:
    """Run an action. If it is interrupted or fails, check whether it was completed; if so, return its result.

    Parameters
    ----------
    act : callable
    look : callable
        Returns the result if the action is done although it was interrupted, else None.
    """
    try:
        return act()
    except ENDED:
        try:
            done = look()
        except Exception:  # otherwise the first exception is raised
            done = None
        if done is None:
            raise
        return done


def within(surroundings: AbstractContextManager[T], act: Callable[[T], CommandResult]) -> CommandResult:
    """Run an action inside a context; an interrupt while the context exits does not lose the result."""
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
    """Return the current time, which evidence and ledger record."""
    return datetime.now(UTC).isoformat(timespec="seconds")
