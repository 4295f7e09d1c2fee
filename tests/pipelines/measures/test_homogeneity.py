"""Tests of homogeneity: the measures of classes equal a count in pandas."""

import json

import numpy as np
import pandas as pd
import pytest
from microguard.schemas.errors import GateRefused

from tests.pipelines.microdata import ROLES, persons, published, quality, run, specification

pytestmark = pytest.mark.spark


def diversity_by_hand(frame, keys, name):
    """Return the share of homogeneous records, the least distinct values, exp(entropy) and the largest t, by
    class.
    """
    whole = frame[name].value_counts(normalize=True)
    homogeneous, distinct, entropies, distances = 0, [], [], []
    for _, members in frame.groupby(keys, dropna=False)[name]:
        share = members.value_counts(normalize=True)
        homogeneous += len(members) if len(share) == 1 else 0
        distinct.append(len(share))
        entropies.append(np.exp(-(share * np.log(share)).sum()))
        distances.append(share.reindex(whole.index, fill_value=0).sub(whole).abs().sum() / 2)
    return homogeneous, min(distinct), min(entropies), max(distances)


@pytest.mark.parametrize("kind", ["mixed", "nominal"])
def test_homogeneity_and_uniques_are_computed_on_the_published_records(kind, request):
    release = request.getfixturevalue(f"{kind}_release")
    frame, found = release.frame, release.found
    keys = ["region", *release.spec.quasi_identifiers]
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


@pytest.mark.parametrize("kind", ["mixed", "nominal"])
def test_population_units_are_counted_for_each_published_combination(kind, request):
    release = request.getfixturevalue(f"{kind}_release")
    people = release.frame.merge(release.population, how="left")["people"].fillna(0)
    section = release.found["k_map"]["after"]
    assert (section["absent"], section["rare"]) == ((people == 0).sum(), people.isin([1, 2]).sum())
    assert section["absent"] > 0
    assert "Combinations that are rare in the population" in (release.record / "report.html").read_text()


def test_limits_on_disclosure_apply_by_default(spark, tmp_path):
    persons(90).to_parquet(tmp_path / "data", index=False)
    with pytest.raises(GateRefused) as refused:
        run(spark, specification(tmp_path, quality={"accept": {}}))
    failed = {failure.key for failure in refused.value.failures}
    assert failed >= {"unique_published of weight", "unique_jointly", "homogeneous of diagnosis"}
    assert not (tmp_path / "lake").exists()


def test_release_with_correct_roles_and_diversity_passes_the_default_limits(spark, tmp_path):
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
    assert areas.public.current() == entry["release_id"]


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        ([f"p{i}@example.org" for i in range(100)], True),
        ([f"p{i}@example.org" if i % 2 else None for i in range(100)], True),
        ([f"p{i}@example.org" if i < 80 else "none" for i in range(100)], False),
        ([f"code {i // 2}" for i in range(100)], False),
        ([f"p{i}@example.org" if i < 10 else None for i in range(100)], True),
        ([f"p{i}@example.org" if i < 9 else None for i in range(100)], False),
        ([f"p{i}@example.org" if i < 18 else "none" for i in range(20)] + [None] * 80, True),
        # amounts in a CSV, whose limits are those of numbers
        ([f"{1000 + i}.5" for i in range(100)], False),
    ],
)
def test_a_sensitive_text_that_nearly_every_record_has_alone_is_refused(spark, tmp_path, texts, refused):
    roles = {name: ROLES[name] for name in ("region", "sex", "age")} | {"contact": {"role": "sensitive"}}
    frame = persons(100).head(100)[["region", "sex", "age"]].assign(contact=texts)
    frame.to_parquet(tmp_path / "data", index=False)
    spec = specification(tmp_path, roles, quality={"accept": {"max_homogeneous": "a test"}})
    measures = ("homogeneity", "uniques_published")
    if not refused:
        run(spark, spec, measures)
        return
    with pytest.raises(GateRefused, match="text of their own in contact") as found:
        run(spark, spec, measures)
    assert {failure.key for failure in found.value.failures} == {"own_text of contact"}
    assert "example.org" not in str(found.value)
    accept = dict.fromkeys(("max_homogeneous", "max_unique_published"), "a test")
    run(spark, specification(tmp_path, roles, quality={"accept": accept}), measures)


@pytest.mark.parametrize("of_unit", [True, False])
def test_a_sensitive_text_that_every_unit_has_in_all_its_records_is_refused(spark, tmp_path, of_unit):
    """Events: 12 persons with 5 records each, and an e-mail address of each person or one of 6 codes."""
    person = np.repeat(np.arange(12), 5)
    texts = [f"p{i}@example.org" for i in person] if of_unit else [f"code {i % 6}" for i in range(60)]
    frame = pd.DataFrame({"person": person, "sex": np.array(["f", "m"])[person % 2], "contact": texts})
    frame.to_parquet(tmp_path / "data", index=False)
    roles = {name: ROLES[name] for name in ("person", "sex")} | {"contact": {"role": "sensitive"}}
    given = {
        "method": {"effort": "fast", "unit": "unit"},
        "quality": {"accept": {"max_homogeneous": "a test"}},
        "publish": {"accept_dependencies": ["contact"]},
    }
    if not of_unit:
        run(spark, specification(tmp_path, roles, **given), ("homogeneity",))
        return
    with pytest.raises(GateRefused, match="text of their own in contact"):
        run(spark, specification(tmp_path, roles, **given), ("homogeneity",))


