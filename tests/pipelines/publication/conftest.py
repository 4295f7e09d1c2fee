"""Object store in memory for the tests of publication."""

from functools import partial

import pytest
from microguard.pipelines.publication.storage import object_store
from microguard.pipelines.publication.storage.lease import Lease
from obstore.store import MemoryStore


@pytest.fixture
def store(monkeypatch):
    """Return one store in memory for every address; expired leases are taken over at once."""
    in_memory = MemoryStore()
    monkeypatch.setattr(object_store, "connected", lambda *_: in_memory)
    monkeypatch.setattr(object_store, "Lease", partial(Lease, beat=60.0, silence=0.02, look=0.005))
    return in_memory
