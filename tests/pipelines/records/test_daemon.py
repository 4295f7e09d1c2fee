"""Tests of Python workers: they are forked from a process that has already imported the methods and tasks."""

from __future__ import annotations

import sys
from zipimport import zipimporter

import pyarrow as pa


def test_worker_has_loaded_the_methods_before_its_first_task(spark):
    def loaded(batches):
        for _ in batches:
            needed = {"microguard.sdc.microaggregation", "microguard.pipelines.records.cluster_blocks"}
            yield pa.record_batch([pa.array([needed <= set(sys.modules)])], names=["loaded"])

    assert spark.range(1, numPartitions=1).mapInArrow(loaded, "loaded boolean").first()["loaded"]


def test_worker_does_not_load_the_table_methods(spark):
    def loaded(batches):
        for _ in batches:
            yield pa.record_batch([pa.array(["microguard.sdc.cta" in sys.modules])], names=["loaded"])

    assert not spark.range(1, numPartitions=1).mapInArrow(loaded, "loaded boolean").first()["loaded"]


def test_worker_reads_archives_once_for_all_tasks(spark):
    def archives(batches):
        for _ in batches:
            found = [type(each) for each in sys.path_importer_cache.values()]
            yield pa.record_batch([pa.array([found.count(zipimporter)])], names=["archives"])

    assert spark.range(1, numPartitions=1).mapInArrow(archives, "archives long").first()["archives"] == 0
