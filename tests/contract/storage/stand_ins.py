"""What a simulated call has in place of pages and of the clock."""

from contextlib import contextmanager
from unittest.mock import patch

from microguard.pipelines import rebuild_report
from microguard.pipelines.engine.files import write_atomically

from tests.contract.storage.disk import Clock


@contextmanager
def stand_ins():
    """Pages are empty files here: drawing them is not what is looked at."""

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
