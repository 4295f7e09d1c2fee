"""Common fixtures of the tests of pipelines."""

import json
from contextlib import contextmanager

import pytest
from microguard.pipelines import start_job
from microguard.pipelines.adjust import adjust
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.key import KEY_BYTES, KEY_VARIABLE

from tests.pipelines import standard
from tests.pipelines.releases import entry, manifest, staged


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """Configure the client of OpenLineage to append its events to a file, and return what reads them."""
    pytest.importorskip("openlineage.client")
    path = tmp_path / "sent" / "events.json"
    path.parent.mkdir()
    settings = {"TYPE": "file", "LOG_FILE_PATH": str(path), "APPEND": "true"}
    for name, value in settings.items():
        monkeypatch.setenv(f"OPENLINEAGE__TRANSPORT__{name}", value)
    return lambda: [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def areas(tmp_path):
    return Areas.from_places(tmp_path / "lake" / "persons", tmp_path / "evidence" / "persons")


@pytest.fixture
def released(areas):
    publish.publish(staged(areas), manifest(), areas, entry())
    return areas


@pytest.fixture
def adjusted(spark, monkeypatch, tmp_path):
    """Return the answer of the verb `adjust` on the shared session, with a constant key, so that every run
    adjusts the same cells in the same direction.
    """
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text("5a" * KEY_BYTES)
    monkeypatch.setenv(KEY_VARIABLE, str(key))

    @contextmanager
    def shared(private, master, input_path, *, clustering):
        yield spark

    monkeypatch.setattr(start_job, "session", shared)
    return lambda chosen: adjust(chosen, progress=Progress(quiet=True)).content


@pytest.fixture(scope="session")
def mixed_release(spark, tmp_path_factory):
    return standard.mixed(spark, tmp_path_factory.mktemp("mixed"))


@pytest.fixture(scope="session")
def nominal_release(spark, tmp_path_factory):
    return standard.nominal(spark, tmp_path_factory.mktemp("nominal"))
