"""Daemon process from which Spark forks its Python workers; Spark starts this module by its name.

The process starts no threads, because threads do not survive a fork.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from importlib.util import find_spec


def load() -> None:
    """Import the modules of a worker that clusters records, and load the compiled kernels."""
    import microguard.pipelines.records.cluster_blocks  # noqa: F401
    from microguard.sdc.default_kernels import clusters
    from microguard.sdc.kernels.compile import load_compiled

    load_compiled(clusters)


def leave_archives() -> None:
    """Remove archives from the import path if a folder in it contains pyspark.

    Before each task a worker clears Python's import caches (``importlib.invalidate_caches``). Python 3.11
    then reads the list of contents of each archive again for each package in it. The archives are pyspark's
    zip and Spark's core jar, which Spark adds to the path. Reading them takes longer than most tasks.
    """
    whole = list(sys.path)
    archives = {entry for entry in whole if entry.endswith((".zip", ".jar"))}
    sys.path[:] = [entry for entry in whole if entry not in archives]
    if find_spec("pyspark") is None:
        sys.path[:] = whole
        return
    for entry in archives:
        sys.path_importer_cache.pop(entry, None)


@contextmanager
def port_alone() -> Iterator[None]:
    """Redirect the output of imports, because Spark reads a port number from standard output.

    Afterwards `sys.stdout` is the original standard output; for compiled code, descriptor 1 stays standard
    error.
    """
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with redirect_stdout(sys.stderr):
        yield
    sys.stdout = pipe


if __name__ == "__main__":
    with port_alone():
        leave_archives()
        from pyspark.daemon import manager

        with suppress(Exception):  # an error of a failed import is reported by the first task
            load()
    # frozen, because a worker collects garbage after each task and would traverse all loaded objects
    gc.freeze()
    manager()
