"""Index page of an evidence area: all releases in its ledger, and all refused releases.

The index is rebuilt whenever the ledger has a new line, and links to the page of each release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from microguard.pipelines.description.public_page import accessible_page
from microguard.pipelines.engine.files import PRIVATE_FILE, FileDamaged, write_atomically
from microguard.pipelines.publication.areas import INDEX, PAGE, QUALITY, Areas
from microguard.pipelines.publication.ledger import Entry, Ledger, public_area_of
from microguard.pipelines.publication.public_area import PublicArea

_HERE = Path(__file__).parent
#: State of a release in words, by its last event in the ledger.
STATES = {
    "published": "published",
    "intended": "not finished",
    "withdrawing": "being withdrawn",
    "withdrawn": "withdrawn",
    "abandoned": "not published",
    "waiting": "pending approval",
    "rejected": "rejected",
}
#: State in words of a release that is not in the ledger, by its verdicts.
REFUSED = "refused"


@dataclass(frozen=True)
class Line:
    """One release in the index.

    Attributes
    ----------
    release_id, name, at, state, by, note : str
        `at` is the time of its last event.
    current : bool
        Whether it is the current release of its public area.
    checks, failed : int or None
        Verdicts of its gate; None if its evidence is missing.
    published : int or None
        Number of records or cells.
    page : str or None
        Path of its page relative to the index.
    """

    release_id: str
    name: str
    at: str
    state: str
    by: str
    note: str
    current: bool
    checks: int | None
    failed: int | None
    published: int | None
    page: str | None


def write_index(areas: Areas) -> Path:
    """Write the index to the evidence area, newest release first; only the owner can read the file."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FileSystemLoader(_HERE)
    )
    style = Markup((_HERE / "page.css").read_text(encoding="utf-8"))
    text = accessible_page(environment.get_template("index.html").render(lines=index_of(areas), style=style))
    write_atomically(areas.evidence / INDEX, text, PRIVATE_FILE)
    return areas.evidence / INDEX


def index_of(areas: Areas) -> list[Line]:
    """Return the lines of the index, newest first; refused releases have evidence, but no line in the
    ledger.
    """
    known = Ledger(areas).latest()
    served = {_served(area) for area in {public_area_of(entry, areas).public for entry in known.values()}}
    unpublished = {path.parent.name for path in areas.evidence.glob(f"*/{QUALITY}")} - set(known)
    lines = [_line(areas.record(each), known.get(each), each in served) for each in (*known, *unpublished)]
    return sorted(lines, key=lambda line: (line.at, line.release_id), reverse=True)


def _served(public: PublicArea) -> str | None:
    """Return the current release of a public area; None if there is none or the area cannot be read."""
    try:
        return public.current()
    except FileDamaged:
        return None


def _line(folder: Path, entry: Entry | None, current: bool) -> Line:
    quality = _quality(folder)
    release, verdicts = quality.get("release", {}), quality.get("verdicts")
    failed = None if verdicts is None else sum(not each["passed"] for each in verdicts)
    return Line(
        release_id=folder.name,
        name=entry.name if entry is not None else str(release.get("name", "")),
        at=entry.at if entry is not None else str(release.get("at", "")),
        state=STATES[entry.event] if entry is not None else REFUSED if failed else STATES["abandoned"],
        by="" if entry is None else entry.by,
        note="" if entry is None else entry.note,
        current=current,
        checks=None if verdicts is None else len(verdicts),
        failed=failed,
        published=quality.get("counts", {}).get("published"),
        page=f"{folder.name}/{PAGE}" if (folder / PAGE).is_file() else None,
    )


def _quality(folder: Path) -> Mapping[str, Any]:
    """Read the evidence of a release; return an empty mapping if it is missing or of another version."""
    try:
        return dict(json.loads((folder / QUALITY).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
