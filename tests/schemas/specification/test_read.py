"""Tests of reading a specification: defaults, paths, overrides, and properties of its variables."""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification, read_specification
from pydantic import ValidationError

from tests.schemas.sound import SOUND

EXAMPLES = sorted((Path(__file__).parents[3] / "schemas" / "examples").glob("*.toml"))


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "release.toml"
    path.write_text(SOUND)
    return path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_specification_is_valid(path: Path) -> None:
    specification = read_specification(path)
    assert specification.quasi_identifiers or specification.table is not None


def test_omitted_sections_have_their_defaults(sound: Path) -> None:
    specification = read_specification(sound)
    assert specification.method.name == "microaggregation"
    assert specification.blocking.small_regions == "fail"
    assert specification.missing.numeric == "reject"
    assert specification.quality.max_information_loss is None
    assert specification.max_block_records == 100_000
    assert specification.publish.disclose == ()


def test_variables_are_selected_by_role_and_kind(sound: Path) -> None:
    specification = read_specification(sound)
    assert specification.nominal == ("sex", "education")
    assert specification.numeric == ("income",)
    assert specification.kinds() == "mixed"
    assert (specification.unit, specification.region, specification.weight) == (
        "person_id",
        "region",
        "weight",
    )
    assert specification.published == (
        "region",
        "sex",
        "education",
        "income",
        "diagnosis",
        "weight",
        "hours",
    )
    assert specification.published_as_it_is == ("region", "diagnosis", "weight", "hours")


def test_paths_are_relative_to_the_specification_in_any_working_folder(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    specification = read_specification(sound)
    assert specification.public_area == str(tmp_path / "lake")
    assert specification.resolve("s3a://bucket/lake") == "s3a://bucket/lake"


def test_control_tables_never_cross_groups(sound: Path) -> None:
    national, regional = (("sex",), ("education",), ("sex", "education")), ("region", "sex")
    assert read_specification(sound).control_tables == (*national, regional, ("region", "education"))
    without = ["method.control_tables.region_dimension=0"]
    assert read_specification(sound, without).control_tables == national
    named = ['method.control_tables.tables=[["sex", "region"], ["education"]]']
    listed = read_specification(sound, named).control_tables
    assert listed == (("sex", "region"), ("education",), ("region", "education"))
    groups = 'groups=[{name="a", variables=["sex", "income"]}, {name="b", variables=["education"]}]'
    apart = (("sex",), ("education",), ("region", "sex"), ("region", "education"))
    assert read_specification(sound, [groups]).control_tables == apart


def test_bounds_of_control_tables_are_allowed_with_mixed_variables(sound: Path) -> None:
    specification = read_specification(sound, ["method.control_tables.max_absolute_error={1=6, 2=9}"])
    assert specification.kinds() == "mixed"
    assert specification.method.control_tables.max_absolute_error == {1: 6, 2: 9}


def test_override_can_set_any_key_and_the_last_override_applies(sound: Path) -> None:
    overrides = [
        "release.k=4",
        "method.effort=fast",
        "release.k=5",
        "release.name=2026-11-21",
        'variables."working hours".role=other',
        "quality.dominance={n=1, k=85}",
    ]
    specification = read_specification(sound, overrides)
    assert specification.release.k == 5
    assert specification.release.name == "2026-11-21"
    assert specification.method.effort == "fast"
    assert "working hours" in specification.variables
    assert specification.quality.dominance is not None


@pytest.mark.parametrize("override", ["release.k", "=3", "release k=3", "", "release.k=3\n[x]"])
def test_malformed_override_is_refused(override: str, sound: Path) -> None:
    with pytest.raises(SpecificationError, match="--set"):
        read_specification(sound, [override])


def test_override_of_an_unknown_key_is_refused(sound: Path) -> None:
    with pytest.raises(SpecificationError, match="unknown key"):
        read_specification(sound, ["method.speed=9"])


def test_specification_is_immutable_and_can_be_pickled(sound: Path) -> None:
    specification = read_specification(sound)
    with pytest.raises(ValidationError):
        specification.release.k = 2  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(specification))
    assert copy == specification
    assert copy.folder == specification.folder


