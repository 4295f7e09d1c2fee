"""Tests of the published JSON schema: it equals that of the models, and editors can use it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from microguard.schemas.specification.json_schema import PUBLISHED, text

from tests.schemas.sound import SOUND


def test_published_json_schema_is_current() -> None:
    message = "run `python -m microguard.schemas.specification.json_schema`"
    assert PUBLISHED.read_text(encoding="utf-8") == text(), message


def test_every_key_of_the_json_schema_has_a_description() -> None:
    definitions = json.loads(text())["$defs"]
    bare = [
        (name, key)
        for name, definition in definitions.items()
        for key, entry in definition["properties"].items()
        if "description" not in entry
    ]
    assert bare == []


def test_json_schema_accepts_the_examples_and_refuses_an_unknown_key() -> None:
    schema = json.loads(text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for path in (Path(__file__).parents[3] / "schemas" / "examples").glob("*.toml"):
        jsonschema.validate(tomllib.loads(path.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(SOUND) | {"speed": 1}, schema)
