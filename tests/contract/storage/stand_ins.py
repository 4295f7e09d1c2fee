"""Replacements for pages and clock in a simulated call."""

from contextlib import contextmanager
from unittest.mock import patch

from microguard.pipelines import rebuild_report
from microguard.pipelines.engine.files import write_atomically

from tests.contract.storage.disk import Clock


@contextmanager
def stand_ins():
    """Replace pages by empty files: rendering them is not under test."""

    def page(areas, release_id):
        path = areas.record(release_id) / "report.html"
        write_atomically(path, "")
        return path

    def index(areas):
        write_atomically(areas.evidence / "index.html", "")

    with (
        patch.object(rebuild_report, "_write", page),
        patch.object(rebuild_report, "write_index", index),
        patch("microguard.pipelines.engine.command_result.datetime", Clock),
    ):
        yield
