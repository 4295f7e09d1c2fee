"""The verb ``adjust`` for the tests of methods."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from microguard.pipelines import start_job
from microguard.pipelines.adjust import adjust
from microguard.pipelines.engine.progress import Progress


@pytest.fixture
def adjusting(spark, monkeypatch):
    """Return the verb `adjust` on the shared session."""

    @contextmanager
    def shared(private, master, input_path, *, clustering):
        yield spark

    monkeypatch.setattr(start_job, "session", shared)
    return lambda chosen: adjust(chosen, progress=Progress(quiet=True)).content
