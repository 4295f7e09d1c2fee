"""An agency that publishes updates of a register with the real job in a long-lived session."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from microguard.pipelines.engine.jvm import InputSize
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.engine.session import open_session
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.publish import finish_what_died
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import run
from pyspark.sql import SparkSession

from tests.benchmarks.registers.stream import roles
from tests.pipelines.microdata import specification

#: Disables the limits on stale values: benchmarks measure them, and no update is refused because of them.
NO_LIMITS = {"max_waiting": 1.0, "max_ghosts": 1.0, "max_stale": 1.0}


@dataclass(frozen=True)
class UpdateResult:
    """The private data of one update.

    Attributes
    ----------
    release : Path
        Public folder of the current release after the update.
    seconds : float
        Wall-clock time of the run.
    stages : dict of str to float
        Wall-clock time of each stage.
    counts : dict
        `NightCounts` of a register; empty otherwise.
    """

    release: Path
    seconds: float
    stages: dict[str, float]
    counts: dict[str, int]


class Agency:
    """One series of releases.

    Parameters
    ----------
    spark : SparkSession
    folder : Path
        Folder of the input, the public and the evidence area.
    kind : {"numeric", "nominal", "mixed"}
    k : int
    register : bool
        Whether the rule of a register holds; otherwise every update is protected from scratch, and
        a person accepts it.
    effort : {"fast", "standard"}
    method, series : mapping
        Further keys of these sections of the specification.
    changes : {"keep", "republish"}
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        kind: str,
        k: int,
        *,
        register: bool = True,
        effort: str = "standard",
        method: Mapping[str, Any] = MappingProxyType({}),
        series: Mapping[str, Any] = MappingProxyType({}),
        changes: str = "keep",
    ) -> None:
        how: dict[str, Any] = {"publish": {"series": "single", "successive": "accept"}}
        if register:
            how = {"publish": {"series": "register", "changes": changes}, "series": NO_LIMITS | series}
        given = {
            "release": {"k": k},
            "input": {"path": "register.parquet"},
            "method": {"effort": effort, **method},
            **how,
        }
        self._spark, self._spec = spark, specification(folder, roles(kind), **given)
        self.areas = Areas.from_places(folder / "lake", folder / "evidence")

    def publish(self, frame: pd.DataFrame, progress: Progress | None = None) -> UpdateResult:
        """Run the job on the register of one update."""
        frame.to_parquet(self._spec.folder / "register.parquet", index=False)
        progress, start = progress or Progress(quiet=True), time.perf_counter()
        with self.areas.lock():
            finish_what_died(self.areas)
            answer = run(Records(self._spec), Job(self._spark, self._spec, self.areas, progress)).content
        seconds = time.perf_counter() - start
        release = Path(self.areas.public.place(answer["release_id"]))
        return UpdateResult(release, seconds, dict(progress.seconds), answer.get("night", {}))


def warm_session(folder: Path) -> AbstractContextManager[SparkSession]:
    """Start a session for many short runs on few records."""
    return _session(folder, InputSize.TINY)


def wide_session(folder: Path) -> AbstractContextManager[SparkSession]:
    """Start a session with the settings for a large input."""
    return _session(folder, InputSize.LARGE)


@contextmanager
def _session(folder: Path, size: InputSize) -> Iterator[SparkSession]:
    private = folder / "spark"
    private.mkdir(mode=0o700)
    spark = open_session("local[2]", private, size=size, clustering=True)
    try:
        yield spark
    finally:
        spark.stop()
