"""Common fixture of the tests of the command line."""

from __future__ import annotations

import pytest
from microguard.pipelines.publication import ledger


@pytest.fixture(autouse=True)
def _no_release_of_earlier_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the releases of earlier tests, because a command reports those that its process wrote."""
    monkeypatch.setattr(ledger, "_WRITTEN", {})
