"""The report page: complete, self-contained, and rebuilt from the evidence alone."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.evidence.page import write_report

RISK = {
    "records": 100,
    "classes": 80,
    "classes_below_k": 70,
    "records_below_k": 85,
    "uniques": 60,
    "smallest": 1,
}
SAFE = {
    "records": 100,
    "classes": 20,
    "classes_below_k": 0,
    "records_below_k": 0,
    "uniques": 0,
    "smallest": 3,
}
TABLE = {
    "cells": 4,
    "chi2": 1.5,
    "max_absolute_error": 2,
    "max_relative_error": 0.5,
    "false_positives": 0,
    "errors": {"0": 2, "1": 1, "2": 1},
}
QUALITY = {
    "release": {
        "release_id": "a" * 32, "name": "persons", "version": "1", "at": "2026-01-01", "k": 3,
        "public_area": "lake", "specification": {"variables": {"sex": {"role": "quasi_identifier"}}},
    },
    "counts": {"input": 101, "rejected": {"missing income": 1}, "suppressed": 0, "published": 100,
               "blocks": 2},
    "risk": {"all": {"before": RISK, "after": SAFE}},
    "loss": {"all": {"sse": 1.0, "sst": 10.0, "information_loss": 0.1, "objective": 1.0,
                     "lower_bound": 0.9,
                     "whole_file_lower_bound": 0.2, "by_variable": {"income": 0.1, "age": 0.12}}},
    "moments": {"income": {"mean_before": 1, "mean_after": 1, "variance_before": 2, "variance_after": 1.9}},
    "correlations": {"all": {"variables": ["income", "age"], "before": [[1, 0.5], [0.5, 1]],
                             "after": [[1, 0.6], [0.6, 1]]}},
    "tables": [{"variables": ["sex"], "dimension": 1, **TABLE}],
    "by_dimension": {"1": TABLE},
    "uniques_published": {"hours<script>": 7},
    "dominance": {"income": {"n": 1, "k": 85.0, "clusters": 20, "failing": 2}},
    "stages": {"read": 1.0, "protect": 2.0},
    "verdicts": [{"check": "release", "metric": "smallest_class", "found": 3, "limit": 3, "passed": True}],
}  # fmt: skip
BLOCKS = pa.table(
    {
        "records": [60, 40],
        "seconds": [0.5, 0.4],
        "gap": pa.array([0.01, None], pa.float64()),
        "algorithm": ["mdav", "mdav"],
        "optimal": [False, None],
        "fallback": pa.array([None, "deadline"], pa.string()),
    }
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "quality.json").write_text(json.dumps(QUALITY))
    pq.write_table(BLOCKS, tmp_path / "blocks.parquet")
    return tmp_path


def test_the_page_shows_every_section_and_loads_nothing(folder):
    page = write_report(folder).read_text()
    for heading in ("Records", "Risk before and after", "Control tables", "Blocks", "Checks"):
        assert f"<h2>{heading}</h2>" in page
    assert page.count("<svg") == 7
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
    assert "<script" not in page


def test_a_refused_run_says_so_first(folder):
    refused = QUALITY | {"verdicts": [QUALITY["verdicts"][0] | {"passed": False}]}
    (folder / "quality.json").write_text(json.dumps(refused))
    page = write_report(folder).read_text()
    assert "<strong>Refused.</strong>" in page
    assert "<strong>Published.</strong>" not in page


def test_the_same_evidence_gives_the_same_page(folder):
    assert write_report(folder).read_text() == write_report(folder).read_text()


def test_a_name_with_dollars_is_no_formula(folder):
    loss = {"all": QUALITY["loss"]["all"] | {"by_variable": {"in_$ and out_$": 0.1}}}
    (folder / "quality.json").write_text(json.dumps(QUALITY | {"loss": loss}))
    assert "in_$ and out_$" in write_report(folder).read_text()
