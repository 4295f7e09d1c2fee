"""Do one case again, by its seed, and tell its story: ``python -m ... SEED``."""

import sys
import tempfile
from pathlib import Path

from tests.pipelines.publication.simulation.world import Violation, World

with tempfile.TemporaryDirectory() as folder:
    world = World(Path(folder), int(sys.argv[1]))
    try:
        world.live()
    except Violation as error:
        print(error)
    print("\n".join(world.story))
