"""Events for a scheduler's log: one JSON object per line, with fixed keys and no value of a record."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

from microguard.pipelines.engine.command_result import now

#: Keys that an event may have. Names of stages come from this software and from names of clusterings; a
#: reason is the paragraph of a refusal.
ALLOWED = (
    "at", "event", "verb", "stage", "status", "seconds", "blocks", "exit_code", "release_id", "reason",
)  # fmt: skip


def emit(**content: Any) -> None:
    """Write one event to standard error; a key that is not allowed is an error of the caller."""
    foreign = set(content) - set(ALLOWED)
    if foreign:
        raise ValueError(f"an event contains only permitted fields, and not {', '.join(sorted(foreign))}")
    with suppress(OSError, ValueError):  # a full or closed log does not change the result of a run
        print(json.dumps({"at": now()} | content), file=sys.stderr, flush=True)
