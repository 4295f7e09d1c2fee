"""Stopping rules: stop by counted work, by proof, or (only for safety) by the clock.

No other module of ``sdc`` reads a clock. Methods count work instead, so that a result does not depend on the
machine. If a deadline ends a search, the result has ``stopped_by = "time"``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from microguard.sdc.errors import InvalidParameter

StoppedBy = Literal["work", "proof", "time"]
#: Limits of at least this many seconds (thirty years) count as no limit.
_FOR_EVER = 1e9


@dataclass(frozen=True)
class Deadline:
    """A wall-clock limit in seconds from its creation; ``Deadline.after(None)`` never expires."""

    at: float

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the deadline `seconds` from now; with None it never expires."""
        if seconds is None:
            return cls(float("inf"))
        if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds > 0:
            raise InvalidParameter(
                f"time_limit: expected a positive number of seconds, found {seconds!r}. Omit it for no limit"
            )
        return cls(time.monotonic() + float(seconds) if seconds < _FOR_EVER else float("inf"))

    @property
    def remaining(self) -> float:
        """Return the seconds left; 0 after the deadline, infinity if there is no limit."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Return whether the deadline has passed."""
        return time.monotonic() >= self.at
