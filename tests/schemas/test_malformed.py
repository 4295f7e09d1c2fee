"""Tests that a malformed specification is refused in one paragraph naming key, found and allowed value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from microguard.jobs.command import run_command
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.read import read_specification

from tests.schemas.malformed import MALFORMED, Malformed
from tests.schemas.sound import SOUND


def test_sound_specification_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "sound.toml"
    path.write_text(SOUND)
    assert read_specification(path).quasi_identifiers == ("sex", "education", "income")


def test_at_least_forty_malformed_specifications_with_distinct_names_exist() -> None:
    assert len({case.name for case in MALFORMED}) == len(MALFORMED) >= 40


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case.name)
def test_malformed_specification_is_refused_in_one_paragraph(
    case: Malformed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "release.toml"
    path.write_text(case.text)
    assert run_command(["protect", str(path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert "\n\n" not in err.strip()
    reason = json.loads(out.splitlines()[-1])["reason"]
    assert reason == " ".join(err.split())
    for text in case.named:
        assert text in reason


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case.name)
def test_malformed_specification_writes_nothing(case: Malformed, tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(case.text)
    with pytest.raises(SpecificationError):
        read_specification(path)
    assert list(tmp_path.iterdir()) == [path]


def test_all_faults_of_a_specification_are_in_one_report(tmp_path: Path) -> None:
    text = SOUND.replace("k = 3", "k = 1").replace('"standard"', '"fats"').replace('"evidence"', '"lake/x"')
    text = text.replace('role = "weight"', 'role = "wieght"')
    path = tmp_path / "release.toml"
    path.write_text(text)
    with pytest.raises(SpecificationError) as caught:
        read_specification(path)
    assert len(caught.value.faults) == 4
    for key in ("[release] k", "[method] effort", "[publish] evidence", "[variables] weight.role"):
        assert key in str(caught.value)


def test_faulty_key_is_reported_once_without_its_consequences(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND.replace('"quasi_identifier"', '"quasi"'))
    with pytest.raises(SpecificationError) as caught:
        read_specification(path)
    assert len(caught.value.faults) == 3
    assert all("role" in fault for fault in caught.value.faults)
