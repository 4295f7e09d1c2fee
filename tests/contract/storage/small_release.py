"""Files of a small release, and the result of a call in one line."""

from __future__ import annotations

import json
from pathlib import Path

from microguard.pipelines.engine.command_result import CommandResult


def write_quality(record: Path, place: str) -> None:
    """Write the entry of the evidence of a verified release about its public area."""
    record.mkdir(parents=True)
    quality = {"release": {"public_area": place, "content": "records"}}
    (record / "quality.json").write_text(json.dumps(quality))


def write_staged(folder: Path, release_id: str) -> None:
    """Write a file of records and a table, whose contents name the release."""
    for name in ("microdata/part-00000.parquet", "tables/001_sex.parquet"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(f"{name} of {release_id}".encode())


def in_words(answer: object) -> str:
    """Return the result of a call in one line; None means a killed call."""
    if answer is None:
        return "killed"
    if isinstance(answer, CommandResult):
        return answer.text.split("\n")[0][:60]
    return f"{type(answer).__name__}: {str(answer)[:90]}"
