"""Tests of the trial of a draft: its proposals depend on the records and not on their order."""

import tomllib

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.draft import draft
from microguard.schemas.specification.read import build_specification


def drafted(frame, folder):
    """Draft a frame, and return the JSON object and the parsed specification."""
    path = folder / "records.parquet"
    frame.to_parquet(path)
    outcome = draft(str(path))
    content = tomllib.loads(outcome.summary())
    build_specification(content, folder)
    return outcome.as_json(), content


def people(n=600, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float) + 0.5,
            "income": rng.gamma(2, 1000, n).round(2),
            "diagnosis": rng.choice(["well", "ill"], n),
        }
    )


def test_trial_proposes_the_fewest_exceeded_limits_and_then_the_least_loss(tmp_path):
    answer, content = drafted(people(seed=3), tmp_path)
    by = {(row["k"], row["choice"][-1]): row for row in answer["trial"]["rows"]}
    assert list(by) == [(k, values) for k in (3, 5, 10) for values in "12"]
    assert by[3, "1"]["homogeneous"] > by[5, "1"]["homogeneous"] > 0.05 >= by[10, "1"]["homogeneous"]
    assert by[3, "1"]["broken"] == ("homogeneous of diagnosis",)
    safe = {tried: row["information_loss"] for tried, row in by.items() if not row["broken"]}
    assert set(safe) == {(10, "1"), *((k, "2") for k in (3, 5, 10))}
    assert min(safe, key=safe.get) == (3, "2")
    assert by[3, "2"]["homogeneous"] == 0
    assert content["release"]["k"] == answer["k"] == 3
    assert content["method"]["min_diversity"] == answer["trial"]["min_diversity"] == 2
    assert safe[3, "2"] < content["quality"]["max_information_loss"] < 1.5 * safe[3, "2"] + 0.011


def test_trial_proposes_no_diversity_above_that_of_a_region(tmp_path):
    frame = people().assign(region=["north"] * 560 + ["south"] * 40)
    frame.loc[560:, "diagnosis"] = "well"
    answer, content = drafted(frame, tmp_path)
    assert content["variables"]["region"]["role"] == "region"
    assert answer["trial"]["min_diversity"] == 1
    assert "min_diversity" not in content.get("method", {})


def test_trial_skips_k_above_the_size_of_a_region(tmp_path):
    frame = people().assign(region=["north"] * 591 + ["south"] * 9)
    answer, content = drafted(frame, tmp_path)
    assert content["variables"]["region"]["role"] == "region"
    assert {row["k"] for row in answer["trial"]["rows"]} == {3, 5}
    assert content["release"]["k"] in (3, 5)


def test_draft_does_not_depend_on_the_order_of_records(tmp_path):
    frame = people(3_000)
    first, _ = drafted(frame, tmp_path)
    second, _ = drafted(frame.sample(frac=1, random_state=3), tmp_path)
    assert first["trial"] == second["trial"]
    assert first["trial"]["sampled"] == 2_000


def test_trial_proposes_groups_of_associated_variables(tmp_path):
    rng = np.random.default_rng(2)
    bases = rng.normal(size=(3, 60))
    names = [["rent", "sales", "wealth"], ["price", "costs", "profit"], ["output", "wages"]]
    columns = {
        name: (100 * (base + 0.05 * rng.normal(size=60))).round(3) + 1000
        for base, group in zip(bases, names, strict=True)
        for name in group
    }
    answer, content = drafted(pd.DataFrame(columns), tmp_path)
    grouping = answer["trial"]["grouping"]
    proposed = [set(group) for group in grouping["names"]]
    assert all(any(set(group) <= part for part in proposed) for group in names)
    assert 2 * grouping["cost"] <= answer["trial"]["cost"]
    assert grouping["unique"] > 0.5
    assert "groups" not in content
    begin = ("# [[g", "# name", "# variables")
    groups = [line[2:] for line in answer["draft"].splitlines() if line.startswith(begin)]
    build_specification(content | tomllib.loads("\n".join(groups)), tmp_path)


@pytest.mark.parametrize("records", [3, 5])
def test_draft_of_a_small_file_has_no_trial(records, tmp_path):
    answer, content = drafted(people(records), tmp_path)
    assert answer["trial"] is None
    assert content["release"]["k"] == 3


def test_draft_shows_the_result_of_the_trial_for_each_variable(tmp_path):
    frame = people().assign(weight=np.arange(600) / 7 + 1)
    answer, _ = drafted(frame, tmp_path)
    lines = {line.split(" = ")[0]: line for line in answer["draft"].splitlines() if " = { role" in line}
    assert "of its variance" in lines["income"]
    assert "are in classes with one value of it" in lines["diagnosis"]
    assert "of the records are unique, above the limit" in lines["weight"]
    assert "or accept it in [quality] (microguard check prints the line)" in lines["weight"]
    assert 'lines with "above the limit" say what to do' in answer["draft"]
    assert "homogeneous: records in classes with one value" in answer["draft"]


@pytest.mark.parametrize("zeros", [0, 40])
def test_draft_keeps_a_weight_with_zeros_only_with_a_positive_weight(zeros, tmp_path):
    rng = np.random.default_rng(4)
    further = rng.choice([12.5, 20.0, 31.25], 600)
    further[:zeros] = 0.0
    design = {"weight_2": further, "weight": rng.choice([5.0, 8.0], 600)}
    _, content = drafted(people().assign(**design), tmp_path)
    variables = content["variables"]
    assert variables["weight"]["role"] == variables["weight_2"]["role"] == "weight"
    assert content["method"]["weight"] == ("weight" if zeros else "weight_2")
    _, content = drafted(people().assign(weight=further), tmp_path)
    assert content["variables"]["weight"]["role"] == ("identifier" if zeros else "weight")
