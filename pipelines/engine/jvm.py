"""Options of the JVM that this process starts, so that a short run is short.

Most of a run on a small file is the JVM's: it reads the classes of Spark, and compiles what is called a few
times only. A small file gets the quick compiler alone, and for a tiny one Spark writes no code to compile
(`pipelines.engine.session`); and classes come from an archive, where one was made: see
`pipelines.engine.class_archive`. The archive is the JVM's own (class data sharing), laid over one of Java's
classes, which small runtimes come without; one that does not fit Java, Spark or memory settings is not used,
and nothing is said.
"""

from __future__ import annotations

import glob
import os
import sys
from enum import Enum
from pathlib import Path

#: Bytes of input up to which the thorough compiler costs more than it gives: some 300,000 records.
SMALL_INPUT = 10 * 2**20
#: Bytes up to which code that Spark writes for a query costs more than it gives: about 20,000 records.
TINY_INPUT = 512 * 2**10
ARCHIVE = Path(sys.prefix) / "share" / "microguard" / "spark-classes.jsa"
JAVA_ARCHIVE = ARCHIVE.with_name("java-classes.jsa")
#: Only the quick compiler, with the room for its code that both would have (else a session of some dozen
#: runs throws away what it compiled, and compiles it again), and no threads for collecting garbage.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseSerialGC")
#: Directives of the JVM's compilers: what plans queries, compiles their code, or writes tasks down is left to
#: the quick compiler. It runs some thousand times a query and not once a record, and took a third of the
#: thorough one's time.
DIRECTIVES = Path(__file__).with_name("quick_compiler_only.json")
#: For a long run the collector that stops the program: one that works beside it slows each of its writes, and
#: makes more code to compile of them. That directives were read, the JVM says where nobody looks.
THOROUGH = (
    "-XX:+UseParallelGC",
    "-XX:+UnlockDiagnosticVMOptions",
    f"-XX:CompilerDirectivesFile={DIRECTIVES}",
    "-XX:+DisplayVMOutputToStderr",
)


class InputSize(Enum):
    """How long a run on an input is."""

    TINY = "tiny"
    SMALL = "small"
    LARGE = "large"


def input_size(input_path: str | None) -> InputSize:
    """The size of the file, folder or glob of this name; None is an input of unknown size."""
    size = None if input_path is None else _bytes(input_path)
    if size is None or size > SMALL_INPUT:
        return InputSize.LARGE
    return InputSize.TINY if size <= TINY_INPUT else InputSize.SMALL


def jvm_options(size: InputSize) -> tuple[str, ...]:
    """Options for a run on an input of this size."""
    by_size = THOROUGH if size is InputSize.LARGE else QUICK
    archives = f"-XX:SharedArchiveFile={JAVA_ARCHIVE}:{ARCHIVE}"
    archived = (archives, "-Xlog:disable") if ARCHIVE.exists() else ()
    return (*by_size, *archived)


def _bytes(input_path: str) -> int:
    """Bytes of all files behind a path; none for what cannot be looked at, which is refused soon after."""
    files = (
        Path(folder) / name
        for entry in glob.iglob(input_path)
        for folder, _, names in (os.walk(entry) if os.path.isdir(entry) else [("", [], [entry])])
        for name in names
    )
    return sum(path.stat().st_size for path in files if path.is_file())
