"""Common fixture of the tests of the command line."""

from __future__ import annotations

import pytest
from microguard.pipelines.publication import ledger


@pytest.fixture(autouse=True)
def _no_release_of_earlier_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the releases that earlier tests of this process published: a command reports those of its process."""
    monkeypatch.setattr(ledger, "_WRITTEN", {})
