"""Tests that draft, check, protect and reading back preserve the types and categories of a file."""

import tomllib
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.check import risk_of
from microguard.pipelines.draft import draft
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.read import read
from microguard.pipelines.job import Job
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.specification.consistency import HELD_BY_DEFAULT
from microguard.schemas.specification.read import build_specification

from tests.pipelines.microdata import run

pytestmark = pytest.mark.spark
N = 300
EDUCATION, STATUS = ["primary", "middle", "tertiary"], ["widowed", "married", "single"]


def table():
    """Write types as pandas, R (factors, by arrow) and Spark do; categories are in no alphabetical order."""
    rng = np.random.default_rng(1)

    def factor(labels, codes, ordered):
        picked = pa.array(rng.integers(0, len(labels), N), codes)
        return pa.DictionaryArray.from_arrays(picked, pa.array(labels), ordered=ordered)

    days = pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9_000, N), "D")
    return pa.table(
        {
            "person": pa.array(rng.permutation(N) + 5_000, pa.int64()),
            "sex": pa.array(rng.integers(1, 3, N), pa.int8()),
            "nace": pa.array(rng.choice([11, 14, 251, 471], N), pa.int16()),
            "married": pa.array(rng.random(N) < 0.5),
            "age": pa.array(rng.integers(18, 80, N), pa.int32()),
            "rent": pa.array(
                [Decimal(int(cents)) / 100 for cents in rng.gamma(9, 10_000, N)], pa.decimal128(12, 2)
            ),
            "income": pa.array(rng.lognormal(10, 0.5, N).round(2)),
            "hours": pa.array(rng.normal(38, 5, N).round(1), pa.float32()),
            "edu": factor(EDUCATION, pa.int8(), True),
            "status": factor(STATUS, pa.int32(), False),
            "town": pa.array(rng.choice(["n", "s"], N), pa.large_string()),
            "interviewed": pa.array(days, pa.timestamp("us")),
            "born": pa.array(days.date, pa.date32()),
        }
    )


def test_release_preserves_types_and_categories(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original = table()
    pq.write_table(original, "p.parquet")
    content = tomllib.loads(draft("p.parquet").summary())
    roles = {name: each["role"] for name, each in content["variables"].items()}
    assert roles["person"] == "unit"
    assert {roles[name] for name in ("interviewed", "born")} == {"identifier"}
    for name in ("interviewed", "born"):
        content["variables"][name] = {"role": "other"}
    content["method"] = {"effort": "fast"}
    content["quality"] = {"accept": dict.fromkeys(HELD_BY_DEFAULT, "a test of types")}
    content["publish"]["accept_dependencies"] = [name for name, role in roles.items() if role == "other"]
    specification = build_specification(content, tmp_path)
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    with areas.lock():
        microdata = read(spark, specification, areas.session_staging)
        risk = risk_of(Job(spark, specification, areas, Progress(quiet=True)), microdata)
    assert risk.as_json()["records"] == N
    _, areas = run(spark, specification, ())
    back = ds.dataset(areas.public.release(areas.public.current()) / "microdata").to_table()
    assert set(back.column_names) == set(content["variables"]) - {"person"}
    assert {each.name: each.type for each in back.schema} == {
        name: original.schema.field(name).type for name in back.column_names
    }
    education, status = (back[name].combine_chunks() for name in ("edu", "status"))
    assert education.dictionary.to_pylist() == EDUCATION
    # Unordered categories may have the order of the records, so their order is not published.
    assert status.dictionary.to_pylist() == sorted(STATUS)
