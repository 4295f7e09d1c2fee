"""The drafted [table]: valid once its marks are removed, with the hierarchies that the codes show."""

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


def unmarked(path: Path) -> dict[str, Any]:
    """The draft of a file with its table, which must be valid."""
    text = draft(str(path)).summary()
    head, mark, section = text.partition("# [table]")
    content = tomllib.loads(head + re.sub(r"^# ", "", mark + section, flags=re.MULTILINE))
    build_specification(content, path.parent)
    return content["table"]


@pytest.mark.reference
def test_hierarchies_are_found_where_codes_nest() -> None:
    table = unmarked(reference_file("business_survey.csv"))
    assert table["hierarchies"] == [["a10", "a21", "a88"], ["nuts1", "nuts2", "nuts3"]]
    assert table["tables"] == [["a88", "nuts3"]]
    assert (table["value"], table["weighted"]) == ("turnover", True)


def test_a_file_without_numbers_is_counted(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": ["f", "m"] * 60, "status": ["x", "x", "y", "y", "z", "z"] * 20})
    frame.to_csv(tmp_path / "persons.csv", index=False)
    table = unmarked(tmp_path / "persons.csv")
    assert table["kind"] == "frequency"
    assert table["tables"] == [["sex", "status"]]
