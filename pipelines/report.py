"""The verb ``report``: write the page of a release anew from its evidence and the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.engine.outcome import Outcome
from pipelines.evidence.evidence import read_evidence, read_quality
from pipelines.evidence.page import Page
from pipelines.measures.measure import Measure
from pipelines.measures.registry import RECORD_MEASURES
from pipelines.publication.areas import Areas
from pipelines.publication.find_release import find_release
from pipelines.publication.ledger import Ledger
from pipelines.tables.measures import TABLE_MEASURES

MEASURES: dict[str, tuple[Measure[Any, Any], ...]] = {"records": RECORD_MEASURES, "table": TABLE_MEASURES}


def report(named: str) -> Outcome:
    """Rebuild the page of a release.

    Parameters
    ----------
    named : str
        A release folder of the public or the evidence area, or a specification file.
    """
    release = find_release(named)
    page = write_page_of(release.areas(), release.release_id)
    return Outcome(f"The report is at {page}", {"release_id": release.release_id, "report": str(page)})


def write_page_of(areas: Areas, release_id: str) -> Path:
    """Write the page of a release from its evidence, with what the ledger holds of it now."""
    folder = areas.record(release_id)
    measures = MEASURES[read_quality(folder)["release"]["content"]]
    evidence = read_evidence(folder, {measure.name: measure.section for measure in measures})
    return Page(folder, evidence, measures).write(Ledger(areas).status(release_id))
