"""Location of the reference data; a test that needs absent data is skipped with this reason."""

from pathlib import Path

import pytest

REFERENCE_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
#: The eight nominal variables of Adult, in the order of the papers' tables.
ADULT = (
    "sex",
    "race",
    "relationship",
    "marital_status",
    "workclass",
    "occupation",
    "education_num",
    "native_country",
)


def reference_file(name: str) -> Path:
    """Return the path of a reference file, or skip the calling test."""
    path = REFERENCE_FOLDER / name
    if not path.is_file():
        pytest.skip(f"reference file {name} is not here; it lies in the shared folder beside the repository")
    return path
