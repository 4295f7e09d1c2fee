"""Tests of drafts of files in the layouts of published codebooks, compared with the roles of an expert."""

import tomllib
from functools import cache

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.draft import draft
from microguard.schemas.expressions import parse_expression, terms
from microguard.schemas.specification.read import build_specification

from tests.pipelines.drafting.layouts.developed import DEVELOPED, disqualified, eu_silc, is_right, layouts
from tests.pipelines.drafting.layouts.further import FURTHER
from tests.pipelines.drafting.layouts.latest import LATEST

LEAST_RIGHT = 0.95
LAYOUTS = {layout.name: layout for layout in layouts(DEVELOPED)}


def drafted(path, folder):
    """Return the variables of the JSON answer; the text is a valid specification."""
    answer = draft(str(path)).as_json()
    build_specification(tomllib.loads(answer["draft"]), folder)
    return answer["variables"], tomllib.loads(answer["draft"])


@pytest.fixture(scope="module")
def draft_of(tmp_path_factory):
    """Return `drafted` of a developed layout by its name, computed once for all tests of the file."""

    @cache
    def of(name):
        folder = tmp_path_factory.mktemp(name)
        return drafted(LAYOUTS[name].write(folder), folder)

    return of


@pytest.mark.parametrize("name", LAYOUTS)
def test_draft_assigns_the_roles_of_an_expert_and_no_disqualifying_role(name, draft_of):
    layout = LAYOUTS[name]
    variables, content = draft_of(name)
    wrong = [
        column
        for column, expert in layout.expert.items()
        if not is_right(expert, variables[column]["role"], variables[column]["kind"])
    ]
    assert len(wrong) <= (1 - LEAST_RIGHT) * len(layout.expert), wrong
    for column, expert in layout.expert.items():
        assert disqualified(expert, variables[column]["role"], variables[column]["kind"]) is None, column
    roles = [line["role"] for line in content["variables"].values()]
    assert 4 <= roles.count("quasi_identifier") <= 8
    assert {each["confidence"] for each in variables.values()} <= {"sure", "likely", "unsure"}
    assert all(each["why"] for each in variables.values())


def test_draft_does_not_treat_mostly_zero_amounts_as_household_keys(tmp_path):
    (layout,) = [each for each in layouts(FURTHER) if each.name == "cps_asec"]
    variables, _ = drafted(layout.write(tmp_path), tmp_path)
    for name in ("WSAL_VAL", "INT_VAL", "DIV_VAL"):
        assert variables[name]["kind"] == "numeric", variables[name]["why"]


def test_draft_leaves_out_coarser_levels_of_protected_codes(tmp_path):
    """Published coarser levels would reveal changes that protection makes in the code."""
    rng, frame = np.random.default_rng(1), people(3_000)
    frame["isco4"] = rng.choice(rng.choice(9_000, 60, replace=False) + 1_000, 3_000)
    frame["isco2"], frame["isco1"] = frame["isco4"] // 100, frame["isco4"] // 1_000
    frame["chapter"] = np.where(frame["isco1"] < 5, "office", "field")
    frame.to_csv(tmp_path / "d.csv", index=False)
    found = drafted(tmp_path / "d.csv", tmp_path)[0]
    assert (found["isco4"]["role"], found["isco4"]["kind"]) == ("quasi_identifier", "nominal")
    for name in ("isco2", "isco1", "chapter"):
        assert found[name]["role"] == "identifier"
        assert "a coarser level of isco4" in found[name]["why"]
    frame["isco2"] = rng.permutation(frame["isco2"])
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert drafted(tmp_path / "d.csv", tmp_path)[0]["isco2"]["role"] != "identifier"


def test_columns_determined_by_a_sampling_unit_number_are_no_coarser_levels(tmp_path):
    rng, frame = np.random.default_rng(1), people(3_000)
    frame["HH1"] = rng.integers(1, 151, 3_000)
    frame["area"] = rng.integers(1, 3, 151)[frame["HH1"]]
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert "coarser level" not in drafted(tmp_path / "d.csv", tmp_path)[0]["area"]["why"]


def test_draft_marks_few_positive_numbers_with_decimals_as_possible_weights(tmp_path):
    strata = np.random.default_rng(1).choice([1.54, 22.1, 103.87, 260.41], 400)
    people().assign(S006=strata).to_csv(tmp_path / "d.csv", index=False)
    found = drafted(tmp_path / "d.csv", tmp_path)[0]["S006"]
    assert (found["role"], found["confidence"], found["alternative"]["role"]) == ("other", "unsure", "weight")


