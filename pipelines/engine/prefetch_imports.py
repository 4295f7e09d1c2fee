"""Import of slow modules in a thread while Java and Spark start."""

from __future__ import annotations

import importlib
import threading


def prefetch_imports(*modules: str) -> None:
    """Import modules in the given order in a thread; importing one of them elsewhere waits for the thread."""

    def imports() -> None:
        for module in modules:
            importlib.import_module(module)

    threading.Thread(target=imports, daemon=True).start()
