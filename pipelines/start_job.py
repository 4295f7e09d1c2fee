"""Start of a job: lock the areas, start Spark, and import slow modules at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from microguard.pipelines.engine.extras import extras_of_release, require_extras
from microguard.pipelines.engine.prefetch_imports import prefetch_imports
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.engine.session import session
from microguard.pipelines.evidence.plots import DRAWS
from microguard.pipelines.gate.expectations import EXPECTS
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import areas_of
from microguard.pipelines.rebuild_report import at_work
from microguard.schemas.specification.model import Specification


@contextmanager
def start_job(specification: Specification, master: str | None, progress: Progress) -> Iterator[Job]:
    """Lock the areas, finish the work of a killed run, and start Spark while slow modules are imported."""
    require_extras(*extras_of_release(specification.publish.format))
    areas = areas_of(specification)
    prefetch_imports(EXPECTS, DRAWS)
    clustering = specification.table is None
    with (
        at_work(areas),
        areas.session() as private,
        session(private, master, specification.input_path, clustering=clustering) as spark,
    ):
        yield Job(spark, specification, areas, progress, specification.input_path)
