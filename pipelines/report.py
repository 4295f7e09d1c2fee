"""The verb ``report``: write the page of a release anew from its evidence and the ledger."""

from __future__ import annotations

from pipelines.engine.outcome import Outcome
from pipelines.publication.find_release import find_release
from pipelines.redraw import write_page_of


def report(named: str) -> Outcome:
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
    return Outcome(f"The report is at {page}", {"release_id": release.release_id, "report": str(page)})
