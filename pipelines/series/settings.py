"""Settings of a series, and the names of the columns of its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from microguard.pipelines.intake.unit_key import ROW, UNIT

#: Columns of the state and of the input, in addition to `UNIT` and `ROW`. A unit's version is 0, or the
#: number of the update that corrected it.
VERSION, CLASS = "__version", "__class"
STATUS, SINCE, CREATED, ORIGIN = "__status", "__since", "__born", "__origin"
STALE, SUPERSEDED, REGION, PATTERN, EVENT = "__stale", "__superseded", "__region", "__pattern", "__event"

#: The state, in order: one row for each unit, and one for each of its superseded versions. `ORIGIN` combines
#: the hashes of the classes of a unit's other versions.
STATE = (UNIT, VERSION, CLASS, ROW, STATUS, SINCE, CREATED, ORIGIN, STALE, SUPERSEDED, REGION, PATTERN)

#: Status of a version: published and in the source; published although no longer in the source (m-invariance:
#: a counterfeit); not published yet; no longer published, as its whole class is suppressed.
PRESENT, RETAINED, WAITING, SUPPRESSED = "standing", "ghost", "waiting", "gone"


@dataclass(frozen=True)
class SeriesSettings:
    """How a register is updated.

    Attributes
    ----------
    k : int
        Least number of units in a class.
    pool : int
        Units of a stratum that are needed before they are clustered; of corrected units k are.
    changes : {"keep", "republish"}
        "keep": the values first published stay. "republish": a corrected unit's old record is retained, and
        it is published again with its new values.
    diverse : tuple of str
        Sensitive variables that need several values in each class.
    min_diversity : int
        How many values; the classes of a batch with fewer are published without their values.
    max_waiting, max_ghosts, max_stale : float
        Limits on shares: waiting units of the input; retained records, and stale values, of what is
        published. Above one, all units must be protected again.
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
