"""Figures that a benchmark asks for and does not meet: none of them ends a measurement of hours."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.benchmarks.parts import say


@dataclass(frozen=True)
class Misses:
    """What was missed: said at once, raised together when all is measured."""

    found: list[str] = field(default_factory=list)

    def unless(self, met: bool, miss: str) -> None:
        """Note a miss unless the figure was met."""
        if not met:
            say(f"missed: {miss}")
            self.found.append(miss)

    def fail(self) -> None:
        """Raise `AssertionError` with all misses, where there are any."""
        assert not self.found, f"{len(self.found)} missed: " + "; ".join(self.found)
