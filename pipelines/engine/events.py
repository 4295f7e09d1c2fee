"""Events for the log of a scheduler: one JSON object per line, with fixed keys and no values of records."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

from microguard.pipelines.engine.command_result import now

#: Keys that an event may contain. Names of stages come from this software and from names of clusterings; a
#: reason is a paragraph of a refusal.
ALLOWED = (
    "at", "event", "verb", "stage", "status", "seconds", "blocks", "exit_code", "release_id", "reason",
)  # fmt: skip


def emit(**content: Any) -> None:
    """Write one event to standard error; a key outside the allowed ones is a programming error."""
    foreign = set(content) - set(ALLOWED)
    if foreign:
        raise ValueError(f"event: expected only the allowed keys, found {', '.join(sorted(foreign))}")
    with suppress(OSError, ValueError):  # a log that is full or closed must not change the result of a run
        print(json.dumps({"at": now()} | content), file=sys.stderr, flush=True)
