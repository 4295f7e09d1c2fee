"""Parts of a long benchmark: what is finished is not done again when the same code is called again."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.table import Table

_ROOT = Path(__file__).resolve().parents[2]
#: Where benchmarks leave plots, and what they have finished.
RESULTS = Path("build/benchmarks")
#: What decides the answers of a register.
_CODE = ("sdc", "schemas", "pipelines", "jobs", "tests/benchmarks/registers")


class Parts:
    """The finished parts of one benchmark, in a folder that the digest of the code names.

    Parameters
    ----------
    name : str
        Of the benchmark; other sizes are another one.
    """

    def __init__(self, name: str) -> None:
        self._folder = RESULTS / f"{name}-{_digest()}"

    def folder(self, name: str) -> Path:
        """What a part keeps between calls."""
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def table(self, name: str, make: Callable[[], Table]) -> Table:
        """A part that is one table: made, or as it was made before."""
        path = self.folder("tables") / f"{name}.json"
        if path.is_file():
            say(f"{name}: finished before")
            content = json.loads(path.read_text(encoding="utf-8"))
            rows = [tuple(row) for row in content["rows"]]
            return Table(content["title"], tuple(content["columns"]), rows, content["note"])
        table = make()
        write_json(path, vars(table))
        return table

    def forget(self) -> None:
        """The benchmark is finished: the next call begins anew."""
        shutil.rmtree(self._folder)


def read_json(path: Path, default: Any) -> Any:
    """What was written, or `default` before."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else default


def write_json(path: Path, content: object) -> None:
    """Write in one step: a kill leaves what was there before."""
    fresh = path.with_suffix(".fresh")
    fresh.write_text(json.dumps(content, default=str), encoding="utf-8")
    fresh.replace(path)


def say(text: str) -> None:
    """Progress, a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def _digest() -> str:
    digest = hashlib.sha256()
    for room in _CODE:
        for path in sorted((_ROOT / room).rglob("*.py")):
            digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
