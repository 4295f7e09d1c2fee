"""Draw pages anew, from the evidence and what the ledger holds now: those of releases, and their index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from microguard.pipelines.evidence.evidence import read_evidence, read_quality
from microguard.pipelines.evidence.index import write_index
from microguard.pipelines.evidence.lineage import State, settle_lineage
from microguard.pipelines.evidence.page import Page
from microguard.pipelines.measures.registry import measures_of
from microguard.pipelines.publication.areas import INDEX, PAGE, QUALITY, Areas
from microguard.pipelines.publication.ledger import Event, Ledger
from microguard.pipelines.publication.publish import finish_what_died

#: How the run of a release ended, by what the ledger says of it last.
ENDED: dict[Event, State] = {"published": "COMPLETE", "rejected": "FAIL"}


@contextmanager
def at_work(areas: Areas) -> Iterator[set[str]]:
    """Hold the evidence area for a verb that changes it: what died is finished first, and no page is missing.

    Yields
    ------
    set of str
        Ids of the releases that a killed run was publishing or withdrawing.

    Raises
    ------
    AreaNotThere
        Where the public area is not the one that the ledger knows; nothing was done.
    """
    with areas.lock():
        going = finish_what_died(areas)
        try:
            yield going
        except BaseException:
            with suppress(OSError):  # the reason why the verb ended is not to be lost to a full disk
                _draw_missing(areas)
            raise
        with suppress(Exception):  # what was done is done: whoever comes next draws the pages
            _draw_missing(areas)


def _draw_missing(areas: Areas) -> None:
    """Draw the pages that went with a new line of the ledger, and that nobody has drawn since."""
    folders = [areas.record(release_id) for release_id in Ledger(areas).latest()]
    missing = [
        folder.name for folder in folders if (folder / QUALITY).is_file() and not (folder / PAGE).is_file()
    ]
    if missing or (folders and not (areas.evidence / INDEX).is_file()):
        redraw(areas, missing)


def write_page_of(areas: Areas, release_id: str) -> Path:
    """Write the page of a release from its evidence, with what the ledger holds of it now, and the index."""
    page = _write(areas, release_id)
    rebuild_index(areas)
    return page


def redraw(areas: Areas, release_ids: Iterable[str]) -> None:
    """Draw the pages of releases of which the ledger has a new line.

    A page that cannot be drawn, for want of evidence or because other software wrote it, goes: it would say
    what is no longer so.
    """
    for release_id in release_ids:
        try:
            _write(areas, release_id)
        except Exception:  # what was published or withdrawn stays so, whatever its page says
            (areas.record(release_id) / PAGE).unlink(missing_ok=True)
    rebuild_index(areas)


def rebuild_index(areas: Areas) -> None:
    """Draw the index anew; one that cannot be drawn goes, for the same reason."""
    try:
        write_index(areas)
    except Exception:  # as above
        (areas.evidence / INDEX).unlink(missing_ok=True)


def _write(areas: Areas, release_id: str) -> Path:
    folder = areas.record(release_id)
    quality = read_quality(folder)
    measures = measures_of(quality["release"]["content"], quality)
    evidence = read_evidence(folder, {measure.name: measure.section for measure in measures})
    status = Ledger(areas).status(release_id)
    if status is not None and status.event in ENDED:
        settle_lineage(folder, ENDED[status.event])
    return Page(folder, evidence, measures).write(status)
