"""Tests of source fingerprints: the same records match in any file format; unrelated files do not match."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from microguard.pipelines.publication.source_fingerprints.fingerprint import Sample, together
from microguard.pipelines.publication.source_fingerprints.overlap import CellCounts, share_records
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import (
    SourceFingerprint,
    same_records,
    share_units,
    subsets_of,
)
from microguard.pipelines.synthetic.dataset import generate_persons

from tests.pipelines.publication.source_fingerprints.fingerprints import KEY, fingerprint_of

CASES = {
    "two names, two k": lambda frame: frame,
    "one record less": lambda frame: frame.iloc[1:],
    "a subset of 70 %": lambda frame: frame.sample(frac=0.7, random_state=1),
    "one region": lambda frame: frame[frame["region"] == "north"],
    "a coarser region": lambda frame: frame.assign(region=frame["region"].isin(["north", "south"])),
    "other columns": lambda frame: frame[["diagnosis", "region", "activity", "sex"]],
    "other names of columns": lambda frame: frame.rename(columns=lambda name: f"{name}_2026"),
    "another order and type": lambda frame: frame.sample(frac=1, random_state=2).astype({"activity": float}),
}
NOMINAL = ["region", "sex", "age", "activity", "diagnosis"]


def persons(n, seed):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": np.array(["north", "south", "west", "east"])[random.integers(0, 4, n)],
            "sex": np.array(["f", "m"])[random.integers(0, 2, n)],
            "age": random.integers(0, 18, n),
            "activity": random.integers(0, 20, n),
            "diagnosis": np.array(["a", "b", "c"])[random.integers(0, 3, n)],
            "income": np.round(random.lognormal(7, 1, n), 2),
            "hours": random.integers(0, 60, n),
        }
    )


@pytest.fixture(scope="module", params=["mixed", "nominal"])
def records(request):
    frame = persons(2000, 1)
    return frame if request.param == "mixed" else frame[NOMINAL]


@pytest.mark.parametrize("case", CASES)
def test_same_records_is_true_for_the_same_records_without_units(records, case):
    left, right = fingerprint_of(records), fingerprint_of(CASES[case](records))
    assert same_records(left, right)
    assert same_records(right, left)


def test_same_records_is_true_for_a_tenth_of_the_records_if_a_number_distinguishes_them():
    frame = persons(2000, 1)
    assert same_records(fingerprint_of(frame), fingerprint_of(frame.sample(frac=0.1, random_state=3)))


def test_same_records_is_true_for_the_records_of_a_small_file():
    frame = persons(70, 1)
    assert same_records(fingerprint_of(frame), fingerprint_of(frame.iloc[1:]))
    table = frame[["region", "sex", "income"]]
    assert same_records(fingerprint_of(frame), fingerprint_of(table))
    assert not same_records(fingerprint_of(frame), fingerprint_of(persons(70, 2)))


def test_same_records_is_false_for_two_samples_of_one_population(records):
    for seed, n in ((2, 2000), (3, 6000), (4, 300)):
        other = persons(n, seed)[list(records.columns)]
        assert not same_records(fingerprint_of(records), fingerprint_of(other))


def numbered(seed):
    """Return unrelated files with equal running numbers and layouts."""
    random = np.random.default_rng(seed)
    n = int(random.integers(150, 500))
    frame = persons(n, seed)[["region", "sex", "income", "hours"]].assign(
        number=np.arange(n),
        flag=random.random(n) < 0.95,
        week=np.arange(n) // 7,
    )
    postcode = random.integers(0, 900, n)
    return frame.assign(postcode=postcode, district=postcode // 100)


def towns(seed):
    table = next(iter(generate_persons(150 + 25 * seed, seed))).to_pandas()
    chosen = ["region", "sex", "age", "education", "occupation", "income", "hours", "diagnosis", "weight"]
    return table[[name for name in chosen if name in table]]


@pytest.mark.parametrize("files", [6, pytest.param(15, marks=pytest.mark.long)])
def test_same_records_is_false_for_all_pairs_of_unrelated_files(files):
    pairs = []
    for generated in (numbered, towns):
        pairs += combinations([fingerprint_of(generated(seed)) for seed in range(1, files + 1)], 2)
    assert len(pairs) == files * (files - 1)
    assert sum(same_records(left, right) for left, right in pairs) == 0


def test_fingerprint_does_not_depend_on_row_order_or_partitions():
    frame = persons(3000, 5).assign(person=np.arange(3000) // 2)
    whole = fingerprint_of(frame, "person")
    cut = fingerprint_of(frame.sample(frac=1, random_state=6), "person", tasks=5)
    assert list(whole.cells) == list(cut.cells)
    for one, other in zip(whole.cells.values(), cut.cells.values(), strict=True):
        assert (one.cells == other.cells).all()
        assert (one.records == other.records).all()
        assert one.whole == other.whole
    assert (whole.units.units == cut.units.units).all()
    assert (whole.units.marks == cut.units.marks).all()


def test_fingerprint_does_not_depend_on_the_batches_of_a_task():
    sample = Sample(("c0",), False, KEY)
    batches = [pa.record_batch({"c0": pa.array([value], pa.int64())}) for value in range(80)]
    rows = pa.Table.from_batches(list(together(sample(batches))))
    assert rows["records"].to_pylist() == [1] * 80


def test_fingerprint_contains_the_counts_of_the_file():
    frame = persons(500, 7)[["region", "sex"]]
    fingerprint = fingerprint_of(frame)
    assert sorted(fingerprint.cells[("region", "sex")].records) == sorted(frame.value_counts())
    assert fingerprint.cells[("sex",)].whole


def test_written_fingerprint_is_read_back_unchanged(tmp_path):
    frame = persons(1500, 8).assign(person=np.arange(1500))
    fingerprint = fingerprint_of(frame, "person")
    fingerprint.write(tmp_path / "evidence" / "sketch.parquet")
    again = SourceFingerprint.read(tmp_path / "evidence" / "sketch.parquet")
    assert (again.records, again.key, list(again.cells)) == (1500, fingerprint.key, list(fingerprint.cells))
    assert all((again.cells[name].records == each.records).all() for name, each in fingerprint.cells.items())
    assert (again.units.marks == fingerprint.units.marks).all()
    assert again.units.size == 1500
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "evidence" / "sketch.parquet").read_bytes()[:-9])
    assert SourceFingerprint.read(tmp_path / "torn.parquet") is None
    assert SourceFingerprint.read(tmp_path / "missing.parquet") is None


def test_same_records_is_true_for_common_units_without_other_agreement():
    frame = persons(1000, 9).assign(person=np.arange(1000))
    other = frame[["person", "hours"]].sample(frac=0.5, random_state=1)
    assert same_records(fingerprint_of(frame, "person"), fingerprint_of(other, "person"))
    strangers = persons(1000, 10).assign(person=np.arange(1000))
    assert not same_records(fingerprint_of(frame, "person"), fingerprint_of(strangers, "person"))
    assert share_units(fingerprint_of(frame, "person"), fingerprint_of(strangers, "person"))
    assert share_units(fingerprint_of(frame, "person"), fingerprint_of(persons(50, 1))) is None


def test_fingerprint_without_its_key_confirms_no_guessed_value():
    frame = persons(300, 11)
    one, other = fingerprint_of(frame), fingerprint_of(frame, key=b"x" * 32)
    assert one.key != other.key
    assert not np.intersect1d(one.cells[("income",)].cells, other.cells[("income",)].cells).size


def test_subsets_of_returns_each_column_each_pair_all_and_all_but_one():
    found = subsets_of(["a", "b", "c", "d"])
    assert [len(subset) for subset in found] == [1] * 4 + [2] * 6 + [4] + [3] * 4
    assert subsets_of(["a"]) == [("a",)]
    assert len(subsets_of([f"c{i}" for i in range(60)])) == 24 + 276 + 1 + 24


def test_share_records_is_true_for_few_equal_large_cells_and_false_for_a_sample_of_equal_shares():
    records = np.array([3300, 3400, 3350, 3280, 3310, 3360])
    left = CellCounts(np.arange(6), records, True)
    less = CellCounts(np.arange(6), records - np.array([0, 0, 1, 0, 0, 0]), True)
    assert share_records(left, less, (20_000, 19_999))
    drawn = np.random.default_rng(1).poisson(records)
    assert not share_records(left, CellCounts(np.arange(6), drawn, True), (20_000, int(drawn.sum())))
