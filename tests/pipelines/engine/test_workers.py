"""Python workers: forked from a process that has the methods loaded."""

from __future__ import annotations

import sys

import pyarrow as pa


def test_worker_has_the_methods_loaded_before_it_is_told_what_to_do(spark):
    def loaded(batches):
        for _ in batches:
            yield pa.record_batch([pa.array(["sdc.microaggregation" in sys.modules])], names=["loaded"])

    assert spark.range(1, numPartitions=1).mapInArrow(loaded, "loaded boolean").first()["loaded"]