def test_path_with_a_nul_is_refused(sound: Path) -> None:
    with pytest.raises(SpecificationError, match="NUL"):
        read_specification(sound, ['input.path="a\\u0000b"'])


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"x = 1"])
def test_file_that_is_no_specification_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_bytes(content)
    with pytest.raises(SpecificationError):
        read_specification(path)
    with pytest.raises(SpecificationError, match="no specification"):
        read_specification(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    "content", [b"id;age\n1;CANARY\n", b"PAR1\xff\xfe", None], ids=["csv", "parquet", "folder"]
)
def test_file_of_records_in_place_of_a_specification_is_refused_with_the_draft_command(
    content: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "persons.csv"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(
        SpecificationError, match=r"microguard draft .*persons\.csv > release\.toml"
    ) as refusal:
        read_specification(path)
    assert "CANARY" not in str(refusal.value)


def test_public_area_is_a_folder_or_an_object_store_with_conditional_writes(sound: Path) -> None:
    assert read_specification(sound, ["publish.path=s3://bucket/lake"]).public_area == "s3://bucket/lake"
    for key in ("path", "evidence", "ledger"):
        for address in ("http://host/lake", "s3a://bucket/lake"):
            with pytest.raises(SpecificationError, match=rf"\[publish\] {key}"):
                read_specification(sound, [f"publish.{key}={address}"])
    for key in ("evidence", "ledger"):
        with pytest.raises(SpecificationError, match=rf"\[publish\] {key}"):
            read_specification(sound, ["publish.path=s3://bucket/lake", f"publish.{key}=s3://bucket/lake/x"])
    assert read_specification(sound, ["publish.evidence=gs://own/x"]).evidence_area == "gs://own/x"
    assert read_specification(sound, ["publish.path=s3://bucket/lake", "publish.format=delta"])
    with pytest.raises(SpecificationError, match=r"\[publish\] format: .* iceberg with publish.catalog"):
        read_specification(sound, ["publish.path=s3://bucket/lake", "publish.format=iceberg"])


def test_public_area_inside_the_evidence_area_is_refused(sound: Path) -> None:
    with pytest.raises(SpecificationError, match=r"\[publish\] path: .* outside the evidence area"):
        read_specification(sound, ["publish.path=evidence/lake", "publish.evidence=evidence"])


def test_input_below_the_public_area_is_refused_with_any_scheme(sound: Path) -> None:
    places = ["publish.path=s3://bucket/lake", "input.path=s3a://bucket/lake/persons"]
    with pytest.raises(SpecificationError, match="outside the public area"):
        read_specification(sound, places)


@pytest.mark.parametrize("inside", ["", "/deeper/inside"])
def test_evidence_and_ledger_in_the_public_area_of_another_specification_are_refused(
    sound: Path, tmp_path: Path, inside: str
) -> None:
    (tmp_path / "open" / "deeper").mkdir(parents=True)
    for key in ("evidence", "ledger"):
        place = [f"publish.{key}=open{inside}"]
        assert read_specification(sound, place).publish
        (tmp_path / "open" / "current.json").write_text("{}")
        with pytest.raises(SpecificationError, match=rf"\[publish\] {key}.*outside every public area"):
            read_specification(sound, place)
        (tmp_path / "open" / "current.json").unlink()


@pytest.mark.parametrize("path", ["agency/evidence", "agency/evidence/lake", "agency", "."])
def test_public_area_in_or_around_the_evidence_of_another_specification_is_refused(
    sound: Path, tmp_path: Path, path: str
) -> None:
    place = [f"publish.path={path}", "publish.evidence=/elsewhere", "input.path=/data"]
    assert read_specification(sound, place).publish
    (tmp_path / "agency" / "evidence").mkdir(parents=True)
    (tmp_path / "agency" / "evidence" / "ledger.jsonl").touch()
    with pytest.raises(SpecificationError, match=r"\[publish\] path.*outside every evidence area"):
        read_specification(sound, place)


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.sampled_from([10**30, 10**400])
    | st.floats()
    | st.text(max_size=4)
)
_keys = st.sampled_from(
    [
        "release",
        "input",
        "variables",
        "method",
        "publish",
        "groups",
        "quality",
        "k",
        "name",
        "path",
        "sex",
        "role",
        "max_dimension",
        "control_tables",
        "max_absolute_error",
        "",
    ]
)
_anything = st.recursive(
    _scalars | st.sampled_from(["nominal", "numeric", "quasi_identifier", "region"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.dictionaries(_keys, _anything, max_size=5), section=_keys)
def test_specification_with_any_content_is_valid_or_raises_a_specification_error(
    noise: dict[str, Any], section: str, sound: Path
) -> None:
    content = read_specification(sound).model_dump(exclude_none=True, mode="json")
    for changed in (noise, content | noise, content | {section: noise}):
        with suppress(SpecificationError):
            assert isinstance(build_specification(changed, sound.parent), Specification)


HOSTILE = {
    "an integer of thousands of digits": ("k = 3", f"k = {'9' * 5000}"),
    "an integer beyond every float": ("k = 3", f"k = {10**400}"),
    "lists nested deeply": ("k = 3", f"k = {'[' * 5000}{']' * 5000}"),
    "tables nested deeply": ("k = 3", "k" + ".a" * 1000 + " = 3"),
    "an empty name beside another fault": ('hours = { role = "other" }', '"" = { role = "othr" }'),
    "tables of a billion dimensions": (
        'effort = "standard"',
        "control_tables = { max_dimension = 1000000000, max_absolute_error = { 1 = 5 } }",
    ),
    "a bound of a billion dimensions": (
        'effort = "standard"',
        f"control_tables.max_absolute_error = {{ {'9' * 5000} = 5 }}",
    ),
    "control characters in a key": ("hours = { role", '"a\\u001b[31m\\u202eb" = { role = 7, x'),
    "a key of 70,000 letters": ("k = 3", f"k = 3\n{'a' * 70_000} = 1"),
    "a value of 70,000 letters": ('effort = "standard"', f'effort = "{"a" * 70_000}"'),
    "a seed beyond 64 bits": ("seed = 2026", f"seed = {2**63}"),
}


@pytest.mark.parametrize(("old", "new"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_specification_is_refused_with_a_readable_message(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND.replace(old, new, 1))
    with pytest.raises(SpecificationError) as caught:
        read_specification(path)
    message = str(caught.value)
    assert all(line.isprintable() for line in message.splitlines())
    assert len(message) < 1000


@pytest.mark.parametrize("area", ["path", "evidence"])
def test_area_path_that_cannot_be_a_folder_is_refused(area: str, sound: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    for place in ("file", "file/inside", "dangling"):
        with pytest.raises(SpecificationError, match="a folder"):
            read_specification(sound, [f"publish.{area}={place}"])
    assert read_specification(sound, [f"publish.{area}=new/folder"])
