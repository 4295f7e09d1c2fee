"""S3 server that the tasks of the test session reach through their environment, as on a cluster."""

from __future__ import annotations

import secrets

import pytest
from microguard.pipelines.publication.storage import object_store

from tests.pipelines.publication.storage.servers import S3


@pytest.fixture(scope="module")
def server():
    with S3.started() as server:
        yield server


@pytest.fixture
def tasks_reach(spark, server, monkeypatch):
    """Create empty buckets and return their addresses."""
    for name, value in S3.settings(server).items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    yield lambda: S3.make(server, f"bucket-{secrets.token_hex(8)}")
    object_store._of_process.cache_clear()
