"""The plan of blocks."""

import pyarrow as pa
import pytest

from pipelines.records.blocks import MOST_NUMBERS, Plan, records_within_memory
from pipelines.records.coordinates import Coordinates
from schemas.errors import ProtectionFailed


def test_a_whole_stratum_that_lost_records_since_the_check_ends_the_run():
    plan = Plan(pa.table({"__first": [0], "__tree": [-1]}), (), Coordinates({}, {}), 1)
    with pytest.raises(ProtectionFailed, match="changed during the run"):
        plan.without_trees({0})


def test_a_block_is_as_large_as_its_points_fit_memory():
    assert records_within_memory(12, []) == MOST_NUMBERS // 12
    assert records_within_memory(2, [50_000]) == 8_191  # each of so few records may have a value of its own
    assert records_within_memory(0, [10, 100]) == MOST_NUMBERS // 110
    assert records_within_memory(0, []) > 10**7
