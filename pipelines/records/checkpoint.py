"""Checkpoints: completed steps in the staging area, which are reused only if they are unchanged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from microguard.pipelines.engine.files import FileDamaged
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.publication.storage.faults import StoreDamaged
from pyspark.sql import SparkSession


def write_checkpoint(spark: SparkSession, place: StagingArea, name: str, reports: Sequence[Any] = ()) -> None:
    """Mark a frame in the staging area as complete, and store its reports."""
    content = {"files": dict(place.checksums(spark, name)), "reports": list(reports)}
    place.save(_seal(name), lambda file: file.write(json.dumps(content).encode()))


def read_checkpoint(spark: SparkSession, place: StagingArea, name: str) -> list[Any] | None:
    """Return the reports of a complete frame; None if it is incomplete or was changed later."""
    try:
        with place.open(_seal(name)) as file:
            content = json.loads(file.read())
        return list(content["reports"]) if content["files"] == place.checksums(spark, name) else None
    except (OSError, ValueError, KeyError, TypeError, FileDamaged, StoreDamaged):
        return None


def _seal(name: str) -> str:
    return f"{name}.checkpoint.json"
