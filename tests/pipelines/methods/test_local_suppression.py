"""Tests of local suppression end to end: only values go missing, and each meaning of missing satisfies k."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.read import microdata_from_frame
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.job import Job
from microguard.pipelines.method import record_method
from microguard.pipelines.publication.areas import Areas
from microguard.schemas.errors import SpecificationError

from tests.contract.guarantees import oracle
from tests.pipelines.microdata import published, quality, run, specification

ROLES = {
    "region": {"role": "region"},
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "age.band": {"role": "quasi_identifier", "kind": "ordinal", "order": ["0-17", "18-64", "65+"]},
    "job": {"role": "quasi_identifier", "kind": "nominal", "variable_weight": 3.0},
    "place": {"role": "quasi_identifier", "kind": "nominal"},
    "income": {"role": "sensitive"},
}
KEYS = ["sex", "age.band", "job", "place"]


def persons(n=200, seed=0):
    """Return persons of two regions; each income identifies a person, and some jobs are missing in the
    source.
    """
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": np.array(["north", "south"])[rng.integers(0, 2, n)],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "age.band": np.array(["0-17", "18-64", "65+"])[rng.integers(0, 3, n)],
            "job": [
                None if rng.random() < 0.05 else each
                for each in np.array(list("abcd"))[rng.integers(0, 4, n)]
            ],
            "place": rng.integers(0, 6, n),
            "income": np.arange(n) + 1000,
        }
    )


def spec_of(folder, roles=ROLES, effort="standard", **parameters):
    method = {"name": "local_suppression", "effort": effort, "parameters": parameters}
    return specification(folder, roles, method=method)


def suppressed(spark, spec, frame):
    """Return the protected records without the steps of a release."""
    job = Job(spark, spec, Areas.from_places(spec.public_area, spec.evidence_area), Progress(quiet=True))
    screened = validate(microdata_from_frame(frame, spec), spec)
    protected, _ = record_method(spec).protect(job, screened, screened.frame, "0" * 32)
    return protected.toPandas().sort_values("income", ignore_index=True)


@pytest.mark.spark
@pytest.mark.parametrize("missing", ["category", "any_value"])
def test_counts_of_local_suppression_agree_in_spark_duckdb_and_plain_python(spark, tmp_path, missing):
    before = persons()
    before.to_parquet(tmp_path / "data")
    _, areas = run(spark, spec_of(tmp_path, missing=missing), ("coarsening",))
    after = published(areas).sort_values("income", ignore_index=True)
    lost = after[KEYS].isna() & before[KEYS].notna()
    pd.testing.assert_frame_equal(
        after[KEYS].astype(object).where(~lost, None),
        before[KEYS].astype(object).where(~lost, None),
        check_dtype=False,
    )
    same = ["region", "income"]
    pd.testing.assert_frame_equal(after[same], before[same], check_dtype=False)
    rows = after.astype(object).where(after.notna(), None).to_dict("records")
    smallest = oracle.class_sizes(rows, [*KEYS, "region"])[0]
    fewest = oracle.fewest_showing(rows, KEYS, ["region"])
    assert (smallest if missing == "category" else fewest) >= 3
    assert (smallest >= 3) == (missing == "category")
    section = quality(areas)["coarsening"]
    counted = {each["name"]: each["suppressed"] for each in section["variables"]}
    assert counted == lost.sum().to_dict()
    assert section["cost"] == sum(3 * n if name == "job" else n for name, n in counted.items())
    assert 0 < section["lower_bound"] <= section["cost"]
    release = areas.public.release(areas.public.current())
    assert audit(release).passed
    manifest = json.loads((release / "manifest.json").read_text())
    stated = manifest["guarantee"]
    assert stated.get("missing", "category") == missing
    (group,) = stated["groups"]
    assert group["smallest_class"] == smallest
    assert group.get("fewest_showing") == (None if missing == "category" else 3)
    page = (release / "report.html").read_text()
    assert ("values are shown by at least" in page) == (missing == "any_value")
    assert ("cannot be distinguished by them" in page) == (missing == "category")


@pytest.mark.spark
def test_local_suppression_does_not_depend_on_order_or_partitions(spark, tmp_path):
    spec, frame = spec_of(tmp_path, effort="fast"), persons()
    first = suppressed(spark, spec, spark.createDataFrame(frame).coalesce(1))
    other = suppressed(
        spark, spec, spark.createDataFrame(frame.sample(frac=1, random_state=1)).repartition(3)
    )
    pd.testing.assert_frame_equal(first, other)
    assert first[KEYS].isna().to_numpy().sum() > frame[KEYS].isna().to_numpy().sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"missing": "none"}, "missing"),
        ({"k": 3}, "k"),
    ],
)
def test_specification_refuses_invalid_parameters_of_local_suppression(change, message, tmp_path):
    with pytest.raises(SpecificationError, match=message):
        spec_of(tmp_path, **change)


def test_specification_refuses_keys_that_local_suppression_ignores(tmp_path):
    numeric = ROLES | {"place": {"role": "quasi_identifier", "kind": "numeric"}}
    with pytest.raises(
        SpecificationError, match="nominal, ordinal, hierarchical with method local_suppression"
    ):
        spec_of(tmp_path, numeric)
    household = ROLES | {"home": {"role": "household"}}
    method = {"name": "local_suppression", "unit": "household", "effort": "fast"}
    with pytest.raises(SpecificationError, match=r"unit: .*record.* with method local_suppression"):
        specification(tmp_path, household, method=method)
    costs = ROLES | {"job": {"role": "quasi_identifier", "kind": "nominal", "costs": "costs.csv"}}
    with pytest.raises(SpecificationError, match="publishes no other category"):
        spec_of(tmp_path, costs)
    for count in (63, 64):
        many = {f"v{i}": ROLES["sex"] for i in range(count)}
        if count == 63:
            assert len(spec_of(tmp_path, many).quasi_identifiers) == count
            continue
        with pytest.raises(
            SpecificationError, match="at most 63 quasi-identifiers with this method, found 64"
        ):
            spec_of(tmp_path, many)
    with pytest.raises(SpecificationError, match="records of a folder are counted by category"):
        specification(
            tmp_path,
            ROLES,
            method={"name": "local_suppression", "parameters": {"missing": "any_value"}},
            publish={"partition_by": "region"},
        )
