"""Publishing, deciding, withdrawing and recovering, whatever fails at any operation and wherever the area is.

A case that fails names its seed: ``python -m tests.pipelines.publication.simulation SEED`` does it again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.pipelines.publication.simulation.world import Violation, World

QUICK, LONG = range(200), range(200, 5000)
#: Memory that is a file system, where there is one: nothing here rests on a disk.
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path):
    """An empty folder, in memory if it can be."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) as path:
        yield Path(path)


def violations(folder, seeds):
    """What must never be and is, by seed."""
    found = {}
    for seed in seeds:
        root = folder / str(seed)
        root.mkdir()
        world = World(root, seed)
        try:
            world.live()
        except Violation as error:
            found[seed] = "\n".join([str(error), *world.story])
        shutil.rmtree(root)
    return found


def told(found):
    """The cases, the first with all that was done."""
    return "".join(f"\n--- seed {seed}: {story}" for seed, story in list(found.items())[:1]) + "".join(
        f"\n--- seed {seed}: {story.splitlines()[0]}" for seed, story in list(found.items())[1:30]
    )


def test_every_answer_agrees_with_the_areas_and_the_next_run_recovers(folder):
    found = violations(folder, QUICK)
    assert not found, f"{len(found)} of {len(QUICK)} cases{told(found)}"


@pytest.mark.long
def test_every_answer_agrees_with_the_areas_over_thousands_of_cases(folder):
    found = violations(folder, LONG)
    assert not found, f"{len(found)} of {len(LONG)} cases{told(found)}"
