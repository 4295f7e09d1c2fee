"""Store finished parts of a long benchmark, so that a repeated call with the same code skips them.

A part is a table, a result with its CPU seconds, or a folder.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.benchmarks.table import Table

T = TypeVar("T")
_ROOT = Path(__file__).resolve().parents[2]
#: Folder for plots and finished parts of benchmarks.
RESULTS = Path("build/benchmarks")
#: Files that determine the results of benchmarks.
_CODE = ("sdc", "schemas", "pipelines", "jobs")


class Parts:
    """Finished parts of one benchmark, in a folder named by the hash of the code.

    Parameters
    ----------
    name : str
        Name of the benchmark; another size has another name.
    *folders : str
        Folders of its code in ``tests/benchmarks``.
    rooms : tuple of str
        Rooms of the source that determine its results.
    """

    def __init__(self, name: str, *folders: str, rooms: tuple[str, ...] = _CODE) -> None:
        code = (*rooms, *(f"tests/benchmarks/{folder}" for folder in folders))
        self._folder = RESULTS / f"{name}-{_digest(code)}"

    def folder(self, name: str) -> Path:
        """Return the storage of a part."""
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def table(self, name: str, make: Callable[[], Table]) -> Table:
        """Return a part that is one table, computed or from an earlier call."""
        path = self.folder("tables") / f"{name}.json"
        if path.is_file():
            say(f"{name}: finished before")
            content = json.loads(path.read_text(encoding="utf-8"))
            rows = [tuple(row) for row in content["rows"]]
            return Table(content["title"], tuple(content["columns"]), rows, content["note"])
        table = make()
        write_json(path, vars(table))
        return table

    def answer(self, name: str, solve: Callable[[], T]) -> tuple[T, float]:
        """Return a result and its CPU seconds, computed or from an earlier call."""
        path = self.folder("answers") / f"{name}.pickle"
        if path.is_file():
            return pickle.loads(path.read_bytes())  # type: ignore[no-any-return]
        begin = time.process_time()
        solved = solve()
        answer = solved, time.process_time() - begin
        write(path, pickle.dumps(answer))
        say(f"{name}: {answer[1]:.1f} s")
        return answer

    def forget(self) -> None:
        """Remove all parts of a finished benchmark, so that the next call starts from scratch."""
        shutil.rmtree(self._folder)


def read_json(path: Path, default: Any) -> Any:
    """Return the stored object, or `default`."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else default


def write_json(path: Path, content: object) -> None:
    write(path, json.dumps(content, default=str).encode())


def write(path: Path, content: bytes) -> None:
    """Write a file atomically, so that a kill leaves the previous content."""
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(content)
    fresh.replace(path)


def say(text: str) -> None:
    """Print a line of progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def _digest(code: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for room in code:
        for path in sorted((_ROOT / room).rglob("*.py")):
            digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
