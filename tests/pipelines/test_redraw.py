"""Pages say what the ledger holds, also of releases that another one sent away."""

from __future__ import annotations

import json

from pipelines.publication.areas import Areas
from pipelines.publication.publish import publish
from pipelines.redraw import redraw
from pipelines.withdraw import withdraw
from tests.pipelines.evidence.test_page import QUALITY
from tests.pipelines.publication.test_publish import ID, entry, manifest, staged


def test_the_page_of_a_withdrawn_release_says_so(tmp_path):
    areas, release_id = Areas.of(tmp_path / "lake" / "persons", tmp_path / "evidence"), ID
    publish(staged(areas), manifest(), areas, entry())
    record = areas.record(release_id)
    record.mkdir(parents=True, exist_ok=True)
    quality = QUALITY | {"release": QUALITY["release"] | {"public_area": str(areas.public.folder)}}
    (record / "quality.json").write_text(json.dumps(quality))
    redraw(areas, [release_id])
    page = record / "report.html"
    assert "<strong>Published</strong>" in page.read_text()
    withdraw(str(areas.public.release(release_id)))
    assert "<strong>Withdrawn</strong>" in page.read_text()


def test_a_page_that_cannot_be_drawn_goes(tmp_path):
    areas = Areas.of(tmp_path / "lake", tmp_path / "evidence")
    record = areas.record("a" * 32)
    record.mkdir(parents=True)
    (record / "report.html").write_text("Published")
    redraw(areas, ["a" * 32, "b" * 32])
    assert not (record / "report.html").exists()
