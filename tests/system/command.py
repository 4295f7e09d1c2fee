"""Run the command in another process, as a user does, from arguments to exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from microguard.schemas.specification.consistency import HELD_BY_DEFAULT

COMMAND = str(Path(sys.executable).with_name("microguard"))
TIMEOUT = 600
#: Disables the default limits on disclosure, which these tests do not check.
ACCEPTED = "[quality.accept]\n" + "\n".join(f'{name} = "a test"' for name in HELD_BY_DEFAULT)


@dataclass(frozen=True)
class Ran:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


def microguard(*arguments: str | Path) -> Ran:
    """Run ``microguard ARGUMENTS`` and return its result."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT, env=dict(os.environ)
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def specification(folder: Path, frame: pd.DataFrame, variables: str, more: str = "", k: int = 3) -> Path:
    """Write records and their specification to a folder, and return the path of the specification."""
    frame.to_parquet(folder / "records.parquet", index=False)
    path = folder / "release.toml"
    path.write_text(
        f'[release]\nname = "persons"\nk = {k}\nseed = 7\n[input]\npath = "records.parquet"\n'
        f"[variables]\n{variables}\n{more}\n{ACCEPTED}\n"
        '[publish]\npath = "lake"\nevidence = "evidence"\n'
    )
    return path
