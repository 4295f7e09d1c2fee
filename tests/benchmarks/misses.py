"""Collect figures that a benchmark misses, so that a miss does not stop a long measurement."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.benchmarks.parts import say


@dataclass(frozen=True)
class Misses:
    """Missed figures: each is printed at once, and all are raised together at the end."""

    found: list[str] = field(default_factory=list)

    def unless(self, met: bool, miss: str) -> None:
        """Record a miss unless the figure was met."""
        if not met:
            say(f"missed: {miss}")
            self.found.append(miss)

    def fail(self) -> None:
        """Raise `AssertionError` with all misses, if there are any."""
        assert not self.found, f"{len(self.found)} missed: " + "; ".join(self.found)
