"""Tests of the drafted [table] section: valid without comment marks, with the hierarchies of nested codes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from microguard.pipelines.draft import draft
from microguard.schemas.specification.read import build_specification

from tests.reference import reference_file


def uncommented(path: Path) -> dict[str, Any]:
    """Return the draft of a file with its table section uncommented, after checking that it is valid."""
    text = draft(str(path)).summary()
    head, mark, section = text.partition("# [table]")
    content = tomllib.loads(head + re.sub(r"^# ", "", mark + section, flags=re.MULTILINE))
    build_specification(content, path.parent)
    return content["table"]


@pytest.mark.reference
def test_draft_table_finds_hierarchies_of_nested_codes() -> None:
    table = uncommented(reference_file("business_survey.csv"))
    assert table["hierarchies"] == [["a10", "a21", "a88"], ["nuts1", "nuts2", "nuts3"]]
    assert table["tables"] == [["a88", "nuts3"]]
    assert (table["value"], table["weighted"]) == ("turnover", True)


def test_draft_table_of_a_file_without_numbers_is_a_frequency_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": ["f", "m"] * 60, "status": ["x", "x", "y", "y", "z", "z"] * 20})
    frame.to_csv(tmp_path / "persons.csv", index=False)
    table = uncommented(tmp_path / "persons.csv")
    assert table["kind"] == "frequency"
    assert table["tables"] == [["sex", "status"]]
