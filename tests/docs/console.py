"""Run the console blocks of a page of the manual, and compare or write their output.

A page with the line ``<!-- run in examples/survey -->`` is run in a copy of that folder. In its blocks of
the language ``console``, a line that begins with ``$ `` is a command, and the lines up to the next command
are its output. Verbs of microguard run in this process on one Spark session, everything else in a shell.
``RELEASE`` stands for the id of the newest release, in commands and in output, and ``TIME`` for a time.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from microguard.jobs.output import _wrapped
from microguard.jobs.parser import parse
from microguard.jobs.verbs import call
from microguard.pipelines.engine.progress import Progress
from microguard.schemas.errors import MicroguardError

DOCS = Path(__file__).parents[2] / "docs"
_FOLDER = re.compile(r"^<!-- run in (\S+) -->$", re.MULTILINE)
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
_RELEASE_ID = re.compile(r"\b[0-9a-f]{32}\b")
#: Modules that open a session of their own.
_OPENS_SESSION = ("start_job", "check")


@dataclass(frozen=True)
class Step:
    """A command of a page, with the output that the page shows."""

    command: str
    output: str


def pages() -> list[Path]:
    """Return the pages whose console blocks are run."""
    return sorted(page for page in DOCS.rglob("*.md") if _FOLDER.search(page.read_text(encoding="utf-8")))


def steps(block: str) -> list[Step]:
    """Split the content of a block into commands and outputs."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [Step(*map(str.strip, part.partition("\n")[::2])) for part in parts]


def run(page: Path, folder: Path, spark: object) -> tuple[str, str]:
    """Return the text of a page, and the same text with the output of this run.

    Parameters
    ----------
    page : Path
        Page of the manual.
    folder : Path
        Empty folder, in which the examples are copied.
    spark : SparkSession
    """
    text = page.read_text(encoding="utf-8")
    found = _FOLDER.search(text)
    assert found is not None, page
    shutil.copytree(DOCS / "examples", folder / "examples")
    place = (folder / found[1]).resolve()
    newest = ""

    def written(match: re.Match[str]) -> str:
        nonlocal newest
        lines = []
        for step in steps(match[1]):
            output = output_of(step.command.replace("RELEASE", newest), place)
            ids = _RELEASE_ID.findall(output)
            newest = ids[-1] if ids else newest
            lines += [f"$ {step.command}", *filter(None, [plain(output, place).strip()])]
        return "```console\n" + "\n".join(lines) + "\n```"

    with shared(spark):
        return text, _BLOCK.sub(written, text)


def plain(text: str, place: Path) -> str:
    """Return output without parts that differ between runs: ids, times, and the folder of the run."""
    return _RELEASE_ID.sub("RELEASE", _TIME.sub("TIME", text.replace(f"{place}/", "")))


def output_of(command: str, place: Path) -> str:
    """Run a command in a folder, and return its output."""
    words = shlex.split(command)
    if words[0] != "microguard":
        done = subprocess.run(command, shell=True, cwd=place, capture_output=True, text=True, check=True)
        return done.stdout
    shown: list[str] = []
    with chdir(place):
        try:
            result = call(parse(words[1:]), lambda: Progress(quiet=True), shown.append)
        except MicroguardError as error:
            return "\n".join([*map(_wrapped, str(error).splitlines()), f"(exit code {error.exit_code})"])
    return "\n".join([*shown, result.text])


@contextmanager
def shared(spark: object) -> Iterator[None]:
    """Make all verbs use one session instead of one session each."""

    @contextmanager
    def session(*_: object, **__: object) -> Iterator[object]:
        yield spark

    patches = [mock.patch(f"microguard.pipelines.{module}.session", session) for module in _OPENS_SESSION]
    patches.append(mock.patch("microguard.pipelines.engine.session.prestart_java"))
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()
