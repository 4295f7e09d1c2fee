"""Verb ``report``: rebuild the page of a release from its evidence and the ledger."""

from __future__ import annotations

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.publication.area_identity import AreaNotThere, known_area
from microguard.pipelines.publication.find_release import find_release
from microguard.pipelines.rebuild_report import write_page_of


def report(named: str) -> CommandResult:
    """Rebuild the page of a release.

    Parameters
    ----------
    named : str
        A release folder of the public or the evidence area, or a specification file.
    """
    release = find_release(named)
    areas = release.areas()
    with areas.lock():
        page = write_page_of(areas, release.release_id)
        text = f"The report is at {page}"
        try:
            known_area(areas)
        except AreaNotThere as error:
            text += f"\nThe status on the page is the status in the ledger. {error}"
    return CommandResult(text, {"release_id": release.release_id, "report": str(page)})
