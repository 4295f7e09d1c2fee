"""Joint audit of a release in a series, and counts of its update, stored in the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.files import read_json, write_atomically
from microguard.pipelines.publication.areas import Areas

#: File that contains the joint audit, in the evidence of a release of a series.
JOINT = "joint.json"
#: Counts of an update that the page shows, and their labels; files and JSON still use the earlier names.
SHOWN = {
    "units": "units",
    "published": "records published",
    "comers": "entrants",
    "leavers": "exits",
    "corrected": "corrected",
    "waiting": "waiting",
    "withheld": "withheld",
    "ghosts": "retained after their exit",
    "stale": "stale",
}


def write_joint(folder: Path, audit: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    """Write the joint audit of a release and the counts of its update."""
    content = {"joint": dict(audit), "night": dict(counts)}
    write_atomically(folder / JOINT, json.dumps(content, indent=2, sort_keys=True))


def joint_of(areas: Areas, release_id: str) -> dict[str, Any]:
    """Read the joint audit of a release and the counts of its update; empty if the release belongs to no
    series.
    """
    path = areas.record(release_id) / JOINT
    if not path.is_file():
        return {}
    return read_json(path, f"{JOINT} of release {release_id}", "Restore the evidence area from its back-up.")


def with_counts(outcome: CommandResult, counts: Mapping[str, int]) -> CommandResult:
    """Add the counts of an update to a command result; its text receives only the counts in `SHOWN`."""
    if not counts:
        return outcome
    shown = ", ".join(f"{counts[name]:,} {words}" for name, words in SHOWN.items() if name in counts)
    return outcome.with_note(f"Update: {shown}", night=dict(counts))
