"""The verb ``clean``: remove the work folders of killed runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.publication.areas import WORK, hold, is_work
from microguard.pipelines.publication.ledger import entries_of
from microguard.schemas.errors import SpecificationError


def clean(named: Sequence[str]) -> CommandResult:
    """Remove staging, resume and scratch folders below the given folders, by default the working folder.

    A killed run resumes from such a folder; without the folder, the run starts again. Pending releases are
    kept.

    Raises
    ------
    AreaBusy
        If a run uses one of the areas; later areas are not cleaned.
    SpecificationError
        If a folder is an object store, or does not exist.
    """
    if any("://" in name for name in named):
        raise SpecificationError(
            "microguard clean: expected folders, found an object store. Unfinished runs leave their files "
            "there under .work/ of the evidence: delete that folder while no run is active, or set an expiry "
            "rule of the store for it."
        )
    absent = next((name for name in named if not Path(name).is_dir()), None)
    if absent is not None:
        raise SpecificationError(f"There is no folder {absent}. Name evidence areas, or folders above them.")
    removed = waiting = 0
    for area in _areas([Path(name) for name in named] or [Path.cwd()]):
        with hold(area):
            undecided = _waiting(area)
            left = [folder for folder in (area / WORK).iterdir() if folder.name not in undecided]
            for folder in left:
                shutil.rmtree(folder)
        removed += len(left)
        waiting += len(undecided)
    stays = f" {waiting} release(s) are pending approval: their work folders are kept." if waiting else ""
    return CommandResult(f"Removed the work folders of {removed} run(s).{stays}", {"removed": removed})


def _waiting(area: Path) -> set[str]:
    """Return the ids of the pending releases of an evidence area."""
    latest = {entry.release_id: entry.event for entry in entries_of(area)}
    return {release_id for release_id, event in latest.items() if event == "waiting"}


def _areas(roots: Sequence[Path]) -> list[Path]:
    """Return the evidence areas at or below the folders that have work folders, sorted."""
    found = {Path(parent) for root in roots for parent, names, _ in os.walk(root) if WORK in names}
    return sorted(parent.resolve() for parent in found if is_work(parent / WORK))
