"""When to stop: by work, by proof, or (as a safety net only) by the clock.

The only place of ``sdc`` that looks at a clock. Work is counted so that the answer does not depend
on the machine; a deadline that fires is reported by ``stopped_by = "time"``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from microguard.sdc.errors import InvalidParameter

StoppedBy = Literal["work", "proof", "time"]
#: Seconds from which a limit is none: thirty years.
_FOR_EVER = 1e9


@dataclass(frozen=True)
class Deadline:
    """A wall-clock limit in seconds from its creation; ``Deadline.after(None)`` never expires."""

    at: float

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Deadline so many seconds from now; None for never."""
        if seconds is None:
            return cls(float("inf"))
        if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds > 0:
            raise InvalidParameter(f"time_limit must be a positive number of seconds, found {seconds!r}")
        return cls(time.monotonic() + float(seconds) if seconds < _FOR_EVER else float("inf"))

    @property
    def remaining(self) -> float:
        """Seconds left, 0 when it has passed, infinity where there is no limit."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the limit has been reached."""
        return time.monotonic() >= self.at
