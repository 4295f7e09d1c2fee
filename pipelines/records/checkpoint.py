"""Checkpoint: what a finished step left in the resume folder, believed only where nothing of it changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.engine.files import checksum, write_atomically


def write_checkpoint(folder: Path, reports: Sequence[Any] = ()) -> None:
    """Declare the Parquet files of a folder finished, with the reports that go with them."""
    content = {"files": _checksums(folder), "reports": list(reports)}
    write_atomically(_seal(folder), json.dumps(content))


def read_checkpoint(folder: Path) -> list[Any] | None:
    """Reports of a finished folder; None where it is not finished, or is not as it was then."""
    try:
        content = json.loads(_seal(folder).read_text(encoding="utf-8"))
        return list(content["reports"]) if content["files"] == _checksums(folder) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _seal(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.checkpoint.json")


def _checksums(folder: Path) -> dict[str, str]:
    return {path.name: checksum(path) for path in sorted(folder.glob("*.parquet"))}
