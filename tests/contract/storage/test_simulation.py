"""Tests of publication, decisions, withdrawal and recovery with failures at any operation.

The message of a failed case names its seed: ``python -m tests.contract.storage SEED [KIND]`` repeats the
case.
"""

from __future__ import annotations

import shutil

import pytest

from tests.contract.storage.places import KINDS, buckets
from tests.contract.storage.world import Violation, World

QUICK, LONG = range(150), range(150, 5000)


def violations(folder, seeds, kind):
    """Return the violated invariants of a simulation, by seed."""
    found = {}
    for seed in seeds:
        root = folder / str(seed)
        root.mkdir()
        with buckets(root):
            world = World(root, seed, kind)
            try:
                world.live()
            except Violation as error:
                found[seed] = "\n".join([str(error), *world.story])
        shutil.rmtree(root)
    return found


def message(found, seeds):
    """Return the failed cases, the first with all its actions."""
    cases = [f"\n--- seed {seed}: {story}" for seed, story in found.items()]
    others = [f"\n{each.splitlines()[1]}" for each in cases[1:30]]
    return f"{len(found)} of {len(seeds)} cases" + "".join([*cases[:1], *others])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [QUICK, pytest.param(LONG, marks=pytest.mark.long)], ids=["quick", "long"])
def test_simulated_calls_report_the_state_of_the_areas_and_the_next_run_recovers(folder, seeds, kind):
    found = violations(folder, seeds, kind)
    assert not found, message(found, seeds)