def test_draft_does_not_treat_amounts_with_many_missing_values_as_cluster_keys(tmp_path):
    (layout,) = [each for each in layouts(LATEST) if each.name == "time_use"]
    variables, _ = drafted(layout.write(tmp_path), tmp_path)
    assert variables["t050101"]["kind"] == "numeric"


def test_draft_of_rand_hie_recomputes_logarithms_and_sums(draft_of):
    _, content = draft_of("rand_hie")
    assert content["derived"] == {
        "lfam": "log(num)",
        "lnum": "log(num)",
        "meddol": "outpdol + drugdol + suppdol + inpdol",
    }


def test_draft_keeps_minus_one_of_newborn_children_and_marks_it_as_possibly_missing(tmp_path):
    frame, _ = eu_silc(np.random.default_rng(1), 1_000)
    frame.to_csv(tmp_path / "silc.csv", index=False)
    text = draft(str(tmp_path / "silc.csv")).summary()
    assert "missing" not in tomllib.loads(text)["variables"]["age"]
    assert any(line.startswith("# age = ") and "[-1]" in line for line in text.splitlines())


def test_draft_of_a_layout_does_not_depend_on_the_order_of_records(tmp_path):
    frame = eu_silc(np.random.default_rng(1), 600)[0]
    texts = []
    for seed in (None, 5):
        ordered = frame if seed is None else frame.sample(frac=1, random_state=seed)
        ordered.to_csv(tmp_path / "silc.csv", index=False)
        texts.append(draft(str(tmp_path / "silc.csv")).summary())
    assert texts[0] == texts[1]


def people(n=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 80, n),
            "rent": rng.gamma(9, 100, n).round(2),
        }
    )


def test_draft_treats_a_key_with_a_duplicate_as_the_unit_and_reports_the_duplicate(tmp_path):
    key = np.random.default_rng(1).permutation(400) + 1_000
    key[3] = key[7]
    people().assign(person_id=key).to_csv(tmp_path / "d.csv", index=False)
    text = draft(str(tmp_path / "d.csv")).summary()
    content = tomllib.loads(text)
    assert content["variables"]["person_id"]["role"] == "unit"
    assert content["method"]["unit"] == "unit"
    assert "1 record(s) repeat a value" in text


@pytest.mark.parametrize("name", ["PERSNR", "pernum", "persno"])
def test_draft_treats_a_person_number_without_repetition_as_the_unit(name, tmp_path):
    people().assign(**{name: np.arange(400) + 10_001}).to_csv(tmp_path / "d.csv", index=False)
    assert drafted(tmp_path / "d.csv", tmp_path)[1]["variables"][name]["role"] == "unit"


@pytest.mark.parametrize("name", ["region", "municipality", "kommune", "nuts3", "country"])
def test_draft_never_averages_numbers_of_a_region_by_name(name, tmp_path):
    codes = np.random.default_rng(1).integers(100, 460, 60)
    people(600).assign(**{name: np.resize(codes, 600)}).to_csv(tmp_path / "d.csv", index=False)
    line = drafted(tmp_path / "d.csv", tmp_path)[1]["variables"][name]
    assert line["role"] == "region" or line.get("kind") == "nominal"