def test_the_ledger_records_what_a_steward_accepts_by_name(mixed_release):
    entry = json.loads(mixed_release.areas.ledger.read_text().splitlines()[-1])
    assert entry["accept"]["max_homogeneous"] == "a test of something else"


def test_page_counts_records_whose_sensitive_value_follows_from_another_value(spark, tmp_path):
    persons(60).to_parquet(tmp_path / "data", index=False)
    roles = ROLES | {"note": {"role": "sensitive"}, "weight": {"role": "identifier"}}
    _, areas = run(spark, specification(tmp_path, roles), ("uniques_published",))
    frame, section = published(areas), quality(areas)["uniques_published"]
    keys = ["region", "sex", "age", "income"]
    by_hand = {name: int((frame.groupby([*keys, name]).size() == 1).sum()) for name in ("diagnosis", "note")}
    assert (section["by_sensitive"], section["by_column"], section["jointly"]) == (by_hand, {}, 0)
    page = (areas.record(areas.public.current()) / "report.html").read_text()
    assert "An intruder who knows the protected variables and note identifies" in page


@pytest.mark.parametrize("least", [pytest.param(2, marks=pytest.mark.long), 3])
def test_min_diversity_counts_close_numbers_as_one_value(spark, tmp_path, least):
    """Age and sex nearly determine the salary: classes of nearest records disclose it."""
    random = np.random.default_rng(1)
    frame = persons(300).drop(columns=["weight", "note", "diagnosis", "income", "name"])
    salary = 1e5 + 2000 * frame["age"] + 300_000 * (frame["sex"] == "f") + random.normal(0, 1, len(frame))
    frame.assign(salary=salary).to_parquet(tmp_path / "data", index=False)
    roles = {name: ROLES[name] for name in ("person", "region", "sex", "age")}
    roles["salary"] = {"role": "sensitive"}
    given = {
        "method": {"effort": "fast", "min_diversity": least},
        "quality": {"accept": {}},
        "publish": {"accept_dependencies": ["salary"]},
    }
    _, areas = run(spark, specification(tmp_path, roles, **given), ("homogeneity",))
    keys = ["region", "sex", "age"]
    salaries = published(areas).groupby(keys)["salary"].agg(["min", "max"])
    apart = 0.01 * np.minimum(np.ptp(salary), salaries["max"])
    assert (salaries["max"] - salaries["min"] >= apart).all()
    assert quality(areas)["homogeneity"]["salary"]["homogeneous"] == 0


SPELLINGS = ["HIV", "hiv", " HIV", "Hiv ", "\uff28\uff29\uff36"]


def spelt(n, share, seed=4):
    """Return persons: `share` of them have one diagnosis in five spellings, the others a cold or nothing."""
    random = np.random.default_rng(seed)
    frame = persons(n).drop(columns=["note", "weight"])
    draw = random.random(len(frame))
    unknown = random.choice(np.array([None, "", "  "]), len(frame))
    others = np.where(random.random(len(frame)) < 0.5, "cold", unknown)
    return frame.assign(diagnosis=np.where(draw < share, random.choice(SPELLINGS, len(frame)), others))


SPELT = {name: role for name, role in ROLES.items() if name not in ("note", "weight")}


@pytest.mark.parametrize("wanted", [1, 2])
def test_homogeneity_ignores_spellings_and_missing_values(spark, tmp_path, wanted):
    """Earlier, five spellings of one diagnosis, or one diagnosis with missing ones, passed as diverse
    classes.
    """
    spelt(180, 0.9).to_parquet(tmp_path / "data", index=False)
    method = {"effort": "fast", "min_diversity": wanted}
    release = specification(tmp_path, SPELT, method=method, quality={"accept": {}})
    if wanted == 1:
        with pytest.raises(GateRefused, match="share of records whose class determines diagnosis"):
            run(spark, release, ("homogeneity",))
        return
    _, areas = run(spark, release, ("homogeneity", "diversity"))
    frame = published(areas)
    known = frame.assign(diagnosis=frame["diagnosis"].str.normalize("NFKC").str.lower().str.strip())
    known = known.replace({"diagnosis": ""}, None)
    values = known.groupby(["region", *release.quasi_identifiers])["diagnosis"].nunique()
    assert values.min() >= 2
    assert quality(areas)["diversity"] == {"diagnosis": values.min()}
