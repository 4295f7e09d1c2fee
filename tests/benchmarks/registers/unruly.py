"""Publish and attack many small registers with frequent unusual events.

In consecutive updates, half of a register leaves, returns with other values, and is corrected back and forth.
The variables have few values, so that classes coincide. Every update must be published or have no changes,
and the attack must find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from tests.benchmarks.parts import say
from tests.benchmarks.registers.agency import Agency
from tests.benchmarks.registers.attack import attack
from tests.benchmarks.registers.copies import Copy
from tests.benchmarks.registers.stream import QUASI_IDENTIFIERS, correct, people
from tests.benchmarks.table import Table

NIGHTS = 8
#: Minimum number of units.
LEAST = 60


@dataclass(frozen=True)
class Unruly:
    """One random register."""

    seed: int
    kind: str
    k: int
    units: int
    values: int
    changes: str
    pool: int
    diversity: int

    @classmethod
    def of(cls, seed: int) -> Unruly:
        """Draw the register of a seed."""
        random = np.random.default_rng(seed)
        k = int(random.choice([2, 3, 5]))
        kind = str(random.choice(["nominal", "nominal", "mixed", "numeric"]))
        return cls(
            seed,
            kind,
            k,
            units=int(random.choice([150, 400, 900])),
            values=int(random.choice([2, 4, 8])),
            changes=str(random.choice(["keep", "republish"])),
            pool=int(random.choice([k, 2 * k])),
            diversity=int(random.choice([1, 1, 2])),
        )

    def nights(self) -> Iterator[pd.DataFrame]:
        """Yield the register of each update."""
        random = np.random.default_rng([self.seed, 1])
        everybody = people(self.kind, self.units, 2 * self.units, random)
        shares = [0.6, 0.3, 0.08, 0.02]  # all units of the smallest region may be pending
        everybody["region"] = random.choice(["r0", "r1", "r2", "r3"], len(everybody), p=shares)
        for name in QUASI_IDENTIFIERS[self.kind]:
            if everybody[name].dtype.kind in "if":
                ranks = everybody[name].rank(method="first")
                everybody[name] = pd.qcut(ranks, self.values, labels=False).astype(float) * 10
        original, number = everybody.copy(), len(everybody)
        there = np.arange(number) < self.units
        yield everybody[there].reset_index(drop=True)
        for _ in range(1, NIGHTS):
            event = random.random()
            if event < 0.25:  # this update is a mass departure
                there &= random.random(number) < random.random()
            elif event < 0.5:  # this update is a burst of entrants and returning units
                there |= random.random(number) < 0.6 * random.random()
            else:
                there ^= random.random(number) < 0.1
            there[:LEAST] |= there.sum() < LEAST
            share = 0.3 if random.random() < 0.2 else 0.05
            correct(everybody, np.flatnonzero(random.random(number) < share), self.kind, random)
            if random.random() < 0.15:  # this update reverts all corrections
                everybody = original.copy()
            frame = everybody[there]
            yield frame.iloc[random.permutation(len(frame))].reset_index(drop=True)


def unruly_registers(spark: SparkSession, folder: Path, seeds: range) -> Table:
    """Publish and attack the registers of all seeds, and return a row for each.

    Raises
    ------
    AssertionError
        If the attack succeeds on a register.
    MicroguardError
        If an update is refused.
    """
    rows: list[tuple[object, ...]] = []
    for seed in seeds:
        register = Unruly.of(seed)
        releases, waiting, ghosts = [], 0, 0
        home = folder / f"unruly-{seed}"
        home.mkdir()
        agency = Agency(
            spark,
            home,
            register.kind,
            register.k,
            effort="fast",
            method={"min_diversity": register.diversity},
            series={"pool": register.pool},
            changes=register.changes,
        )
        for night, frame in enumerate(register.nights()):
            done = agency.publish(frame)
            if done.release not in releases:
                releases.append(done.release)
            waiting, ghosts = done.counts.get("waiting", 0), done.counts.get("ghosts", 0)
            say(f"unruly register {seed}: night {night + 1} of {NIGHTS} in {done.seconds:.0f} s")
        found = attack([Copy.of(release) for release in releases])
        assert found.nothing, f"seed {seed}: the attack succeeded"
        assert found.smallest >= register.k
        what = (register.kind, register.k, register.changes, register.pool, register.diversity)
        rows.append((seed, *what, register.units, len(releases), found.smallest, ghosts, waiting))
    columns = ("seed", "kind", "k", "changes", "pool", "diversity", "units", "releases")
    more = ("smallest history", "ghosts at last", "waiting at last")
    return Table(f"Unruly registers over {NIGHTS} nights, attacked", (*columns, *more), rows)
