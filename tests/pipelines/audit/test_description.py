"""Tests that the audit recomputes the statistics in the descriptor of a release."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.pipelines.audit.description import LARGEST, wrong_statistics
from microguard.pipelines.description.descriptor import _field
from microguard.pipelines.description.statistics import column_statistics
from microguard.pipelines.guarantees.queries import quiet_engine, show

DESCRIBED = {"role": "other", "protected": False}
NUMBERS = [1.5, 2.0, 9.0, None, float("nan"), 3.0, 2.0]
TEXTS = ["a", "b", "b", None, "", "c", "a"]


def described(folder, values):
    """Write records of one column and return the statistics of a descriptor."""
    path = folder / "microdata" / "part-00000.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"x": values}), path)
    return _field(pq.read_schema(path).field("x"), DESCRIBED, column_statistics([path], "x"))


def is_wrong(folder, field):
    resource = {"path": "microdata/part-00000.parquet", "schema": {"fields": [field]}}
    (folder / "datapackage.json").write_text(json.dumps({"resources": [resource]}))
    with quiet_engine() as engine:
        show(engine, "microdata", [folder / resource["path"]], ["c0"])
        return wrong_statistics(engine, folder, {"x": "c0"}) == 1


@pytest.mark.parametrize("key", ["values", "missing", "minimum", "maximum", "mean", "total", "deviation"])
def test_audit_refuses_a_statistic_that_differs_from_the_records(tmp_path, key):
    field = described(tmp_path, NUMBERS)
    assert not is_wrong(tmp_path, field)
    field["statistics"][key] += 1
    assert is_wrong(tmp_path, field)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("moved", [-0.5, 0.75])
def test_audit_refuses_a_quartile_that_differs_from_the_records(tmp_path, place, moved):
    field = described(tmp_path, NUMBERS)
    quartiles = list(field["statistics"]["quartiles"])
    quartiles[place] += moved
    field["statistics"]["quartiles"] = quartiles
    assert is_wrong(tmp_path, field)


@pytest.mark.parametrize("listed", [["", "a", "b"], ["", "a", "b", "c", "d"], ["a", "b", "c", "x"]])
def test_audit_refuses_a_list_of_values_that_differs_from_the_records(tmp_path, listed):
    field = described(tmp_path, TEXTS)
    assert not is_wrong(tmp_path, field)
    field["constraints"]["enum"] = listed
    assert is_wrong(tmp_path, field)


def test_audit_accepts_quartiles_of_decimals_in_any_conversion(tmp_path):
    rng = np.random.default_rng(5)
    for _ in range(20):
        cents = rng.integers(10**6, 10**8, 25)
        values = pa.array([Decimal(int(each)).scaleb(-2) for each in cents], pa.decimal128(10, 2))
        assert not is_wrong(tmp_path, described(tmp_path, values))


@given(
    st.one_of(
        st.lists(st.one_of(st.none(), st.floats()), min_size=1),
        st.lists(st.sampled_from([LARGEST, -LARGEST, 8.98e307, 1e150, 5e-324, 1.0]), min_size=1),
        st.lists(st.integers(-(2**62), 2**62), min_size=1),
        st.lists(st.sampled_from(TEXTS), min_size=1),
    )
)
def test_audit_accepts_the_statistics_of_any_records(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("described")
    if all(value is None for value in values):
        return
    field = described(folder, values)
    assert not is_wrong(folder, field)
    json.dumps(field, allow_nan=False)


def test_statistics_of_numbers_that_mark_missing_values_are_numbers(tmp_path):
    """The largest double and Stata's mark of missing values; sums and squares of these are infinite."""
    for mark in (LARGEST, 8.98846567431158e307, -1e200):
        field = described(tmp_path, [1.5, mark, 2.0, mark, 3.0])
        assert field["statistics"]["deviation"] == pytest.approx(np.std([0, 1, 0, 1, 0], ddof=1) * abs(mark))
        assert field["statistics"]["mean"] == pytest.approx(0.4 * mark)
        assert not is_wrong(tmp_path, field)
        field["statistics"]["mean"] /= 2
        assert is_wrong(tmp_path, field)


def test_sums_of_several_files_are_computed_where_each_of_them_is_finite(tmp_path):
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for path, value in zip(paths, (LARGEST, LARGEST, -LARGEST), strict=True):
        pq.write_table(pa.table({"x": [value, 1.0], "w": [2.0, 1.0]}), path)
    numbers = column_statistics(paths, "x", weight="w").numbers
    assert numbers.total == pytest.approx(LARGEST)
    assert numbers.weighted_total is None
