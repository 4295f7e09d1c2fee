"""Tests of violations of edit rules, counted in Spark."""

import pytest
from microguard.pipelines.measures.rules import violations
from microguard.schemas.specification.rules import parse_rule

pytestmark = pytest.mark.spark


def test_record_violates_a_rule_if_the_condition_is_true_and_the_consequence_is_false(spark):
    records = [
        ("child", "single", 5),
        ("child", "married", 5),
        ("head", "married", 15),
        ("child", None, None),
    ]
    frame = spark.createDataFrame(records, "relation string, `marital.status` string, age int")
    rules = {
        "child": "relation = 'child' -> \"marital.status\" = 'single'",
        "married": "\"marital.status\" = 'married' -> age >= 16",
        "adult": "age >= 16 or relation in ('child')",
        "known": "age is not missing",
        "text": "relation = 5 -> age > 100",
    }
    found = violations(frame, {name: parse_rule(text) for name, text in rules.items()})
    assert found == {"child": 1, "married": 2, "adult": 1, "known": 1, "text": 0}
    assert violations(frame, {}) == {}


def test_rule_violations_are_counted_before_and_after_over_the_published_columns(mixed_release):
    before, after = (
        int(((frame["sex"] == "f") & (frame["age"] < 25)).sum())
        for frame in (mixed_release.original, mixed_release.frame)
    )
    section = mixed_release.found["edit_rules"]
    assert (section["grown_up"]["before"], section["grown_up"]["after"]) == (before, after)
    assert section["known"] == {"before": 0, "after": 0}
