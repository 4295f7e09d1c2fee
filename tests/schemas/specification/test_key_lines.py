"""Tests of line numbers of keys: each equals the line number in an editor."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.key_lines import key_lines, line_of
from microguard.schemas.specification.read import read_specification

from tests.schemas.sound import SOUND

TEXT = '''\
# [release] in a comment
[release]
name = "a # [method]"   # k = 9
"quoted.key" = """
[input]
k = 7
"""
dotted . part = [
  "]",  # not the end ]
  { k = 5 },
]
k = 3

[[groups]]
name = 'one'
[[groups]]
name = 'two'
[variables.income]
role = "other"
'''


def test_key_lines_skips_comments_strings_and_lists() -> None:
    assert key_lines(TEXT) == {
        ("release",): 2,
        ("release", "name"): 3,
        ("release", "quoted.key"): 4,
        ("release", "dotted", "part"): 8,
        ("release", "k"): 12,
        ("groups", 0): 14,
        ("groups", 0, "name"): 15,
        ("groups", 1): 16,
        ("groups", 1, "name"): 17,
        ("variables", "income"): 18,
        ("variables", "income", "role"): 19,
    }


def test_line_of_a_key_within_a_value_is_the_line_of_the_value() -> None:
    lines = key_lines(TEXT)
    assert line_of(("release", "dotted", "part", 1, "k"), lines) == 8
    assert line_of(("release", "absent"), lines) == 2
    assert line_of(("absent",), lines) is None


@given(st.text("ab=[]{}\"'#\\\n.", max_size=40))
def test_key_lines_finds_every_key_of_valid_toml(text: str) -> None:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    tops = {key[0] for key in key_lines(text) if key}
    assert set(content) == tops


def test_eight_misspelt_keys_are_reported_with_line_number_and_nearest_key(tmp_path: Path) -> None:
    misspelt = {
        "name =": ("nmae =", "name"), "seed =": ("sead =", "seed"), "format =": ("fromat =", "format"),
        "effort =": ("efort =", "effort"), 'evidence = "': ('evidense = "', "evidence"),
        'path = "lake"': ('pfad = "lake"', "path"), 'role = "unit"': ('roll = "unit"', "role"),
        'kind = "numeric"': ('kiind = "numeric"', "kind"),
    }  # fmt: skip
    text = SOUND
    for old, (new, _) in misspelt.items():
        text = text.replace(old, new, 1)
    path = tmp_path / "release.toml"
    path.write_text(text)
    with pytest.raises(SpecificationError) as caught:
        read_specification(path)
    lines = str(caught.value).splitlines()[1:]
    for new, near in misspelt.values():
        number = next(n for n, line in enumerate(text.splitlines(), 1) if new in line)
        word = new.split(" =")[0]
        (found,) = [line for line in lines if f"{word}: unknown key" in line]
        assert found.startswith(f"  {path}:{number}: ")
        assert f'did you mean "{near}"?' in found


def test_faulty_override_is_reported_at_set_and_not_at_a_line(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND)
    with pytest.raises(SpecificationError, match=r"--set: \[release\] k: found 1"):
        read_specification(path, ["release.k=1"])


def test_toml_that_cannot_be_parsed_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(SOUND.replace("k = 3", "k = "))
    with pytest.raises(SpecificationError, match=r"release\.toml:3 is not valid TOML"):
        read_specification(path)
