"""Pages of releases and their index, rebuilt from the evidence and the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from microguard.pipelines.evidence.evidence import Evidence, read_evidence, read_quality
from microguard.pipelines.evidence.index import write_index
from microguard.pipelines.evidence.lineage import State, settle_lineage
from microguard.pipelines.evidence.page import Page
from microguard.pipelines.measures.measure import Measure
from microguard.pipelines.measures.registry import measures_of
from microguard.pipelines.publication.areas import INDEX, PAGE, QUALITY, Areas
from microguard.pipelines.publication.ledger import Event, Ledger
from microguard.pipelines.publication.publish import finish_what_died

#: Final state of a run, by the last event of its release in the ledger.
ENDED: dict[Event, State] = {"published": "COMPLETE", "rejected": "FAIL"}


@contextmanager
def at_work(areas: Areas) -> Iterator[set[str]]:
    """Lock the evidence area for a verb that changes it; first finish a killed run and write missing pages.

    Yields
    ------
    set of str
        Ids of the releases that a killed run was publishing or withdrawing.

    Raises
    ------
    AreaNotThere
        If the public area is not the one in the ledger; nothing was done.
    """
    with areas.lock():
        going = finish_what_died(areas)
        try:
            yield going
        except BaseException:
            with suppress(OSError):  # a full disk must not hide the cause of the verb's failure
                _write_missing(areas)
            raise
        with suppress(Exception):  # the verb is complete, and the next verb writes the pages
            _write_missing(areas)


def _write_missing(areas: Areas) -> None:
    """Write the pages that were removed because of a new ledger line and have not been written since."""
    folders = [areas.record(release_id) for release_id in Ledger(areas).latest()]
    missing = [
        folder.name for folder in folders if (folder / QUALITY).is_file() and not (folder / PAGE).is_file()
    ]
    if missing or (folders and not (areas.evidence / INDEX).is_file()):
        rebuild_reports(areas, missing)


def write_page_of(areas: Areas, release_id: str) -> Path:
    """Write the index, and the page of a release from its evidence and its last line in the ledger."""
    page = _write(areas, release_id)
    rebuild_index(areas)
    return page


def rebuild_reports(areas: Areas, release_ids: Iterable[str]) -> None:
    """Write the pages of the releases that have a new line in the ledger.

    If a page cannot be written, because its evidence is missing or of another version, the page is removed:
    it would be outdated.
    """
    for release_id in release_ids:
        try:
            _write(areas, release_id)
        except Exception:  # an error in a page does not affect what was published or withdrawn
            (areas.record(release_id) / PAGE).unlink(missing_ok=True)
    rebuild_index(areas)


def rebuild_index(areas: Areas) -> None:
    """Write the index; if it cannot be written, remove it, because it would be outdated."""
    try:
        write_index(areas)
    except Exception:  # an error in the index has no effect, either
        (areas.evidence / INDEX).unlink(missing_ok=True)


def measured_release(folder: Path) -> tuple[Evidence, tuple[Measure[Any, Any], ...]]:
    """Read the evidence of a release, and import the measures of its sections."""
    quality = read_quality(folder)
    measures = measures_of(quality["release"]["content"], quality)
    return read_evidence(folder, {measure.name: measure.section for measure in measures}), measures


def _write(areas: Areas, release_id: str) -> Path:
    folder = areas.record(release_id)
    evidence, measures = measured_release(folder)
    status = Ledger(areas).status(release_id)
    if status is not None and status.event in ENDED:
        settle_lineage(folder, ENDED[status.event])
    return Page(folder, evidence, measures).write(status)
