"""Tests that the reference of the specification equals that of the models."""

from __future__ import annotations

from microguard.schemas.methods import ALGORITHMS
from microguard.schemas.specification.json_schema import json_schema
from microguard.schemas.specification.reference import README, text


def test_reference_page_is_current() -> None:
    message = "run `python -m microguard.schemas.specification.reference`"
    assert README.read_text(encoding="utf-8") == text(), message


def test_reference_page_contains_every_section_key_and_algorithm() -> None:
    page = text()
    for definition in json_schema()["$defs"].values():
        for key in definition["properties"]:
            assert f"| `{key}` |" in page
    for rows in ALGORITHMS.values():
        for name in rows:
            assert f"| `{name}` |" in page
