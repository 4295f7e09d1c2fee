"""Tests of drafts of files like those of statistical offices: correct roles, and no key that would be
averaged.
"""

import tomllib

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.draft import draft

from tests.pipelines.drafting.office_files import KEYS, office_files

FILES = {file.name: file for file in office_files()}
#: One file of each type. The benchmark drafts all thirty files, including those with 200 columns.
CHOSEN = [0, 1, 4, 6, 9, 10, 12, 15, 17, 18, 20, 22, 24, 25]


def drafted(file, folder):
    """Return the role of each variable (or the kind of a quasi-identifier) and the draft."""
    content = tomllib.loads(draft(str(file.write(folder))).summary())
    drafted_roles = {
        name: each["kind"] if each["role"] == "quasi_identifier" else each["role"]
        for name, each in content["variables"].items()
    }
    return drafted_roles, content


@pytest.mark.parametrize("name", [list(FILES)[number] for number in CHOSEN])
def test_draft_assigns_nine_of_ten_correct_roles_and_never_makes_keys_quasi_identifiers(name, tmp_path):
    file = FILES[name]
    drafted_roles, _ = drafted(file, tmp_path)
    assert drafted_roles.keys() == file.truth.keys()
    assert len(file.right(drafted_roles)) >= 0.9 * len(file.truth)
    assert all(drafted_roles[each] in KEYS for each, true in file.truth.items() if true == "key")


def test_draft_lists_codes_of_missing_values_with_the_reason(tmp_path):
    file = FILES["05_sentinels"]
    text = draft(str(file.write(tmp_path))).summary()
    variables = tomllib.loads(text)["variables"]
    assert variables["savings"]["missing"] == [-9]
    assert variables["wealth"]["missing"] == [999999]
    assert "-9 treated as missing" in text


def test_draft_counts_units_of_a_panel(tmp_path):
    drafted_roles, content = drafted(FILES["19_panel"], tmp_path)
    assert drafted_roles["utility_number"] == "unit"
    assert content["method"]["unit"] == "unit"


def test_draft_distinguishes_decimal_marks_from_thousands_separators(tmp_path):
    _, content = drafted(FILES["16_thousands_marks"], tmp_path)
    assert (content["input"]["decimal"], content["input"]["thousands"]) == (",", ".")
    _, content = drafted(FILES["13_amounts"], tmp_path)
    assert content["input"]["decimal"] == ","
    assert "thousands" not in content["input"]


def test_draft_gives_a_reason_for_every_variable(tmp_path):
    text = draft(str(FILES["01_float_codes"].write(tmp_path))).summary()
    lines = text[text.index("[variables]") : text.index("[publish]")].splitlines()[1:]
    assert all("    # " in line for line in lines if line)


def test_draft_keeps_several_weights_and_names_the_first(tmp_path):
    rng = np.random.default_rng(3)
    columns = {"sex": rng.choice(["f", "m"], 300), "income": rng.lognormal(8, 1, 300).round()}
    weights = {name: rng.choice([1.5, 2.0, 3.25], 300) for name in ("weight", "pweight")}
    pd.DataFrame(columns | weights).to_parquet(tmp_path / "survey.parquet", index=False)
    content = tomllib.loads(draft(str(tmp_path / "survey.parquet")).summary())
    assert [content["variables"][name]["role"] for name in weights] == ["weight", "weight"]
    assert content["method"]["weight"] == "weight"


def test_draft_offers_an_amount_of_households_as_a_key_variable(tmp_path):
    """An income of the household has one value per household, like the household key."""
    rng = np.random.default_rng(5)
    home = np.repeat(np.arange(300), rng.integers(1, 5, 300))
    pd.DataFrame(
        {
            "hh_nr": home + 100_001,
            "region": rng.choice(["AT1", "AT2"], 300)[home],
            "sex": rng.choice([1, 2], len(home)),
            "age": rng.integers(0, 95, len(home)),
            "eqinc": np.round(rng.lognormal(10, 0.5, 300)).astype(int)[home],
        }
    ).to_csv(tmp_path / "silc.csv", index=False)
    lines = draft(str(tmp_path / "silc.csv")).summary().splitlines()
    guess, instead = (line for line in lines if line.removeprefix("# ").startswith("eqinc ="))
    assert 'role = "identifier"' in guess
    assert 'role = "quasi_identifier", kind = "numeric"' in instead
