"""Verbs that run as child processes of the same command line; their progress is reported as they print it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

MOST_LINE = 1 << 20
"""Maximum number of bytes in a line that a child process prints."""


@dataclass(frozen=True)
class Finished:
    """Result of a verb.

    Attributes
    ----------
    exit_code : int
    text : str
        Text that the verb printed for a person: the summary, or the reason for its failure.
    content : dict
        Result that the verb wrote for programs.
    outdated : bool
        Whether the specification changed while the verb ran.
    """

    exit_code: int
    text: str
    content: dict[str, Any] = field(default_factory=dict)
    outdated: bool = False

    @property
    def failures(self) -> list[dict[str, str]]:
        """Return the current and the expected refusals, each with its remedy and, if known, a correcting
        line.
        """
        forecast = self.content.get("forecast", {})
        return [*self.content.get("failures", []), *forecast.get("failures", [])]


class Command:
    """Verb that runs in a child process; `stop` interrupts it like Ctrl-C.

    Parameters
    ----------
    arguments : sequence of str
        The verb and its arguments.
    folder : Path
        Working folder.
    """

    program: ClassVar[tuple[str, ...]] = (sys.executable, "-m", "microguard")

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self.arguments, self._folder = list(arguments), folder
        self._process: asyncio.subprocess.Process | None = None

    async def run(self, progress: Callable[[str], None]) -> Finished:
        """Run the verb; call `progress` with each line of standard error."""
        with tempfile.TemporaryDirectory() as private:  # has mode 0700
            outcome = Path(private) / "outcome.json"
            self._process = await asyncio.create_subprocess_exec(
                *self.program, *self.arguments, "--outcome", str(outcome),
                cwd=self._folder,
                env=os.environ | {"PYTHONPATH": _path(), "PYTHONSAFEPATH": "1"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=MOST_LINE,
            )  # fmt: skip
            assert self._process.stdout is not None
            assert self._process.stderr is not None
            printed, lines = await asyncio.gather(
                self._process.stdout.read(), _lines(self._process.stderr, progress)
            )
            exit_code = await self._process.wait()
            content = json.loads(outcome.read_text()) if outcome.exists() else {}
        text = printed.decode(errors="replace").strip()
        return Finished(exit_code, text if exit_code == 0 else "\n".join(lines), content)

    def stop(self) -> None:
        """Interrupt the verb; unfinished results are not published."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()

    async def end(self) -> None:
        """Interrupt the verb, and wait until its process has ended."""
        self.stop()
        if self._process is not None:
            await self._process.wait()


async def _lines(stream: asyncio.StreamReader, progress: Callable[[str], None]) -> list[str]:
    """Read a stream to its end; return its lines without the lines of progress."""
    kept = []
    async for raw in stream:
        line = raw.decode(errors="replace").rstrip()
        progress(line.strip())
        if " elapsed" not in line:
            kept.append(line)
    return kept


def _path() -> str:
    """Return the module search path with which a child process imports the same microguard.

    The folder of the data is not on the path, under any name: a module that somebody put there would be
    executed. An empty or relative entry would be a folder below the working folder of the child.
    """
    folder = str(Path(sys.modules["microguard"].__file__ or "").resolve().parent)
    further = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return os.pathsep.join([folder, *map(os.path.abspath, further)])
