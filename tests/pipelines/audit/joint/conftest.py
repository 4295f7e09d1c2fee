import pytest
from microguard.pipelines.audit.joint import unit_sets


@pytest.fixture
def large(monkeypatch):
    """Treat sets of more than two units as large, as they are in a file of millions."""
    monkeypatch.setattr(unit_sets, "MEMBERSHIPS", 0)
    monkeypatch.setattr(unit_sets, "SMALL_SET", 2)
