"""Options of the JVM that this process starts, so that a short run is short.

Most of a run on a small file is the JVM's: it reads the classes of Spark, and compiles what is called a few
times only. A small file gets the quick compiler alone; and classes come from an archive, where one was made:
see `pipelines.engine.class_archive`. The archive is the JVM's own (class data sharing);
one that does not fit Java, Spark or memory settings is not used, and nothing is said.
"""

from __future__ import annotations

import glob
import os
import sys
from pathlib import Path

#: Bytes of input up to which the thorough compiler costs more than it gives.
SMALL_INPUT = 64 * 2**20
ARCHIVE = Path(sys.prefix) / "share" / "microguard" / "spark-classes.jsa"
#: Only the JVM's quick compiler, and no threads for collecting garbage.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def is_small(input_path: str | None) -> bool:
    """Whether the file, folder or glob of this name makes a short run; None is an input of unknown size."""
    return input_path is not None and _size(input_path) <= SMALL_INPUT


def jvm_options(small: bool) -> tuple[str, ...]:
    """Options for a run on an input that is small, or is not."""
    quick = QUICK if small else ()
    archived = (f"-XX:SharedArchiveFile={ARCHIVE}", "-Xlog:disable") if ARCHIVE.exists() else ()
    return (*quick, *archived)


def _size(input_path: str) -> int:
    """Bytes of all files behind a path; none for what cannot be looked at, which is refused soon after."""
    files = (
        Path(folder) / name
        for entry in glob.iglob(input_path)
        for folder, _, names in (os.walk(entry) if os.path.isdir(entry) else [("", [], [entry])])
        for name in names
    )
    return sum(path.stat().st_size for path in files if path.is_file())