@pytest.mark.parametrize("name", ["hid", "ori_hid", "hhid", "HHNR", "db030"])
def test_draft_recognises_households_by_name(name, tmp_path):
    people().assign(**{name: np.arange(400) // 2 + 7}).to_csv(tmp_path / "d.csv", index=False)
    assert drafted(tmp_path / "d.csv", tmp_path)[1]["variables"][name]["role"] == "household"


def test_draft_keeps_a_category_of_few_long_texts(tmp_path):
    species = np.repeat(["Adelie Penguin (Pygoscelis adeliae)", "Gentoo penguin (Pygoscelis papua) x"], 200)
    people().assign(Species=species).to_csv(tmp_path / "d.csv", index=False)
    assert drafted(tmp_path / "d.csv", tmp_path)[1]["variables"]["Species"]["kind"] == "nominal"


@pytest.mark.parametrize("name", ["class", "ﬁn", 'a"b', "rent\nsex = { role = 'other' } #"])
def test_draft_quotes_names_of_terms_in_expressions_and_comments(name, tmp_path):
    frame = people().rename(columns={"rent": name})
    frame.assign(log_rent=np.log(frame[name])).to_parquet(tmp_path / "d.parquet", index=False)
    _, content = drafted(tmp_path / "d.parquet", tmp_path)
    assert list(content["variables"]) == ["sex", "age", name, "log_rent"]
    assert terms(parse_expression(content["derived"]["log_rent"])) == (name,)


@pytest.mark.parametrize("name", ["pspwght", "W_FSTUWT", "factor_elevacion", "V005_wgt"])
def test_draft_reads_weights_by_names_of_other_codebooks(name, tmp_path):
    weight = np.random.default_rng(1).lognormal(0, 0.4, 400).round(3)
    people().assign(**{name: weight}).to_csv(tmp_path / "d.csv", index=False)
    assert drafted(tmp_path / "d.csv", tmp_path)[1]["variables"][name]["role"] == "weight"


def calibrated(frame):
    """Return weights without an informative name that sum to whole numbers by sex."""
    raw = np.random.default_rng(1).uniform(80, 900, len(frame))
    totals = frame.groupby("sex")["age"].transform("size") * 431
    return (raw / pd.Series(raw).groupby(frame["sex"]).transform("sum") * totals).round(8)


def test_draft_reads_a_weight_without_a_name_by_its_calibration(tmp_path):
    frame = people()
    frame.assign(q7=calibrated(frame)).to_csv(tmp_path / "d.csv", index=False)
    found = drafted(tmp_path / "d.csv", tmp_path)[0]["q7"]
    assert (found["role"], found["confidence"]) == ("weight", "unsure")
    assert "whole sums by group" in found["why"]


def test_draft_marks_possible_weights_and_never_averages_them(tmp_path):
    frame = people()
    frame.assign(q7=calibrated(frame) * 1.0137).to_csv(tmp_path / "d.csv", index=False)
    found = drafted(tmp_path / "d.csv", tmp_path)[0]["q7"]
    assert (found["role"], found["confidence"]) == ("other", "unsure")
    assert found["alternative"]["role"] == "weight"


def test_draft_does_not_read_a_body_weight_as_a_sampling_weight(tmp_path):
    rng = np.random.default_rng(1)
    measures = {"BMXWT": rng.normal(80, 15, 400).round(1), "BMXBMI": rng.normal(26, 4, 400).round(1)}
    people().assign(**measures, WTINT2YR=rng.uniform(3_000, 9_000, 400).round(6)).to_csv(
        tmp_path / "d.csv", index=False
    )
    found = drafted(tmp_path / "d.csv", tmp_path)[0]
    assert found["BMXWT"]["role"] != "weight"
    assert found["WTINT2YR"]["role"] == "weight"


def test_draft_counts_the_units_of_a_panel_whose_year_column_has_no_informative_name(tmp_path):
    unit, wave = np.repeat(np.arange(100), 4) * 100 + 601, np.tile(np.arange(2018, 2022), 100)
    people().assign(pid=unit, t=wave).to_csv(tmp_path / "d.csv", index=False)
    assert drafted(tmp_path / "d.csv", tmp_path)[1]["variables"]["pid"]["role"] == "unit"


def test_draft_keeps_two_amounts_of_the_same_households(tmp_path):
    rng, home = np.random.default_rng(1), np.arange(400) // 2
    amounts = {name: rng.gamma(9, 100, 200).round(2)[home] for name in ("food", "fuel")}
    people().assign(hhid=home + 7, **amounts).to_csv(tmp_path / "d.csv", index=False)
    found = drafted(tmp_path / "d.csv", tmp_path)[0]
    assert not any("duplicate" in found[name]["why"] for name in amounts)


def test_draft_reads_padded_numbers_as_amounts_by_name_or_marks_them_as_possible_codes(tmp_path):
    """Fields of fixed width have leading zeros, whether they are codes or amounts."""
    rng, frame = np.random.default_rng(3), people(3_000)
    rounded = (rng.lognormal(8, 0.5, len(frame)) / 100).round() * 100
    padded = {"v7": (6, rounded), "salary": (6, rounded[::-1]), "age": (2, rng.integers(0, 95, len(frame)))}
    for name, (width, values) in padded.items():
        frame[name] = [f"{int(value):0{width}d}" for value in values]
    frame.to_csv(tmp_path / "d.csv", index=False)
    found = drafted(tmp_path / "d.csv", tmp_path)[0]
    assert {found[name]["kind"] for name in ("salary", "age")} == {"numeric"}
    assert (found["v7"]["kind"], found["v7"]["confidence"]) == ("nominal", "unsure")
    assert found["v7"]["alternative"]["kind"] == "numeric"
