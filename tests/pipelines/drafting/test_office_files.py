"""Drafts of files as offices have them: right roles, and no identifier that would be averaged."""

import tomllib

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.draft import draft

from tests.pipelines.drafting.office_files import KEYS, office_files

FILES = {file.name: file for file in office_files()}
#: One of each sort; the benchmark drafts all thirty, the files of 200 columns among them.
CHOSEN = [0, 1, 4, 6, 9, 10, 12, 15, 17, 18, 20, 22, 24, 25]


def drafted(file, folder):
    """Role, or kind where a quasi-identifier has one, by variable; and the whole draft."""
    content = tomllib.loads(draft(str(file.write(folder))).summary())
    found = {
        name: each["kind"] if each["role"] == "quasi_identifier" else each["role"]
        for name, each in content["variables"].items()
    }
    return found, content


@pytest.mark.parametrize("name", [list(FILES)[number] for number in CHOSEN])
def test_nine_of_ten_roles_are_right_and_what_names_somebody_is_never_a_quasi_identifier(name, tmp_path):
    file = FILES[name]
    found, _ = drafted(file, tmp_path)
    assert found.keys() == file.truth.keys()
    assert len(file.right(found)) >= 0.9 * len(file.truth)
    assert all(found[each] in KEYS for each, true in file.truth.items() if true == "key")


def test_codes_of_missing_values_are_named_and_say_why(tmp_path):
    file = FILES["05_sentinels"]
    text = draft(str(file.write(tmp_path))).summary()
    variables = tomllib.loads(text)["variables"]
    assert variables["savings"]["missing"] == [-9]
    assert variables["wealth"]["missing"] == [999999]
    assert "-9 taken for missing" in text


def test_a_panel_is_counted_by_its_units(tmp_path):
    found, content = drafted(FILES["19_panel"], tmp_path)
    assert found["utility_number"] == "unit"
    assert content["method"]["unit"] == "unit"


def test_marks_of_decimals_and_thousands_are_told_apart(tmp_path):
    _, content = drafted(FILES["16_thousands_marks"], tmp_path)
    assert (content["input"]["decimal"], content["input"]["thousands"]) == (",", ".")
    _, content = drafted(FILES["13_amounts"], tmp_path)
    assert content["input"]["decimal"] == ","
    assert "thousands" not in content["input"]


def test_every_variable_says_why(tmp_path):
    text = draft(str(FILES["01_float_codes"].write(tmp_path))).summary()
    lines = text[text.index("[variables]") : text.index("[publish]")].splitlines()[1:]
    assert all("    # " in line for line in lines if line)


def test_several_weights_stay_weights_and_the_first_is_named(tmp_path):
    rng = np.random.default_rng(3)
    columns = {"sex": rng.choice(["f", "m"], 300), "income": rng.lognormal(8, 1, 300).round()}
    weights = {name: rng.choice([1.5, 2.0, 3.25], 300) for name in ("weight", "pweight")}
    pd.DataFrame(columns | weights).to_parquet(tmp_path / "survey.parquet", index=False)
    content = tomllib.loads(draft(str(tmp_path / "survey.parquet")).summary())
    assert [content["variables"][name]["role"] for name in weights] == ["weight", "weight"]
    assert content["method"]["weight"] == "weight"
