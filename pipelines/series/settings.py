"""Settings of a series, and the names of the columns of its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from microguard.pipelines.intake.unit_key import ROW, UNIT

#: Columns of the state and of the input, in addition to `UNIT` and `ROW`. The version of a unit is 0, or the
#: number of the update that corrected the unit.
VERSION, CLASS = "__version", "__class"
STATUS, SINCE, CREATED, ORIGIN = "__status", "__since", "__born", "__origin"
STALE, SUPERSEDED, REGION, PATTERN, EVENT = "__stale", "__superseded", "__region", "__pattern", "__event"

#: Columns of the state, in order. The state has one row for each unit and one for each superseded version.
#: `ORIGIN` combines the hashes of the classes of a unit's other versions.
STATE = (UNIT, VERSION, CLASS, ROW, STATUS, SINCE, CREATED, ORIGIN, STALE, SUPERSEDED, REGION, PATTERN)

#: Status of a version: published and in the source; published although no longer in the source (m-invariance:
#: counterfeit); not published yet; no longer published, because its whole class is suppressed.
PRESENT, RETAINED, WAITING, SUPPRESSED = "standing", "ghost", "waiting", "gone"


@dataclass(frozen=True)
class SeriesSettings:
    """Settings that determine how a register is updated.

    Attributes
    ----------
    k : int
        Least number of units in a class.
    pool : int
        Minimum number of units of a stratum before they are clustered; for corrected units the minimum is k.
    changes : {"keep", "republish"}
        "keep": the first published values never change. "republish": the old record of a corrected unit is
        retained, and the unit is published again with its new values.
    diverse : tuple of str
        Sensitive variables that need several values in each class.
    min_diversity : int
        Minimum number of distinct values in a class; the classes of a batch with fewer values are published
        without their sensitive values.
    max_waiting, max_ghosts, max_stale : float
        Limits on shares: waiting units (share of the input), retained records and stale values (shares of the
        published records). If a limit is exceeded, all units must be protected again.
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
            raise ValueError("a pool of fewer than k units forms no class")
