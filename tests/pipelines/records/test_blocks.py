"""Tests of the plan of blocks."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from microguard.pipelines.engine.row_hash import HASH
from microguard.pipelines.intake.validate import PATTERN
from microguard.pipelines.measures.pairs import ORIGINAL
from microguard.pipelines.records.blocks import (
    BLOCK,
    LEAST_SAMPLED,
    MOST_NUMBERS,
    MOST_SAMPLED,
    Plan,
    block_and_hash,
    blocked,
    leaves_of,
    plan,
    records_within_memory,
)
from microguard.pipelines.records.coordinates import Coordinates
from microguard.pipelines.records.tree_sample import sample_strata
from microguard.schemas.errors import InputRejected, ProtectionFailed
from microguard.sdc.microaggregation.principal_cuts import CutTree
from pyspark.sql import functions as f

from tests.pipelines.intake.scales import compute_scales
from tests.pipelines.microdata import specification


def test_run_ends_if_a_stratum_lost_records_since_the_check():
    plan = Plan(pa.table({"__first": [0], "__tree": [-1]}), (), Coordinates({}, {}), 1)
    with pytest.raises(ProtectionFailed, match="changed during the run"):
        plan.without_trees({0})


def test_stratum_with_too_few_sensitive_values_rejects_the_input():
    strata = pa.table({"__first": [0, 1], "__tree": [0, -1]})
    cut, whole = {0}, {1}
    plan = Plan(strata, (), Coordinates({}, {}), 2)
    assert plan.without_trees(cut, cut).strata["__tree"].to_pylist() == [-1, -1]
    refused = r"method\.min_diversity.* found fewer in 1 of 2.*\[method\] min_diversity = 1"
    with pytest.raises(InputRejected, match=refused):
        plan.without_trees(cut | whole, whole)


def test_block_is_as_large_as_its_points_fit_memory():
    assert records_within_memory(12, []) == MOST_NUMBERS // 12
    assert records_within_memory(2, [50_000]) == 8_191  # each of these few records may have a distinct value
    assert records_within_memory(0, [10, 100]) == MOST_NUMBERS // 110
    assert records_within_memory(0, []) > 10**7


@pytest.mark.spark
def test_equal_records_are_ordered_by_their_original_values(spark, tmp_path):
    roles = {"sex": {"role": "quasi_identifier", "kind": "nominal"}}
    rows = [{"sex": "f", PATTERN: 0, ORIGINAL: {"v0": before}} for before in ("m", "f", "x", "f", "m", "u")]
    strata = pa.table({PATTERN: [0], "records": [len(rows)], "__first": [0], "__tree": [-1]})
    one_block = Plan(strata, (), Coordinates({}, {}), 1)
    orders = []
    for arrival in (rows, rows[::-1]):
        frame = spark.createDataFrame(
            pd.DataFrame(arrival), f"sex string, {PATTERN} bigint, {ORIGINAL} struct<v0: string>"
        )
        placed = blocked(frame, one_block, ["sex"], 0, specification(tmp_path, roles))
        orders.append([row[ORIGINAL]["v0"] for row in placed.collect()])
    assert orders[0] == orders[1] == sorted(orders[0])


@pytest.mark.spark
@pytest.mark.parametrize("blocks", [1, 2, 41, 2**40])
def test_block_number_and_hashes_sort_equally_as_one_number(spark, blocks):
    hashes = [-(2**63), 1 - 2**63, -(2**62), -5, -1, 0, 1, 5, 2**62, 2**63 - 1]
    rows = [(block, hashed) for block in sorted({0, blocks // 2, blocks - 1}) for hashed in hashes]
    frame = spark.createDataFrame(pd.DataFrame(rows[::-1], columns=[BLOCK, HASH]))
    placed = frame.withColumn("place", block_and_hash(blocks)).orderBy("place", HASH).collect()
    assert [(row[BLOCK], row[HASH]) for row in placed] == rows
    assert all(row["place"] >= 0 for row in placed)


@pytest.mark.parametrize(("records", "most"), [(300_000, 1_000), (150_000, 20_000)])
def test_no_block_of_a_sampled_tree_exceeds_the_limit(records, most):
    rng = np.random.default_rng(3)
    values, keys = rng.lognormal(size=(records, 3)), rng.integers(-(2**63), 2**63 - 1, records)
    (leaves,), share = leaves_of(np.array([records]), most)
    sampled = int(share * records)
    tree = CutTree.grow(values[:sampled], keys[:sampled], int(leaves))
    assert np.bincount(tree.assign(values, keys)).max() <= most
    assert leaves <= 1.5 * records / most


def test_sample_of_trees_grows_with_the_number_of_blocks_up_to_its_maximum():
    def sampled(records, most):
        return leaves_of(np.array([records]), most)[1] * records

    assert sampled(10**6, 100_000) == pytest.approx(LEAST_SAMPLED)
    assert sampled(10**7, 10_000) == pytest.approx(10**6)
    assert sampled(10**9, 10_000) == pytest.approx(MOST_SAMPLED)
    # the tree is built from all records
    assert leaves_of(np.array([50_000, 900]), 10_000)[0].tolist() == [5, 1]


@pytest.mark.spark
def test_blocks_do_not_depend_on_units_of_measurement_origins_or_order(spark, tmp_path):
    names = ["age", "income"]
    roles = {name: {"role": "quasi_identifier", "kind": "numeric"} for name in names}
    chosen = specification(tmp_path, roles, blocking={"max_records": 100}, method={"effort": "fast"})
    random = np.random.default_rng(1)
    values = random.integers(0, 12, size=(600, 2)) * np.array([1.0, 0.1])
    strata = pa.table({PATTERN: [0], "records": [len(values)]})
    blocks = []
    for factors, origins in (((1, 1), (0, 0)), ((2.0**-9, 10), (0, 1000)), ((1e3, 1e-3), (-7, 0.5))):
        changed = pd.DataFrame((values + origins) * factors, columns=names).assign(number=range(600))
        frame = spark.createDataFrame(changed.sample(frac=1.0, random_state=2)).withColumn(PATTERN, f.lit(0))
        largest = changed[names].abs().max().to_dict()
        scales = compute_scales(frame, largest)
        cut = plan(frame, strata, chosen.clusterings[0], chosen, scales, {})
        placed = blocked(frame, cut, names, 0, chosen).toPandas()
        blocks.append(placed.sort_values("number")[BLOCK].tolist())
    assert len(set(blocks[0])) >= 6
    assert blocks[0] == blocks[1] == blocks[2]


@pytest.mark.spark
def test_outlier_does_not_put_all_other_records_into_one_block(spark, tmp_path):
    roles = {"income": {"role": "quasi_identifier", "kind": "numeric"}}
    chosen = specification(tmp_path, roles, blocking={"max_records": 100}, method={"effort": "fast"})
    changed = pd.DataFrame({"income": [2.0**80, *range(1, 600)]})
    frame = spark.createDataFrame(changed).withColumn(PATTERN, f.lit(0))
    scales = compute_scales(frame, {"income": 2.0**80})
    strata = pa.table({PATTERN: [0], "records": [len(changed)]})
    cut = plan(frame, strata, chosen.clusterings[0], chosen, scales, {})
    placed = blocked(frame, cut, ["income"], 0, chosen).toPandas()
    assert placed[BLOCK].value_counts().max() <= 100


@pytest.mark.spark
def test_sample_of_trees_does_not_depend_on_units_of_measurement_or_an_outlier(spark, tmp_path):
    roles = {"income": {"role": "quasi_identifier", "kind": "numeric"}}
    chosen = specification(tmp_path, roles)
    strata = pa.table({PATTERN: [0], "records": [600]})

    def sampled(values):
        frame = spark.createDataFrame(pd.DataFrame({"income": values})).withColumn(PATTERN, f.lit(0))
        scales = compute_scales(frame, {"income": float(np.abs(values).max())})
        drawn, _ = sample_strata(frame, strata, np.array([0]), 0.3, scales, [], chosen)
        return np.sort(drawn["income"].to_numpy())

    values = np.random.default_rng(2).integers(1, 10**6, 600) / 100
    first = sampled(values)
    assert 0.2 < len(first) / len(values) < 0.4
    for factor in (100, 2.0**-9, 1e-3):
        np.testing.assert_allclose(sampled(values * factor) / factor, first)
    assert 0.2 < len(sampled(np.append(values[1:], 2.0**80))) / len(values) < 0.4
