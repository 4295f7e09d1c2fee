"""Run the command in another process, from arguments to exit code."""

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
    """The exit code and output of a command, and the loaded modules of its process if known."""

    code: int
    out: str
    err: str
    loaded: tuple[str, ...] = ()


def microguard(*arguments: str | Path) -> Ran:
    """Run ``microguard ARGUMENTS`` and return its result."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT, env=dict(os.environ)
    )
    return Ran(done.returncode, done.stdout, done.stderr)


#: Run several commands in one process, which starts Java and imports once. Streams, exit code and loaded
#: modules of each run are written to files next to its specification. The first run replaces `sys.stdout`,
#: and output of Java remains with this run.
_SEVERAL = """
import os, sys
from pathlib import Path
import microguard
for path in sys.argv[1:]:
    out, err, code = (Path(path).with_name(name) for name in ("out", "err", "code"))
    os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT), 2)
    if path == sys.argv[1]:
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    else:
        sys.stdout = out.open("w", encoding="utf-8")
    ended = microguard.main(["protect", path, "--json"])
    sys.stdout.flush()
    sys.stderr.flush()
    code.write_text(str(ended))
    Path(path).with_name("loaded").write_text(" ".join(sys.modules))
"""


def protect_each(*specifications: Path) -> list[Ran]:
    """Run ``microguard protect --json`` of each specification in one new process, one after the other."""
    program = [sys.executable, "-c", _SEVERAL, *map(str, specifications)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    names = ("code", "out", "err", "loaded")
    files = [[path.with_name(name).read_text() for name in names] for path in specifications]
    return [Ran(int(code), out, err, tuple(loaded.split())) for code, out, err, loaded in files]


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
