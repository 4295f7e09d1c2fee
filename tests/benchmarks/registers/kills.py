"""Kill updates of a register at random times: the series continues and equals the undisturbed one."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.benchmarks.parts import read_json, say, write_json
from tests.benchmarks.registers.agency import NO_LIMITS
from tests.benchmarks.registers.stream import register_updates, roles
from tests.benchmarks.table import Table
from tests.system.command import ACCEPTED, COMMAND, TIMEOUT

KIND, UNITS, K, SEED = "mixed", 600, 3, 5
#: Maximum number of kills of one update.
MOST_A_NIGHT = 15


@dataclass
class Series:
    """A register with one process per update.

    Attributes
    ----------
    folder : Path
    key : Path
        The agency's key: two series with one key and one input have the same release ids.
    """

    folder: Path
    key: Path

    def prepare(self, number: int) -> None:
        """Write the specification, and the register of each update."""
        self.folder.mkdir(exist_ok=True)
        variables = "\n".join(
            f"[variables.{name}]\n" + "\n".join(f'{key} = "{value}"' for key, value in role.items())
            for name, role in roles(KIND).items()
        )
        limits = "\n".join(f"{name} = {value}" for name, value in NO_LIMITS.items())
        (self.folder / "release.toml").write_text(
            f'[release]\nname = "persons"\nk = {K}\nseed = 7\n[input]\npath = "register.parquet"\n'
            f"{variables}\n{ACCEPTED}\n[series]\n{limits}\n"
            '[publish]\nseries = "register"\npath = "lake"\nevidence = "evidence"\n'
        )
        for tonight in register_updates(KIND, UNITS, number, SEED):
            tonight.frame.to_parquet(self.folder / f"night{tonight.number}.parquet", index=False)

    def begin(self, night: int) -> subprocess.Popen[bytes]:
        """Start the job on the register of an update."""
        given = self.folder / "register.parquet"
        given.unlink(missing_ok=True)
        os.link(self.folder / f"night{night}.parquet", given)
        return subprocess.Popen(
            [COMMAND, "protect", str(self.folder / "release.toml"), "--quiet"],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "MICROGUARD_KEY_FILE": str(self.key)},
        )

    def finish(self, night: int) -> float:
        """Run an update to its end, and return its seconds."""
        start = time.monotonic()
        run = self.begin(night)
        _, told = run.communicate(timeout=TIMEOUT)
        assert run.returncode == 0, told.decode()
        return time.monotonic() - start

    def current(self) -> str:
        """Return the id of the current release, after checking that its files are complete."""
        lake = self.folder / "lake"
        release_id: str = json.loads((lake / "current.json").read_text())["release_id"]
        manifest = json.loads((lake / release_id / "manifest.json").read_text())
        for name, entry in manifest["files"].items():
            content = (lake / release_id / name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == entry["sha256"], "a reader found a partial release"
        return release_id

    def published(self) -> dict[str, dict[str, str]]:
        """Return the checksums of the records and tables of every release."""
        lake = self.folder / "lake"
        return {
            folder.parent.name: {
                path.relative_to(folder.parent).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(folder.parent.rglob("*.parquet"))
            }
            for folder in lake.glob("*/manifest.json")
        }

    def generations(self) -> list[str]:
        """Return numbers and release ids of the sealed states, in order."""
        return sorted(path.name for path in (self.folder / "evidence" / "series" / "persons").glob("[0-9]*"))


def kills(folder: Path, number: int, nights: int = 10) -> Table:
    """Kill the job `number` times at random times of updates 2 to `nights`, and compare both series.

    It continues after the updates that `folder` already contains.
    """
    key = folder / "key"
    if not key.exists():
        key.write_text(secrets.token_hex(32))
        key.chmod(0o600)
    undisturbed, killed = Series(folder / "undisturbed", key), Series(folder / "killed", key)
    undisturbed.prepare(nights)
    killed.prepare(nights)
    path = folder / "progress.json"
    progress = read_json(path, {"seconds": [], "night": 0, "kills": 0})
    for night in range(len(progress["seconds"]) + 1, nights + 1):
        progress["seconds"].append(undisturbed.finish(night))
        write_json(path, progress)
        say(f"undisturbed: night {night} of {nights}")
    for night in range(progress["night"] + 1, nights + 1):
        done = progress["kills"]
        if night > 1:
            most = min(-(-(number - done) // (nights - night + 1)), MOST_A_NIGHT)
            done += _killed(killed, undisturbed, night, most, progress["seconds"][night - 1])
        killed.finish(night)
        killed.current()
        progress |= {"night": night, "kills": done}
        write_json(path, progress)
        say(f"killed: night {night} of {nights}, {done} of {number} kills")
    assert killed.published() == undisturbed.published(), "the series differs from the undisturbed series"
    assert killed.generations() == undisturbed.generations(), "the series forked"
    releases = len(undisturbed.published())
    columns = ("nights", "releases", "kills", "releases identical", "forks")
    return Table(
        f"Kills at random moments of nights 2 to {nights}, {UNITS} units, {KIND}, k = {K}",
        columns,
        [(nights, releases, progress["kills"], releases, 0)],
    )


def _killed(killed: Series, undisturbed: Series, night: int, most: int, seconds: float) -> int:
    """Kill an update repeatedly, and return how many kills were before its end."""
    random, before, done = np.random.default_rng([SEED, night]), killed.current(), 0
    for _ in range(most):
        run = killed.begin(night)
        time.sleep(random.uniform(0.0, seconds))
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        done += run.returncode == -signal.SIGKILL
        assert killed.current() in (before, *undisturbed.published()), "a reader found another release"
    return done
