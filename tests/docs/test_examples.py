"""Run every example of the manual and compare its output with the page.

After an intended change, write the pages again: MICROGUARD_DOCS=write pytest tests/docs/test_examples.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.console import DOCS, pages, run

#: A fixed key, so that random draws are equal in every run. No published release may use it.
KEY = bytes(range(32))
WRITE = os.environ.get("MICROGUARD_DOCS") == "write"


def _pages() -> list[object]:
    """Return the pages; each release costs seconds of processor time, so that they are run by --long only."""
    marks = () if WRITE else pytest.mark.long
    return [pytest.param(page, id=page.stem, marks=marks) for page in pages()]


@pytest.mark.parametrize("page", _pages())
def test_page_shows_output_of_its_commands(page: Path, spark, tmp_path, monkeypatch) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    monkeypatch.setenv("MICROGUARD_KEY_FILE", str(key))
    shown, found = run(page, tmp_path, spark)
    if WRITE:
        page.write_text(found, encoding="utf-8")
        return
    again = f"MICROGUARD_DOCS=write pytest tests/docs/test_examples.py -k {page.stem}"
    assert found == shown, f"{page.relative_to(DOCS)} is outdated; write it again: {again}"
