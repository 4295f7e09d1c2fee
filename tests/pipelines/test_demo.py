"""Tests of the synthetic demo data: reproducible, plausible, and described by its specification."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.demo import Kind, demo, specification_text, write_town
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.synthetic.dataset import CHUNK, generate_persons
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.read import read_specification

KINDS: tuple[Kind, ...] = get_args(Kind)


@pytest.fixture(scope="module")
def persons() -> pd.DataFrame:
    return next(generate_persons(20_000, seed=1)).to_pandas()


def test_synthetic_file_depends_only_on_the_seed() -> None:
    first, again, other = (next(generate_persons(500, seed)) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_larger_synthetic_file_begins_with_the_persons_of_a_smaller_file() -> None:
    small = next(generate_persons(5_000, seed=1))
    parts = list(generate_persons(CHUNK + 1, seed=1))
    assert [len(part) for part in parts] == [CHUNK, 1]
    assert parts[0].slice(0, 5_000).equals(small)


def test_synthetic_file_contains_no_person_twice() -> None:
    ids = [value for part in generate_persons(CHUNK + 50, seed=1) for value in part["person_id"].to_pylist()]
    assert len(set(ids)) == CHUNK + 50


def test_synthetic_household_has_one_region_rent_and_floor_space(persons: pd.DataFrame) -> None:
    assert (persons.groupby("household")[["region", "rent", "floor_space"]].nunique() == 1).all(axis=None)


def test_synthetic_children_neither_work_nor_marry(persons: pd.DataFrame) -> None:
    children = persons[persons.age < 16]
    assert set(children.working_status) == {"child"}
    assert set(children.marital_status) == {"never married"}
    assert set(children.education) == {"in school"}
    assert (children[["income", "hours"]] == 0).all(axis=None)


def test_synthetic_variables_depend_on_each_other_as_in_a_census(persons: pd.DataFrame) -> None:
    adults = persons[persons.age >= 30]
    income = adults.groupby("education").income.median()
    assert income["primary"] < income["upper secondary"] < income["master"]
    assert persons[persons.working_status == "retired"].age.min() >= 50
    widowed = persons.marital_status == "widowed"
    assert persons[widowed].age.median() > persons[~widowed].age.median() + 20
    working = persons.working_status.isin(["employed", "self-employed"])
    assert ((persons.hours > 0) == working).all()
    assert ((persons.occupation != "none") == working).all()
    circulatory = persons.diagnosis == "circulatory"
    assert persons[circulatory].age.mean() > persons.age.mean() + 5


def test_every_region_of_a_small_synthetic_file_has_enough_records() -> None:
    for records in (60, 300, 1_000):
        assert next(generate_persons(records, seed=2026)).to_pandas().region.value_counts().min() >= 3


@pytest.mark.parametrize("kind", KINDS)
def test_demo_specification_names_every_column_of_the_data(kind: Kind, tmp_path: Path) -> None:
    write_town(tmp_path / "data", 300, kind)
    path = tmp_path / "release.toml"
    path.write_text(specification_text(300, kind))
    specification = read_specification(path)
    columns = pq.read_schema(tmp_path / "data" / "persons-00000.parquet").names
    assert sorted(specification.variables) == sorted(columns)
    assert specification.kinds() == kind
    assert specification.sensitive == (() if kind == "nominal" else ("diagnosis",))
    expected = {"mixed": (6, 3), "nominal": (8, 0), "numeric": (0, 10)}[kind]
    assert (len(specification.nominal), len(specification.numeric)) == expected


def test_demo_only_data_writes_data_and_specification(tmp_path: Path) -> None:
    outcome = demo(tmp_path / "d", records=50, only_data=True, progress=Progress(quiet=True))
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["data", "release.toml"]
    assert outcome.as_json()["records"] == 50


def test_demo_removes_parts_of_an_earlier_larger_file(tmp_path: Path) -> None:
    write_town(tmp_path, 100, "mixed")
    (tmp_path / "persons-00007.parquet").write_bytes((tmp_path / "persons-00000.parquet").read_bytes())
    write_town(tmp_path, 100, "mixed")
    assert [path.name for path in tmp_path.iterdir()] == ["persons-00000.parquet"]


def test_demo_stops_before_protection_if_an_override_is_invalid(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="effort"):
        demo(tmp_path, records=20, overrides=["method.effort=fats"], progress=Progress(quiet=True))
    assert not (tmp_path / "evidence").exists()
