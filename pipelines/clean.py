"""Clean: remove the work folders of runs that will not come back."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipelines.places import WORK, hold


def evidence_areas(root: Path) -> list[Path]:
    """Evidence areas at or below a folder that have work folders, sorted."""
    return sorted(folder.parent for folder in {root / WORK, *root.glob(f"**/{WORK}")} if folder.is_dir())


def clean(areas: list[Path]) -> int:
    """Remove staging, resume and scratch folders; an area whose lock another run holds is refused.

    Returns
    -------
    int
        Number of runs whose folders were removed.

    Raises
    ------
    PlaceBusy
        Where a run is at work in one of the areas; later areas are left as they are.
    """
    removed = 0
    for area in areas:
        with hold(area):
            removed += sum(1 for _ in (area / WORK).iterdir())
            shutil.rmtree(area / WORK)
    return removed
