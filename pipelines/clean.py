"""Clean: remove the work folders of runs that will not come back."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from pipelines.engine.outcome import Outcome
from pipelines.publication.areas import WORK, hold, is_work
from schemas.errors import SpecificationError


def clean(named: Sequence[str]) -> Outcome:
    """Remove staging, resume and scratch folders below the named folders (this one where none is named).

    A run that died resumes from such a folder: after this it starts from its beginning.

    Raises
    ------
    AreaBusy
        Where a run is at work in one of the areas; later areas are left as they are.
    SpecificationError
        Where one is an object store.
    """
    if any("://" in name for name in named):
        raise SpecificationError(
            "microguard clean knows folders. What runs left in an object store lies below .work/ of the "
            "evidence: delete it there while no run is at work, or let a rule of the store do so after days."
        )
    removed = 0
    for area in _areas([Path(name) for name in named] or [Path.cwd()]):
        with hold(area):
            removed += sum(1 for _ in (area / WORK).iterdir())
            shutil.rmtree(area / WORK)
    return Outcome(f"Removed the work folders of {removed} run(s).", {"removed": removed})


def _areas(roots: Sequence[Path]) -> list[Path]:
    """Evidence areas at or below the folders that have work folders, sorted."""
    folders = {folder for root in roots for folder in [root / WORK, *root.glob(f"**/{WORK}")]}
    return sorted(folder.parent.resolve() for folder in folders if folder.is_dir() and is_work(folder))
