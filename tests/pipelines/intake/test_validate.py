"""Tests of validation of records: counts by reason, suppressed regions, and a fingerprint of the content."""

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.intake.accept import accept_input
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.validate import validate
from microguard.schemas.errors import InputRejected

from tests.pipelines.microdata import csv_specification, persons, specification

pytestmark = pytest.mark.spark


def test_validate_fingerprints_records_independently_of_order_and_files(spark, tmp_path):
    frame = persons()
    prints = []
    for number, (shuffled, files) in enumerate(
        [(frame, 1), (frame.sample(frac=1, random_state=1), 7), (frame[1:], 1)]
    ):
        folder = tmp_path / str(number)
        (folder / "data").mkdir(parents=True)
        for part, rows in enumerate(np.array_split(np.arange(len(shuffled)), files)):
            shuffled.iloc[rows].to_parquet(folder / "data" / f"{part}.parquet", index=False)
        spec = specification(folder)
        prints.append(validate(read(spark, spec), spec).fingerprint)
    assert prints[0] == prints[1] != prints[2]


def test_validate_counts_rejected_records_by_reason(spark, tmp_path):
    frame = persons().astype({"income": float})
    frame.loc[0, "income"] = np.nan
    frame.loc[3, "weight"] = -1.0
    frame.loc[5, "person"] = frame.loc[6, "person"]
    frame.to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, missing={"max_rejected": 4})
    screened = validate(read(spark, spec), spec)
    accept_input(screened, spec, tmp_path / "evidence")
    assert screened.rejected == {"number missing": 1, "weight not positive": 1, "unit repeated": 2}
    assert screened.remaining == screened.frame.count() == len(frame) - 4


def test_validate_suppresses_small_regions_if_specified(spark, tmp_path):
    frame = persons()
    frame.loc[:1, "region"] = "tiny"
    frame.to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, blocking={"small_regions": "suppress"})
    screened = validate(read(spark, spec), spec)
    accept_input(screened, spec, tmp_path / "evidence")
    assert screened.suppressed == 2
    assert screened.remaining == screened.frame.count() == len(frame) - 2


def test_accept_input_names_the_variables_of_a_rare_missing_pattern(spark, tmp_path):
    frame = persons().assign(region="north")
    frame["income"] = frame["income"].mask(frame["person"] < 20)
    frame["age"] = frame["age"].astype("Int16").mask(frame["person"] < 2)
    frame.to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, missing={"numeric": "own_cluster"})
    with pytest.raises(InputRejected) as caught:
        accept_input(validate(read(spark, spec), spec), spec, tmp_path / "evidence")
    found = {failure.key: failure.found for failure in caught.value.failures}
    assert found == {"patterns_below_k of age": "1", "patterns_below_k of income": "1"}
    frame["age"] = frame["age"].fillna(20)
    frame.to_parquet(tmp_path / "data", index=False)
    accept_input(validate(read(spark, spec), spec), spec, tmp_path / "evidence")


def test_validate_rejects_missing_categories_only_if_specified(spark, tmp_path):
    frame = persons()
    frame.loc[0, "sex"] = None
    frame.to_parquet(tmp_path / "data", index=False)
    assert validate(read(spark, specification(tmp_path)), specification(tmp_path)).remaining == len(frame)
    strict = specification(tmp_path, missing={"nominal": "reject", "max_rejected": 1})
    assert validate(read(spark, strict), strict).rejected == {"category missing": 1}


def test_validate_treats_nullable_integers_of_pandas_as_numbers(spark, tmp_path):
    frame = persons().astype({"age": "Int16"})
    pd.DataFrame(frame).to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path)
    assert validate(read(spark, spec), spec).scales["age"].present == len(frame)


def test_accept_input_names_the_key_that_reads_a_decimal_comma(spark, tmp_path):
    (tmp_path / "data.csv").write_text("a;b\n" + "x;1,5\ny;2,25\n" * 6)
    roles = {
        "a": {"role": "quasi_identifier", "kind": "nominal"},
        "b": {"role": "quasi_identifier", "kind": "numeric"},
    }
    spec = csv_specification(tmp_path, roles, delimiter=";")
    screened = validate(read(spark, spec), spec)
    assert screened.rejected == {"number with a decimal comma": 12}
    with pytest.raises(InputRejected, match=r'Set input.decimal = ","'):
        accept_input(screened, spec, tmp_path / "evidence")


def test_accept_input_names_the_key_of_the_encoding(spark, tmp_path):
    (tmp_path / "data.csv").write_bytes(b"a,b\n" + "é,1\ny,2\n".encode("latin-1") * 6)
    roles = {name: {"role": "quasi_identifier", "kind": "nominal"} for name in "ab"}
    spec = csv_specification(tmp_path, roles)
    with pytest.raises(InputRejected, match=r"Set input\.encoding \('utf-8'\).*windows-1252"):
        accept_input(validate(read(spark, spec), spec), spec, tmp_path / "evidence")
    declared = csv_specification(tmp_path, roles, encoding="windows-1252")
    assert accept_input(validate(read(spark, declared), declared), declared, tmp_path / "evidence").passed
