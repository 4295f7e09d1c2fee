"""Modules that take seconds to import, imported beside what else is starting."""

from __future__ import annotations

import importlib
import threading


def prefetch_imports(*modules: str) -> None:
    """Import modules in this order, in a thread of their own; who needs one sooner waits for it."""

    def imports() -> None:
        for module in modules:
            importlib.import_module(module)

    threading.Thread(target=imports, daemon=True).start()
