"""Settings of a series, and the names of the columns of its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from microguard.pipelines.intake.unit_key import ROW, UNIT

#: Columns of the state and of tonight's input, beside `UNIT` and `ROW`. A unit's version is 0, or the number
#: of the night that corrected it.
VERSION, CLASS = "__version", "__class"
STATUS, SINCE, BORN, ORIGIN = "__status", "__since", "__born", "__origin"
STALE, SUPERSEDED, REGION, PATTERN, EVENT = "__stale", "__superseded", "__region", "__pattern", "__event"

#: The state of a unit, in order: one row a unit, and one more for each superseded version. A unit's origin
#: marks the classes of its other versions.
STATE = (UNIT, VERSION, CLASS, ROW, STATUS, SINCE, BORN, ORIGIN, STALE, SUPERSEDED, REGION, PATTERN)

STANDING, GHOST, WAITING, GONE = "standing", "ghost", "waiting", "gone"


@dataclass(frozen=True)
class SeriesSettings:
    """How a register goes on from night to night.

    Attributes
    ----------
    k : int
        Units of a class, at least.
    pool : int
        Units that a stratum waits for before they are clustered; corrected ones wait for k.
    changes : {"keep", "republish"}
        "keep": the values first published stand. "republish": a corrected unit leaves with its old values
        and comes with its new ones.
    diverse : tuple of str
        Sensitive variables of which a class is to show several values.
    min_diversity : int
        How many, which a stratum waits for, too.
    max_waiting, max_ghosts, max_stale : float
        Shares above which the series must be solved anew: waiting units of the input, and ghosts and
        corrected values of what is published.
    """

    k: int
    pool: int
    changes: Literal["keep", "republish"] = "keep"
    diverse: tuple[str, ...] = ()
    min_diversity: int = 1
    max_waiting: float = 0.05
    max_ghosts: float = 0.2
    max_stale: float = 0.2

    def __post_init__(self) -> None:
        if self.pool < self.k:
            raise ValueError("a pool of fewer than k units makes no class")
