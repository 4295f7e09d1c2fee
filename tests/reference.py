"""Where the reference data lies; a test that needs it skips, saying so, where it is absent."""

from pathlib import Path

import pytest

REFERENCE_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def reference_file(name: str) -> Path:
    """Path of a reference file, or skip the calling test."""
    path = REFERENCE_FOLDER / name
    if not path.is_file():
        pytest.skip(f"reference file {name} is not here; it lies in the shared folder beside the repository")
    return path
