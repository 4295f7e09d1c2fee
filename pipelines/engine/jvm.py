"""Options of the JVM by the size of the input, chosen such that small runs start quickly.

A run on a small file spends most of its time loading Spark's classes and compiling code that is called a few
times. For a small file the JVM therefore uses only the C1 compiler, and for a tiny file Spark generates no
code (`pipelines.engine.session`). Classes are loaded from an archive if it was made
(`pipelines.engine.class_archive`). The archive uses class data sharing on top of an archive of Java's own
classes, which small runtimes lack. The JVM silently ignores an archive that does not match Java, Spark or the
memory settings.
"""

from __future__ import annotations

import glob
import os
import sys
from enum import Enum
from pathlib import Path

#: Maximum size in bytes of an input for which the C2 compiler takes more time than it saves: about 300,000
#: records.
SMALL_INPUT = 10 * 2**20
#: Maximum size in bytes of an input for which Spark's code generation takes more time than it saves: about
#: 20,000 records.
TINY_INPUT = 512 * 2**10
ARCHIVE = Path(sys.prefix) / "share" / "microguard" / "spark-classes.jsa"
JAVA_ARCHIVE = ARCHIVE.with_name("java-classes.jsa")
#: Options of small runs: only the C1 compiler, with the code cache size of both compilers, and the serial
#: garbage collector. With a smaller cache, a session of some dozen runs discards compiled code and compiles
#: it again.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseSerialGC")
#: Compiler directives: code that plans queries, compiles them or serialises tasks is compiled by C1 only.
#: This code runs some thousand times per query but never per record, and took a third of C2's time.
DIRECTIVES = Path(__file__).with_name("quick_compiler_only.json")
#: Options of long runs. The parallel garbage collector: a concurrent one slows each write by a barrier, and
#: makes more code to compile. The JVM reports that it read the directives on an output that is discarded.
#: Methods above 8,000 bytes, which Spark generates for hashes of many columns, are compiled, too: when
#: interpreted, the query that samples records for trees took twice as long. `deploy/spark-defaults.conf` sets
#: the same options on executors.
THOROUGH = (
    "-XX:+UseParallelGC",
    "-XX:-DontCompileHugeMethods",
    "-XX:+UnlockDiagnosticVMOptions",
    f"-XX:CompilerDirectivesFile={DIRECTIVES}",
    "-XX:+DisplayVMOutputToStderr",
)


class InputSize(Enum):
    """Size class of an input, by which a session is configured."""

    TINY = "tiny"
    SMALL = "small"
    LARGE = "large"


def input_size(input_path: str | None) -> InputSize:
    """Return the size class of a file, folder or glob; None denotes an input of unknown size."""
    size = None if input_path is None else _bytes(input_path)
    if size is None or size > SMALL_INPUT:
        return InputSize.LARGE
    return InputSize.TINY if size <= TINY_INPUT else InputSize.SMALL


def jvm_options(size: InputSize) -> tuple[str, ...]:
    """Return the options of the JVM for an input of this size class."""
    by_size = THOROUGH if size is InputSize.LARGE else QUICK
    archives = f"-XX:SharedArchiveFile={JAVA_ARCHIVE}:{ARCHIVE}"
    archived = (archives, "-Xlog:disable") if ARCHIVE.exists() else ()
    return (*by_size, *archived)


def _bytes(input_path: str) -> int:
    """Return the total size of all files of a path; unreadable files count as 0 and are refused later."""
    files = (
        Path(folder) / name
        for entry in glob.iglob(input_path)
        for folder, _, names in (os.walk(entry) if os.path.isdir(entry) else [("", [], [entry])])
        for name in names
    )
    return sum(path.stat().st_size for path in files if path.is_file())
