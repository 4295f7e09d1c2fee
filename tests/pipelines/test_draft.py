"""Tests of drafts: valid for their file, with cautious roles, and without values of the file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from microguard.pipelines.draft import draft
from microguard.pipelines.synthetic.dataset import generate_persons
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.read import build_specification

from tests.reference import reference_file

CANARY = "Zebedee"


def drafted(path: Path) -> dict[str, Any]:
    """Draft a file, check that the draft is valid, and return it as parsed TOML."""
    content = tomllib.loads(draft(str(path)).summary())
    build_specification(content, path.parent)
    return content


def roles(content: dict[str, Any]) -> dict[str, str]:
    """Return the role of each variable, or the kind of a quasi-identifier or a variable without a special
    role.
    """
    found = {}
    for name, each in content["variables"].items():
        plain = each["role"] in ("quasi_identifier", "other") and "kind" in each
        found[name] = each["kind"] if plain else each["role"]
    return found


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    return pd.DataFrame(
        {
            "person_id": np.arange(n) + 7,
            "region": rng.choice(["north", "south"], n),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.gamma(2, 1000, n).round(2),
            "remark": [f"{CANARY} said number {i} of them" for i in range(n)],
            "code": rng.choice(["007", "012"], n),
        }
    )


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(frame: pd.DataFrame, name: str = "people.csv", **options: Any) -> Path:
        path = tmp_path / name
        if path.suffix == ".parquet":
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False, **options)
        return path

    return write


@pytest.mark.reference
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("adult.csv", {"age": "numeric", "workclass": "nominal", "education_num": "nominal"}),
        (
            "business_survey.csv",
            {"nuts1": "region", "a88": "nominal", "turnover": "numeric", "weight": "weight"},
        ),
        ("tarragona.csv", {"sales": "numeric", "net_profit": "numeric"}),
        ("casc_census.csv", {"afnlwgt": "weight", "agi": "numeric"}),
    ],
)
def test_draft_of_a_reference_file_is_valid_and_has_the_expected_roles(
    name: str, expected: dict[str, str]
) -> None:
    path = reference_file(name)
    content = drafted(path)
    assert list(content["variables"]) == pd.read_csv(path, nrows=1).columns.to_list()
    assert expected.items() <= roles(content).items()


def test_draft_recognises_the_roles_of_the_demo(tmp_path: Path) -> None:
    table = next(generate_persons(5_000, seed=1)).select(
        ["person_id", "name", "household", "region", "sex", "age", "income", "diagnosis", "weight"]
    )
    pq.write_table(table, tmp_path / "town.parquet")
    assert '# unit = "household"' in draft(str(tmp_path / "town.parquet")).summary()
    assert roles(drafted(tmp_path / "town.parquet")) == {
        "person_id": "unit",
        "name": "identifier",
        "household": "household",
        "region": "region",
        "sex": "nominal",
        "age": "numeric",
        "income": "numeric",
        "diagnosis": "sensitive",
        "weight": "weight",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1", "windows-1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_draft_detects_encoding_delimiter_and_decimal_mark(
    encoding: str, delimiter: str, people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    people = people.rename(columns={"sex": "Größe" if encoding != "windows-1252" else "Größe \u20ac"})
    decimal = "," if delimiter == ";" else "."
    content = drafted(write(people, sep=delimiter, encoding=encoding, decimal=decimal))
    assert content["input"]["delimiter"] == delimiter
    assert content["input"]["decimal"] == decimal
    assert content["input"]["encoding"] == encoding.removesuffix("-sig")
    assert list(content["variables"]) == people.columns.to_list()
    assert roles(content)["income"] == "numeric"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_draft_refuses_a_csv_in_utf_16_or_utf_32(
    encoding: str, people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    with pytest.raises(InputRejected, match=r"encoded in UTF-16 or UTF-32.*iconv"):
        drafted(write(people, encoding=encoding))


def test_draft_treats_numbers_with_leading_zeros_as_codes(
    people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    assert roles(drafted(write(people)))["code"] == "nominal"


def test_draft_detects_the_missing_mark_and_keeps_numeric_kinds(
    people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    people["income"] = people["income"].astype(str)
    people.loc[:9, "income"] = "?"
    content = drafted(write(people))
    assert content["input"]["missing"] == "?"
    assert roles(content)["income"] == "numeric"
    assert content["missing"]["max_rejected"] == 10


@pytest.mark.parametrize(
    "values",
    [
        [f"2001-02-{1 + i % 28:02d}" for i in range(400)],
        [f"{1 + i % 28:02d}.02.1999" for i in range(400)],
        [f"1985{1 + i % 12:02d}15" for i in range(400)],
        ["12:30", "7:15"] * 200,
        [f"{CANARY} {i}" for i in range(400)],
        [f"a text of very many words that tells a story: {'x' * (i % 40)}" for i in range(400)],
        [f"{100000 + 7 * i}" for i in range(400)],
    ],
    ids=["iso", "dotted", "digits", "times", "names", "long texts", "serial"],
)
def test_draft_makes_dates_texts_and_names_identifiers(
    values: list[str], people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    people["extra"] = values
    assert roles(drafted(write(people)))["extra"] == "identifier"


def test_draft_prints_no_values_of_the_file(people: pd.DataFrame, write: Callable[..., Path]) -> None:
    people["sex"] = np.where(people.index % 2, CANARY, "other")
    outcome = draft(str(write(people)))
    assert CANARY not in outcome.summary() + repr(outcome.as_json())


def test_draft_protects_a_region_with_fewer_than_k_records(
    people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    people.loc[:1, "region"] = "east"
    assert roles(drafted(write(people)))["region"] == "nominal"


def test_draft_protects_a_region_that_determines_a_category(
    people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    people["region"] = np.random.default_rng(1).choice(["north", "south", "west"], len(people))
    people["climate"] = people["region"].map({"north": "cold", "south": "mild", "west": "mild"})
    assert roles(drafted(write(people)))["region"] == "nominal"


@pytest.mark.parametrize("repeats", [1, 60])
def test_draft_protects_a_column_that_determines_another(
    repeats: int, people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    random = np.random.default_rng(1)
    people = pd.concat([people.drop(columns="person_id")] * repeats, ignore_index=True)
    branch = random.integers(0, 12, len(people))
    people["section"] = np.array(["a", "b", "c", "d"])[branch // 3]
    people["diagnosis"] = np.where(
        random.random(len(people)) < 0.005, "d0", "d" + pd.Series(branch.astype(str))
    )
    people["religion"] = random.choice(["p", "q", "r"], len(people))
    drafted_roles = roles(drafted(write(people)))
    assert drafted_roles["diagnosis"] == "nominal"
    assert drafted_roles["religion"] == "sensitive"


def test_draft_does_not_publish_two_columns_that_jointly_determine_a_third(
    people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    random = np.random.default_rng(1)
    one, other = random.integers(0, 20, len(people)), random.random(len(people)) < 0.2
    people["group"] = np.array(["a", "b", "c", "d", "e", "f"])[one // 5 + other]
    people["diagnosis"] = "d" + pd.Series(one.astype(str))
    people["religion"] = np.where(other, "p", "q")
    drafted_roles = roles(drafted(write(people)))
    assert "nominal" in (drafted_roles["diagnosis"], drafted_roles["religion"])


def test_draft_uses_parquet_types_and_excludes_nested_columns(tmp_path: Path) -> None:
    n = 200
    table = pa.table(
        {
            "flag": [True, False] * 100,
            "small": pa.array([1, None] * 100, pa.int8()),
            "price": pa.array([Decimal("1.50") * i for i in range(n)], pa.decimal128(10, 2)),
            "day": pa.array(range(n), pa.date32()),
            "kind": pa.array(["p", "q", "q", "p"] * 50).dictionary_encode(),
            "list": [[1]] * n,
            "bytes": [b"x"] * n,
            "digits": [str(i % 3) for i in range(n)],
            "": ["x"] * n,
            "__own": ["x"] * n,
        }
    )
    pq.write_table(table, tmp_path / "odd.parquet")
    content = drafted(tmp_path / "odd.parquet")
    assert roles(content) == {
        "flag": "nominal",
        "small": "nominal",
        "price": "numeric",
        "day": "identifier",
        "kind": "nominal",
        "list": "identifier",
        "bytes": "identifier",
        "digits": "nominal",
    }
    assert content["input"]["unmentioned"] == "drop"


def test_draft_quotes_names_that_toml_requires_to_be_quoted(
    people: pd.DataFrame, write: Callable[..., Path]
) -> None:
    names = ['a "b"', "c.d", "e\\f", "größe", "g'h", "k=1"]
    people.columns = pd.Index(names)
    assert list(drafted(write(people))["variables"]) == names


def test_draft_of_a_folder_equals_that_of_a_glob(people: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    people[:200].to_parquet(tmp_path / "parts" / "a.parquet")
    people[200:].to_parquet(tmp_path / "parts" / "b.parquet")
    for named in ("parts", "parts/*.parquet"):
        assert draft(str(tmp_path / named)).as_json()["records"] == 400


@pytest.mark.parametrize("named", ["people", "people/part=1/*.csv", "./people/part=1/a.csv"])
def test_draft_reads_relative_paths(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    for part in (1, 2):
        (tmp_path / f"people/part={part}").mkdir(parents=True)
        people.to_csv(tmp_path / f"people/part={part}/a.csv", index=False)
    monkeypatch.chdir(tmp_path)
    variables = tomllib.loads(draft(named).summary())["variables"]
    assert set(people.columns) <= set(variables)
    assert ("part" in variables) == (named == "people")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"sex,age\n",
        b"sex,age\nf,31\n",
        b"31,47\n12,13\n14,15\n16,17\n",
        b"sex,sex\nf,m\nf,m\nf,m\n",
        f"{CANARY},west,f\nb,west,m\nc,east,f\nd,east,f\n".encode(),
        f"sex,age\nf,31\nm,{CANARY},3\nm,47\n".encode(),
        b"PAR1 and then nothing",
    ],
    ids=[
        "empty",
        "no record",
        "one record",
        "no header",
        "repeated name",
        "header of numbers",
        "ragged",
        "truncated",
    ],
)
def test_draft_rejects_malformed_files_without_their_values(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(InputRejected) as caught:
        draft(str(path))
    assert CANARY not in str(caught.value)
    with pytest.raises(InputRejected, match="does not exist"):
        draft(str(tmp_path / "absent.csv"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4, unique=True),
    data=st.data(),
)
def test_draft_of_any_parquet_file_is_valid_or_rejected(
    names: list[str], data: st.DataObject, tmp_path: Path
) -> None:
    columns = {}
    for name in names:
        element = data.draw(
            st.sampled_from([st.integers(-5, 5), st.floats(), st.text(max_size=5), st.booleans()])
        )
        columns[name] = data.draw(st.lists(st.none() | element, min_size=4, max_size=4))
    path = tmp_path / "any.parquet"
    try:
        pq.write_table(pa.table(columns), path)
    except (pa.ArrowException, UnicodeError):
        return
    try:
        content = drafted(path)
    except InputRejected:
        return
    assert "other" not in {
        each["role"]
        for name, each in content["variables"].items()
        if len({repr(value) for value in columns[name]}) > 1 and not may_be_weights(columns[name])
    }


def may_be_weights(values: list[object]) -> bool:
    """Return whether the draft may ask if a column has sampling weights: all values are positive."""
    return all(isinstance(value, float) and value > 0 for value in values)
