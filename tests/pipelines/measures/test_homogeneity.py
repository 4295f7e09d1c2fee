"""What classes give away, against a count by hand in pandas."""

import json

import numpy as np
import pytest

from schemas.errors import GateRefused
from tests.pipelines.microdata import NOMINAL, ROLES, persons, published, quality, run, specification

pytestmark = pytest.mark.spark


def diversity_by_hand(frame, keys, name):
    """Share of homogeneous records, least distinct values and exp(entropy), largest t, class by class."""
    whole = frame[name].value_counts(normalize=True)
    homogeneous, distinct, entropies, distances = 0, [], [], []
    for _, members in frame.groupby(keys, dropna=False)[name]:
        share = members.value_counts(normalize=True)
        homogeneous += len(members) if len(share) == 1 else 0
        distinct.append(len(share))
        entropies.append(np.exp(-(share * np.log(share)).sum()))
        distances.append(share.reindex(whole.index, fill_value=0).sub(whole).abs().sum() / 2)
    return homogeneous, min(distinct), min(entropies), max(distances)


@pytest.mark.parametrize("roles", [ROLES, NOMINAL], ids=["mixed", "nominal"])
def test_homogeneity_and_uniques_are_those_of_the_published_records(roles, spark, tmp_path):
    persons(90).to_parquet(tmp_path / "data", index=False)
    counts = persons(90).groupby(["region", "sex"]).size().reset_index(name="people")
    counts.assign(people=np.arange(len(counts))).to_parquet(tmp_path / "counts")
    population = {"path": "counts", "count": "people", "variables": ["sex", "region"]}
    spec = specification(tmp_path, roles, method={"effort": "fast"}, population=population)
    _, areas = run(spark, spec)
    frame, found = published(areas), quality(areas)
    sizes = frame.groupby(["region", "sex"]).size().to_numpy()
    assert found["k_map"]["after"]["absent"] == sizes[0]
    assert found["k_map"]["after"]["rare"] == sizes[1] + sizes[2]
    assert (
        "Held by few of the population" in (areas.record(areas.public.served()) / "report.html").read_text()
    )
    keys = ["region", *[name for name, each in roles.items() if each["role"] == "quasi_identifier"]]
    section = found["homogeneity"]["diagnosis"]
    homogeneous, distinct, entropy, t = diversity_by_hand(frame, keys, "diagnosis")
    assert (section["homogeneous"], section["least_distinct"]) == (homogeneous, distinct)
    assert section["least_entropy_diversity"] == pytest.approx(entropy, abs=1e-8)
    assert section["largest_t"] == pytest.approx(t, abs=1e-8)
    by_class = frame.groupby([*keys, "diagnosis"], dropna=False).size().groupby(keys, dropna=False)
    assert section["guessed"] == int(by_class.max().sum())
    joined = [name for name in frame.columns if name not in (*keys, "diagnosis")]
    unique = {name: int((frame.groupby([*keys, name], dropna=False).size() == 1).sum()) for name in joined}
    assert found["uniques_published"]["by_column"] == unique
    jointly = int((frame.groupby([*keys, *joined], dropna=False).size() == 1).sum())
    assert found["uniques_published"]["jointly"] == jointly


def test_limits_on_disclosure_hold_although_no_specification_asks_for_them(spark, tmp_path):
    persons(90).to_parquet(tmp_path / "data", index=False)
    with pytest.raises(GateRefused) as refused:
        run(spark, specification(tmp_path, method={"effort": "fast"}, quality={"accept": {}}))
    for metric in ("unique_published of weight", "unique_jointly", "homogeneous of diagnosis"):
        assert metric in str(refused.value)
    assert not (tmp_path / "lake").exists()


def test_a_release_with_good_roles_and_diversity_passes_them(spark, tmp_path):
    persons(90).drop(columns=["weight", "note"]).to_parquet(tmp_path / "data", index=False)
    roles = {name: role for name, role in ROLES.items() if name not in ("weight", "note")}
    spec = specification(
        tmp_path, roles, method={"effort": "fast", "min_diversity": 2}, quality={"accept": {}}
    )
    _, areas = run(spark, spec)
    frame, found = published(areas), quality(areas)["individual_risk"]
    assert frame["diagnosis"].nunique() == 3
    sizes = frame.groupby(["region", "sex", "age", "income"]).size()
    assert (found["expected_after"], found["largest_after"]) == (len(sizes), 1 / sizes.min())
    entry = json.loads(areas.ledger.read_text().splitlines()[-1])
    assert entry["accept"] == {}
    assert areas.public.served() == entry["release_id"]


def test_what_a_steward_accepts_by_name_stands_in_the_ledger(spark, tmp_path):
    persons(90).to_parquet(tmp_path / "data", index=False)
    _, areas = run(spark, specification(tmp_path, method={"effort": "fast"}))
    entry = json.loads(areas.ledger.read_text().splitlines()[-1])
    assert entry["accept"]["max_homogeneous"] == "a test of something else"
