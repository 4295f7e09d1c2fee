"""Measure time, output and memory of commands and all their processes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.system.command import COMMAND


@dataclass(frozen=True)
class Ran:
    """The result of a successful command: its seconds, its output, and the start of each stage in seconds."""

    seconds: float
    answer: dict[str, Any]
    stages: dict[str, float]


def microguard(*arguments: str) -> Ran:
    """Run ``microguard ARGUMENTS``; raise AssertionError with its output if it fails."""
    start = time.monotonic()
    done = subprocess.run([COMMAND, *arguments, "--json", "--log", "json"], capture_output=True, text=True)
    seconds = time.monotonic() - start
    assert done.returncode == 0, done.stderr
    stages: dict[str, float] = {}
    for line in done.stderr.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if "stage" in event and "seconds" in event:
            stages[event["stage"]] = stages.get(event["stage"], 0.0) + event["seconds"]
    return Ran(seconds, json.loads(done.stdout.strip().splitlines()[-1]), stages)


def timed(command: list[str]) -> float:
    """Return the seconds of a command."""
    start = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - start


class Usage:
    """Sample peak memory and CPU seconds of all processes that this process has started (Linux)."""

    def __enter__(self) -> Usage:
        self.peak = 0
        self._ticks: dict[int, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all these processes, up to the last sample of each."""
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _watch(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._over.wait(0.5):
            parents, pages, ticks = {}, {}, {}
            for entry in Path("/proc").glob("[0-9]*/stat"):
                try:
                    fields = entry.read_text().rpartition(")")[2].split()
                except OSError:  # the process ended while it was sampled
                    continue
                number = int(entry.parent.name)
                parents[number], pages[number] = int(fields[1]), int(fields[21])
                ticks[number] = int(fields[11]) + int(fields[12])
            ours = {os.getpid()}
            while grown := {child for child, parent in parents.items() if parent in ours} - ours:
                ours |= grown
            self._ticks |= {number: ticks[number] for number in ours - {os.getpid()}}
            self.peak = max(self.peak, page * sum(pages[child] for child in ours - {os.getpid()}))
