"""The process that Spark forks its Python workers from; Spark starts it by its module name.

It starts no threads, because threads do not survive a fork.
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
    """Remove archives from the import path if a folder has pyspark.

    Before each task a worker lets Python forget what it knows of the path (``importlib.invalidate_caches``),
    upon which Python 3.11 reads the contents of each archive again for each package in it: of pyspark's zip,
    and of Spark's core jar, which Spark puts on the path: more work than most tasks are.
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
    """Redirect the output of imports, because Spark reads the port from standard output.

    `sys.stdout` has it afterwards; for compiled code, descriptor 1 stays standard error.
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

        with suppress(Exception):  # the first task reports the error of a failed import
            load()
    gc.freeze()  # after each task a worker collects garbage, for which it would look at all that was loaded
    manager()
