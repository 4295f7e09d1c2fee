"""Tests of derived columns: recomputed from published columns, and verified on the written files."""

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.intake.derived_columns import contradictions
from pyspark.sql.pandas.types import to_arrow_schema

from tests.pipelines.microdata import published, run, specification

pytestmark = pytest.mark.spark

EXPRESSIONS = {"lnum": "log(num)", "total": "num + pay", "share": "pay / num", "whole": "pay / 7"}
ROLES = {
    "num": {"role": "quasi_identifier", "kind": "numeric"},
    "pay": {"role": "quasi_identifier", "kind": "numeric"},
}


def records(n=120):
    rng = np.random.default_rng(3)
    num, pay = rng.integers(1, 40, n), rng.lognormal(6, 1, n).round(2)
    derived = {
        "lnum": np.log(num),
        "total": num + pay,
        "share": pay / num,
        "whole": (pay / 7).round().astype(int),
    }
    return pd.DataFrame({"num": num, "pay": pay, **derived})


def wrong(frame):
    """Return the share of records whose logarithm differs from the logarithm of the number."""
    return float(np.mean(np.abs(np.exp(frame.lnum) - frame.num) > 1e-9))


def test_derived_columns_agree_with_the_published_columns(spark, tmp_path):
    """The control protects the columns one by one: the columns contradict each other in many records."""
    records().to_parquet(tmp_path / "data", index=False)
    alone = ROLES | {name: {"role": "quasi_identifier", "kind": "numeric"} for name in EXPRESSIONS}
    _, areas = run(spark, specification(tmp_path, alone, publish={"path": "l1", "evidence": "e1"}), ())
    assert wrong(published(areas)) > 0.3
    roles = ROLES | {name: {"role": "derived", "kind": "numeric"} for name in EXPRESSIONS}
    sections = {"derived": EXPRESSIONS, "publish": {"path": "l2", "evidence": "e2"}}
    _, areas = run(spark, specification(tmp_path, roles, **sections), ())
    frame = published(areas)
    assert wrong(frame) == 0
    assert np.array_equal(frame.total, frame.num + frame.pay)
    assert np.array_equal(frame.share, frame.pay / frame.num)
    assert np.array_equal(frame.whole, np.rint(frame.pay / 7))
    assert frame.whole.dtype == np.int64


def test_contradictions_counts_altered_records(spark, tmp_path):
    spec = specification(
        tmp_path,
        {"num": ROLES["num"], "lnum": {"role": "derived", "kind": "numeric"}},
        derived={"lnum": "log(num)"},
    )
    rows = [(2.0, float(np.log(2.0))), (3.0, 1.0), (0.0, None), (0.0, 1.0)]
    frame = spark.createDataFrame(rows, "num double, lnum double")
    assert contradictions(frame, spec, to_arrow_schema(frame.schema)) == 2
