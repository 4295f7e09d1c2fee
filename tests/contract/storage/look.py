"""Inspect areas independently, with json and hashlib only and no code of microguard."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

GONE = ("withdrawn", "abandoned", "rejected", "waiting")


def lines(evidence: Path) -> list[dict]:
    """Return the lines of a ledger, except a truncated last line."""
    path = evidence / "ledger.jsonl"
    found = []
    for line in path.read_bytes().split(b"\n") if path.is_file() else []:
        try:
            found.append(dict(json.loads(line)))
        except ValueError:
            continue
    return found


def status(evidence: Path) -> dict[str, str]:
    """Return the last event of each release."""
    return {line["release_id"]: line["event"] for line in lines(evidence)}


def is_known(area: Path, evidence: Path) -> bool:
    """Return whether a ledger names the area at a place; an earlier version named no place."""
    public = [line for line in lines(evidence) if line["event"] not in ("waiting", "rejected")]
    identity = area / ".area.json"
    if all("area" not in line for line in public):
        return bool(public)
    try:
        return json.loads(identity.read_text())["area"] in {line["area"] for line in public}
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return True  # the file is torn


def visible(area: Path) -> set[str]:
    """Return the releases that readers can see."""
    if not area.is_dir():
        return set()
    return {
        each.name for each in area.iterdir() if each.name[0] != "." and (each / "manifest.json").is_file()
    }


def current(area: Path) -> str | None:
    """Return the current release for readers."""
    path = area / "current.json"
    return json.loads(path.read_text())["release_id"] if path.is_file() else None


def contents(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a release, except its manifest."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }


def snapshot(folder: Path) -> dict[str, bytes] | None:
    """Return all files and folders at a place; None if it does not exist."""
    if not folder.exists():
        return None
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


def changed(before: dict[str, bytes] | None, after: dict[str, bytes] | None, *, probes: bool) -> bool:
    """Return whether two snapshots differ; with `probes`, files that probe a bucket do not count."""
    if not probes:
        return before != after
    first, second = (
        {name: each for name, each in (shot or {}).items() if "/.probe-" not in name}
        for shot in (before, after)
    )
    return first != second


def faults(area: Path, evidence: Path, verified: dict[str, dict[str, str]], lost: set[str]) -> list[str]:
    """Return the violated invariants of the storage.

    Parameters
    ----------
    area : Path
        Folder of the public area, whether it is mounted or not.
    verified : dict of release to its files
        Files that passed the gate, with checksums.
    lost : set of str
        Releases of an area that a person declared lost.
    """
    events, seen, found = status(evidence), visible(area), []
    for release_id in sorted(seen):
        event = events.get(release_id)
        if contents(area / release_id) != verified.get(release_id):
            found.append(f"{release_id[:4]} is visible and is not what was verified")
        if event in GONE and release_id not in lost:
            found.append(f"{release_id[:4]} is visible and the ledger says {event}")
        if event is None:
            found.append(f"{release_id[:4]} is visible and the ledger does not know it")
    led = current(area)
    if led is not None and led not in seen:
        found.append(f"readers are led to {led[:4]}, which is not there whole")
    if led is not None and events.get(led) not in ("published", "withdrawing") and led not in lost:
        found.append(f"readers are led to {led[:4]}, of which the ledger says {events.get(led)}")
    return found
