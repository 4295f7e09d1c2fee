"""Events for a scheduler's log: one JSON object a line, with keys of an allow-list and never a value."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

from microguard.pipelines.engine.command_result import now

#: All that an event may say. Names of stages come from this software and from names of clusterings; a reason
#: is the paragraph of a refusal.
ALLOWED = (
    "at", "event", "verb", "stage", "status", "seconds", "blocks", "exit_code", "release_id", "reason",
)  # fmt: skip


def emit(**content: Any) -> None:
    """Write one event to standard error; a key that is not allowed is a fault of the caller."""
    foreign = set(content) - set(ALLOWED)
    if foreign:
        raise ValueError(f"an event says only what is allowed, and not {', '.join(sorted(foreign))}")
    with suppress(OSError, ValueError):  # a log that is full or closed does not change how a run ends
        print(json.dumps({"at": now()} | content), file=sys.stderr, flush=True)
