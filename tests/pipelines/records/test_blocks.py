"""The plan of blocks."""

import pandas as pd
import pyarrow as pa
import pytest

from pipelines.intake.screen import PATTERN
from pipelines.measures.pairs import ORIGINAL
from pipelines.records.blocks import MOST_NUMBERS, Plan, blocked, records_within_memory
from pipelines.records.coordinates import Coordinates
from schemas.errors import ProtectionFailed
from tests.pipelines.microdata import specification


def test_a_whole_stratum_that_lost_records_since_the_check_ends_the_run():
    plan = Plan(pa.table({"__first": [0], "__tree": [-1]}), (), Coordinates({}, {}), 1)
    with pytest.raises(ProtectionFailed, match="changed during the run"):
        plan.without_trees({0})


def test_a_block_is_as_large_as_its_points_fit_memory():
    assert records_within_memory(12, []) == MOST_NUMBERS // 12
    assert records_within_memory(2, [50_000]) == 8_191  # each of so few records may have a value of its own
    assert records_within_memory(0, [10, 100]) == MOST_NUMBERS // 110
    assert records_within_memory(0, []) > 10**7


@pytest.mark.spark
def test_records_alike_by_now_are_ordered_by_what_they_were(spark, tmp_path):
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
