"""What a run works with: a session, a specification, two areas, and who is told how far it is."""

from __future__ import annotations

from dataclasses import dataclass

from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.specification.model import Specification
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes
    ----------
    spark : SparkSession
    specification : Specification
    areas : Areas
        With the evidence area locked.
    progress : Progress
    source : str or None
        Absolute path or address of what is read; None where it is a frame of the session.
    """

    spark: SparkSession
    specification: Specification
    areas: Areas
    progress: Progress
    source: str | None = None

    def __post_init__(self) -> None:
        if self.areas.mirror is not None:
            self.areas.key()  # one that nobody named is asked for before the work
