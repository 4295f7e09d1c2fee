"""Tests that tasks split blocks with more records than the limit."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.read import microdata_from_frame
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.job import Job
from microguard.pipelines.method import record_method
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.records.block_cuts import cut_to_limit
from microguard.pipelines.records.blocks import BLOCK, Plan
from microguard.pipelines.records.coordinates import Coordinates

from tests.pipelines.microdata import specification
from tests.pipelines.records.one_block import clustering

SCALES = {"income": Scale(0.0, 1.0, 9), "age": Scale(0.0, 1.0, 9)}


def limited(most, **changes):
    """Return the settings of the fourth of seven blocks."""
    one = pa.table({"records": [1], "__first": [0], "__tree": [-1]})
    return clustering(plan=Plan(one, (), Coordinates(SCALES, {}), 7, most), **changes)


def block(values, **others):
    columns = {name: pa.array(each) for name, each in others.items()}
    number = pa.array(np.full(len(values), 3))
    return pa.table({"income": values[:, 0], "age": values[:, 1], **columns, BLOCK: number})


@pytest.mark.parametrize("records", [20, 21, 50, 333])
@pytest.mark.parametrize("tied", [False, True])
def test_cut_to_limit_returns_parts_within_the_limit_that_contain_every_record(records, tied):
    values = np.random.default_rng(1).lognormal(size=(records, 2))
    values[: records if tied else records // 10] = 2.0  # number of records that are equal in all variables
    parts = list(cut_to_limit(block(values, row=np.arange(records)), limited(20)))
    assert all(10 <= len(part.records) <= 20 for part in parts)
    assert sorted(row for part in parts for row in part.records["row"].to_pylist()) == list(range(records))
    numbers = [part.records[BLOCK].unique().to_pylist() for part in parts]
    assert numbers == [[3 + 7 * position] for position in range(len(parts))]


def test_cut_to_limit_returns_margins_without_records_of_other_parts():
    values = np.random.default_rng(2).normal(size=(200, 2))
    parts = list(cut_to_limit(block(values), limited(30)))
    points = [np.column_stack([part.records["income"], part.records["age"]]) for part in parts]
    for i, part in enumerate(parts):
        others = np.concatenate(points[:i] + points[i + 1 :])
        nearest = np.sqrt(((points[i][:, None] - others) ** 2).sum(axis=2)).min(axis=1)
        assert (part.margins <= nearest).all()
        assert part.margins.max() > 0.1
    (whole,) = cut_to_limit(block(values), limited(200))
    assert np.isinf(whole.margins).all()


def test_cut_to_limit_does_not_split_a_part_if_a_half_could_not_be_protected():
    values = np.column_stack([np.arange(40.0), np.zeros(40)])
    healthy = ["a"] * 20 + ["a", "b"] * 10
    diverse = limited(10, sensitive=("illness",), min_diversity=2)
    sizes = [len(part.records) for part in cut_to_limit(block(values, illness=healthy), diverse)]
    assert sizes == [40]  # the first half of the records has one value
    of_household = limited(10, counted="home", k=3)
    homes = [0] * 10 + [1] * 10 + list(range(2, 22))
    sizes = [len(part.records) for part in cut_to_limit(block(values, home=homes), of_household)]
    assert sizes == [40]  # the first half of the records has two households
    sizes = [len(part.records) for part in cut_to_limit(block(values, home=homes[::-1]), limited(10))]
    assert sizes == [10, 10, 10, 10]


def skewed(kind: str) -> tuple[pd.DataFrame, dict]:
    """Return 600 records and the role of the region, if they have a region."""
    rng = np.random.default_rng(4)
    numbers = rng.integers(0, 40, size=(600, 2))
    frame = pd.DataFrame({"income": numbers[:, 0], "age": numbers[:, 1], "job": rng.integers(0, 9, 600)})
    frame["job"] = frame["job"].astype(str)
    if kind == "one combination held by a tenth":
        frame.loc[:59, :] = [7, 7, "7"]
    if kind == "half of the records in a region":
        return frame.assign(region=np.where(np.arange(600) < 300, 0, np.arange(600) // 30)), {
            "role": "region"
        }
    if kind == "many regions":
        return frame.assign(region=np.arange(600) // 4), {"role": "region"}
    return frame, {}


@pytest.mark.spark
@pytest.mark.parametrize(
    "kind",
    [
        "no regions",
        "one combination held by a tenth",
        pytest.param("half of the records in a region", marks=pytest.mark.long),
        pytest.param("many regions", marks=pytest.mark.long),
    ],
)
def test_no_block_exceeds_its_limit_and_clusters_do_not_depend_on_order(spark, tmp_path, monkeypatch, kind):
    # With so few records, trees built from samples are inaccurate.
    for name in ("LEAST_SAMPLED", "SAMPLED_PER_BLOCK"):
        monkeypatch.setattr(f"microguard.pipelines.records.blocks.{name}", 2)
    monkeypatch.setattr("microguard.pipelines.records.blocks.SPREAD", 0.0)
    frame, region = skewed(kind)
    roles = {name: {"role": "quasi_identifier", "kind": "numeric"} for name in ("income", "age")}
    roles |= {"job": {"role": "quasi_identifier", "kind": "nominal"}} | ({"region": region} if region else {})
    spec = specification(tmp_path, roles, blocking={"max_records": 40}, method={"effort": "fast"})
    found = []
    for place, files in enumerate(
        (
            spark.createDataFrame(frame).coalesce(1),
            spark.createDataFrame(frame.sample(frac=1.0, random_state=5)).repartition(3),
        )
    ):
        areas = Areas.from_places(tmp_path / f"lake{place}", tmp_path / f"evidence{place}")
        screened = validate(microdata_from_frame(files, spec), spec)
        job = Job(spark, spec, areas, Progress(quiet=True))
        protected, reports = record_method(spec).protect(job, screened, screened.frame, "0" * 32)
        (blocks,) = (each.blocks for each in reports.values())
        assert sum(report["records"] for report in blocks) == 600
        assert max(report["records"] for report in blocks) <= 40
        cut_again = max(report["block"] for report in blocks) >= len(blocks)
        assert cut_again == (kind != "many regions")
        rows = protected.select(*roles).toPandas()
        found.append(rows.sort_values(list(roles), ignore_index=True))
    pd.testing.assert_frame_equal(found[0], found[1])
