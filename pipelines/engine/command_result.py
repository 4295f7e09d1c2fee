"""The result of a verb: a text for a person, and plain values for a program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class CommandResult:
    """The result of a pipeline; no part has a value of a record.

    Attributes
    ----------
    text : str
        For a person.
    content : dict
        For a program.
    brief : str
        The same in one line, which `--quiet` prints; empty if it prints nothing.
    """

    text: str
    content: dict[str, Any] = field(default_factory=dict)
    brief: str = ""

    def with_note(self, note: str, **content: Any) -> CommandResult:
        """Return the result with a note before its text, and further values for a program."""
        return CommandResult(f"{note}\n{self.text}", self.content | content, self.brief)

    def summary(self) -> str:
        """Return the text for a person."""
        return self.text

    def as_json(self) -> dict[str, Any]:
        """Return the values for a program."""
        return dict(self.content)


#: What can interrupt a call; a killed process raises none of these.
ENDED = (Exception, KeyboardInterrupt, SystemExit)


def look_again(act: Callable[[], CommandResult], look: Callable[[], CommandResult | None]) -> CommandResult:
    """Run an act; if it is interrupted or fails, return its result if a second look finds it done.

    Parameters
    ----------
    act : callable
    look : callable
        Returns the result if the act is done although it was interrupted, else None.
    """
    try:
        return act()
    except ENDED:
        try:
            done = look()
        except Exception:  # the first exception is raised
            done = None
        if done is None:
            raise
        return done


def within(surroundings: AbstractContextManager[T], act: Callable[[T], CommandResult]) -> CommandResult:
    """Run an act in a context; an interrupt while the context exits does not lose its result."""
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
    """Return the current time, for evidence and ledger."""
    return datetime.now(UTC).isoformat(timespec="seconds")
