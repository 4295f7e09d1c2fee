"""Example tables and their published values, for the tests of the verb `adjust`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.toml_text import merged, parsed_override

from tests.reference import reference_file

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples"


def example(name: str, folder: Path, *overrides: str):
    """Return an example specification on the reference data that publishes to a folder."""
    content = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())
    content["input"]["path"] = str(reference_file(content["input"]["path"]).resolve())
    for override in overrides:
        content = merged(content, parsed_override(override))
    return build_specification(content, folder)


def tables(content) -> list[pd.DataFrame]:
    """Return the tables of a release by name."""
    return [pq.read_table(path).to_pandas() for path in sorted(Path(content["release"]).rglob("*.parquet"))]
