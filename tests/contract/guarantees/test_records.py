"""Tests of guarantees of records: both engines equal plain Python, on whole and on broken files."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.audit.public_records import PublicRecords
from microguard.pipelines.guarantees.guarantee import Count, unmet
from microguard.pipelines.guarantees.k_anonymity import Group, KAnonymity
from microguard.pipelines.guarantees.l_diversity import LDiversity
from microguard.pipelines.guarantees.measured_only import MeasuredOnly
from microguard.pipelines.guarantees.queries import quiet_engine, show
from microguard.pipelines.guarantees.record_files import median_size
from microguard.schemas.requirements.requirement import MetricKey

from tests.contract.guarantees import oracle

SCHEMA = pa.schema(
    [("region", pa.string()), ("sex", pa.string()), ("income", pa.float64()), ("illness", pa.string())]
)
ACUTE, DECOMPOSED = "é", unicodedata.normalize("NFD", "é")
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "region": st.sampled_from(["n", "s", None]),
            "sex": st.sampled_from(["f", "F", ACUTE, DECOMPOSED, None]),
            "income": st.sampled_from([0.0, -0.0, 1.5, float("nan"), None]),
            "illness": st.sampled_from(["a", "b", None]),
        }
    ),
    max_size=30,
)
GROUPS = (
    Group("all", ("sex", "income"), ("region",)),
    Group("sex", ("sex",), ("region",)),
    Group("income", ("income",), ()),
)
ANONYMOUS = KAnonymity(3, "record", GROUPS, jointly=False)
SHOWING = KAnonymity(3, "record", GROUPS, False, "any_value")
DIVERSE = LDiversity(2, ("illness",), GROUPS)
WITHHOLDING = LDiversity(2, ("illness",), GROUPS, withholds=True)


def counted_by_duckdb(records, tmp_path, *guarantees):
    path = tmp_path / "part-00000.parquet"
    pq.write_table(pa.Table.from_pylist(records, SCHEMA), path)
    columns = {name: f"c{i}" for i, name in enumerate(SCHEMA.names)}
    with quiet_engine() as engine:
        show(engine, "microdata", [path], list(columns.values()))
        files = PublicRecords(engine, columns)
        return [each.count(files) for each in guarantees]


def expected(records):
    metrics = {}
    for group in GROUPS:
        names = (*group.variables, *group.region)
        sizes = oracle.class_sizes(records, names)
        metrics[MetricKey("smallest_class", group.name)] = float(sizes[0] if sizes else 0)
    fewest = [oracle.fewest_values(records, (*g.variables, *g.region), "illness") for g in GROUPS]
    return metrics, {MetricKey("fewest_values", "illness"): float(min(fewest))}


@given(RECORDS)
def test_duckdb_counts_classes_and_diversity_like_plain_python(tmp_path_factory, records):
    counts = counted_by_duckdb(records, tmp_path_factory.mktemp("count"), ANONYMOUS, DIVERSE)
    assert tuple(each.metrics for each in counts) == expected(records)
    for group in GROUPS:
        sizes = oracle.class_sizes(records, (*group.variables, *group.region))
        facts = counts[0].facts[group.name]
        assert facts["classes"] == len(sizes)
        assert facts["smallest_class"] == min(sizes, default=0)


@given(RECORDS)
def test_withheld_classes_are_excluded_from_the_diversity_of_a_register(tmp_path_factory, records):
    (count,) = counted_by_duckdb(records, tmp_path_factory.mktemp("count"), WITHHOLDING)
    fewest = [
        oracle.fewest_values(records, (*group.variables, *group.region), "illness", withholds=True)
        for group in GROUPS
    ]
    assert count.metrics == {MetricKey("fewest_values", "illness"): float(min(fewest))}


def expected_showing(records):
    """Limit counts to k, because larger counts are not distinguished."""
    metrics = {}
    for group in GROUPS:
        fewest = oracle.fewest_showing(records, group.variables, group.region)
        sizes = oracle.class_sizes(records, (*group.variables, *group.region))
        found = sizes[0] if sizes and sizes[0] >= SHOWING.k else min(fewest, SHOWING.k)
        metrics[MetricKey("smallest_class", group.name)] = float(sizes[0] if sizes else 0)
        metrics[MetricKey("fewest_showing", group.name)] = float(found if sizes else 0)
    return metrics


@given(RECORDS)
def test_duckdb_counts_records_with_the_same_values_like_plain_python(tmp_path_factory, records):
    (count,) = counted_by_duckdb(records, tmp_path_factory.mktemp("count"), SHOWING)
    assert count.metrics == expected_showing(records)
    for group in GROUPS:
        facts = count.facts[group.name]
        assert facts["smallest_class"] == count.metrics[MetricKey("smallest_class", group.name)]
        shown = count.metrics[MetricKey("fewest_showing", group.name)]
        assert facts["fewest_showing"] == shown
        assert f"every record is compatible with at least {shown:g} records" in count.detail


def test_smallest_class_is_also_stated_if_a_missing_value_matches_any_value(tmp_path):
    records = [{"region": "n", "sex": "f", "income": 1.5}] * 3 + [{"region": "n", "sex": "f"}]
    (count,) = counted_by_duckdb(records, tmp_path, SHOWING)
    assert count.facts["all"]["smallest_class"] == 1
    assert count.facts["all"]["fewest_showing"] == 3
    assert "the smallest has 1 records; every record is compatible with at least 3 records" in count.detail
    assert not unmet(SHOWING.requirements(), count)
    (count,) = counted_by_duckdb(records[1:], tmp_path, SHOWING)
    broken = {each.key for each in unmet(SHOWING.requirements(), count)}
    assert broken == {MetricKey("fewest_showing", name) for name in ("all", "income")}


def test_manifest_states_that_a_missing_value_matches_any_value():
    for guarantee in (ANONYMOUS, SHOWING):
        facts = {group.name: {"smallest_class": 3, "median_class": 3.0, "classes": 1} for group in GROUPS}
        assert KAnonymity.from_manifest(guarantee.manifest(Count({}, facts))) == guarantee


@pytest.mark.spark
def test_spark_counts_classes_and_diversity_like_plain_python(spark, tmp_path):
    from microguard.pipelines.publication.read_back import StagedRecords

    samples = [
        [],
        [{"region": "n", "sex": ACUTE, "income": -0.0, "illness": "a"}] * 3
        + [{"region": "n", "sex": ACUTE, "income": 0.0, "illness": None}],
        [{"region": None, "sex": DECOMPOSED, "income": float("nan"), "illness": "a"}] * 2
        + [{"region": None, "sex": ACUTE, "income": float("nan"), "illness": "b"}] * 3
        + [{"region": "s", "sex": None, "income": None, "illness": illness} for illness in "aab"],
    ]
    for number, records in enumerate(samples):
        path = tmp_path / str(number)
        path.mkdir()
        pq.write_table(pa.Table.from_pylist(records, SCHEMA), path / "part-00000.parquet")
        # Spark counts in separate passes, and in passes that count classes.
        for sensitive in ((), ("illness",)):
            files = StagedRecords(spark.read.parquet(str(path)), ["sex"], ["income"], sensitive=sensitive)
            counts = [each.count(files) for each in (ANONYMOUS, DIVERSE)]
            assert tuple(each.metrics for each in counts) == expected(records)
            if records:
                assert SHOWING.count(files).metrics == expected_showing(records)
            assert [rows for rows, _ in files.contents()] == [len(records)] * 2
        by_duckdb = counted_by_duckdb(records, path, ANONYMOUS, DIVERSE)
        assert [each.facts for each in by_duckdb] == [each.facts for each in counts]


@given(st.lists(st.integers(1, 9), min_size=1))
def test_median_of_class_counts_by_size_equals_that_of_the_classes(sizes):
    import numpy as np

    by_size = np.unique(sizes, return_counts=True)
    assert median_size(*by_size) == np.median(sizes)
    assert median_size(np.empty(0, np.int64), np.empty(0, np.int64)) == 0.0


def test_class_below_k_and_class_with_one_value_violate_the_guarantees(tmp_path: Path):
    whole = [
        {"region": "n", "sex": sex, "income": 1.5, "illness": illness} for sex in "fm" for illness in "aba"
    ]
    for records, kept in ((whole, [True, True]), (whole[:-1], [False, True]), (whole[:-2], [False, False])):
        counts = counted_by_duckdb(records, tmp_path, ANONYMOUS, DIVERSE)
        broken = [
            unmet(each.requirements(), count)
            for each, count in zip((ANONYMOUS, DIVERSE), counts, strict=True)
        ]
        assert [not each for each in broken] == kept
    (count,) = counted_by_duckdb([], tmp_path, MeasuredOnly(("sex",)))
    assert unmet(MeasuredOnly(("sex",)).requirements(), count)
    with pytest.raises(KeyError):
        counted_by_duckdb(whole, tmp_path, MeasuredOnly(("not published",)))
