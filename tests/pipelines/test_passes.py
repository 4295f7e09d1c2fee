"""Tests that a run makes the passes over the data that the README of the pipelines states."""

import re
from pathlib import Path

import microguard.pipelines
import pytest

from tests.pipelines import standard
from tests.pipelines.event_log import recorded
from tests.pipelines.microdata import run, specification

pytestmark = pytest.mark.spark
README = Path(microguard.pipelines.__file__).with_name("README.md")
ROW = re.compile(r"^\| (?P<frame>[^|]+) \| [^|]+ \| (?P<passes>\d+) \|$", re.MULTILINE)


def stated() -> dict[str, int]:
    """Return the passes over each frame according to the table of the README."""
    section = README.read_text(encoding="utf-8").partition("## Passes of a run")[2].partition("\n## ")[0]
    return {row["frame"].strip(): int(row["passes"]) for row in ROW.finditer(section)}


def test_mixed_run_makes_the_passes_that_the_readme_states(spark, tmp_path):
    standard.mixed_persons().to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, standard.MIXED, method={"effort": "fast", "min_diversity": 2})
    with recorded(spark) as work:
        _, areas = run(spark, spec)
    places = {
        "input": tmp_path / "data",
        "accepted records": "/input/records",
        "clustered records": "/resume/protected-",
        "protected records": "/resume/represented-",
        "record files": "/staging/microdata",
    }
    assert areas.public.current() is not None
    passes = {frame: work.scans_below(place) for frame, place in places.items()}
    assert {frame: len(each) for frame, each in passes.items()} == {
        frame: number for frame, number in stated().items() if frame in places
    }
    assert {rows for each in passes.values() for rows in each} == {105}
    assert 0 < work.jobs <= stated()["jobs, at most"]
