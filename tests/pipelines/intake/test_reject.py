"""Tests of rejected records: repeated units unless k counts units, and categories that are not text."""

import numpy as np
import pytest
from microguard.pipelines.intake.accept import accept_input
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.validate import validate

from tests.pipelines.microdata import ROLES, persons, published, run, specification

pytestmark = pytest.mark.spark


def panel(units=20, periods=3):
    """Return one record per unit and period, with a different `note` in each record of a unit."""
    frame = persons(units).iloc[:units]
    frame = frame.loc[np.repeat(frame.index, periods)].reset_index(drop=True)
    return frame.assign(
        person=np.repeat(np.arange(units), periods), note=[f"p{i}" for i in range(len(frame))]
    )


def test_validate_accepts_repeated_units_if_k_counts_units(spark, tmp_path):
    original = panel()
    original.to_parquet(tmp_path / "data", index=False)
    counting = specification(tmp_path, method={"unit": "unit"}, quality={})
    screened = validate(read(spark, counting), counting)
    accept_input(screened, counting, tmp_path / "intake")
    assert (screened.remaining, dict(screened.rejected)) == (60, {})
    _, areas = run(spark, counting, ())
    both = published(areas).merge(original[["note", "person"]], on="note")
    assert "person" not in published(areas)
    assert both.groupby(["region", "sex", "age", "income"])["person"].nunique().min() >= 3


def test_validate_rejects_repeated_units_if_k_counts_records(spark, tmp_path):
    panel().to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, roles=ROLES)
    assert dict(validate(read(spark, spec), spec).rejected) == {"unit repeated": 60}


def test_validate_rejects_binary_categories_that_are_not_text(spark, tmp_path):
    frame = persons().assign(sex=[b"f", b"m", b"\xff"] * 23 + [b"f"])
    frame.to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path)
    assert validate(read(spark, spec), spec).rejected == {"text not in the declared encoding": 23}
