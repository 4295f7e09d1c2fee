"""Repeat one case by its seed and print what happened: ``python -m ... SEED [KIND]``."""

import sys
import tempfile
from pathlib import Path

from tests.contract.storage.places import buckets
from tests.contract.storage.world import Violation, World

with tempfile.TemporaryDirectory() as folder, buckets(Path(folder)):
    world = World(Path(folder), int(sys.argv[1]), *sys.argv[2:])
    try:
        world.live()
    except Violation as error:
        print(error)
    print("\n".join(world.story))
