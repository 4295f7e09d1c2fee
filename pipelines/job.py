"""Environment of a run: session, specification, two areas, progress."""

from __future__ import annotations

from dataclasses import dataclass

from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.specification.model import Specification
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Job:
    """Environment of one run.

    Attributes
    ----------
    spark : SparkSession
    specification : Specification
    areas : Areas
        The areas; the evidence area is locked.
    progress : Progress
    source : str or None
        Absolute path or address of the input; None if it is a DataFrame of the session.
    """

    spark: SparkSession
    specification: Specification
    areas: Areas
    progress: Progress
    source: str | None = None

    def __post_init__(self) -> None:
        if self.areas.mirror is not None:
            self.areas.key()  # refuses a missing key before the computation
