"""The plan of blocks."""

import pyarrow as pa
import pytest

from pipelines.records.blocks import Plan
from pipelines.records.coordinates import Coordinates
from schemas.errors import ProtectionFailed


def test_a_whole_stratum_that_lost_records_since_the_check_ends_the_run():
    plan = Plan(pa.table({"__first": [0], "__tree": [-1]}), (), Coordinates({}, {}), 1)
    with pytest.raises(ProtectionFailed, match="changed during the run"):
        plan.without_trees({0})
