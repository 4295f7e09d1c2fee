"""Tests of protection with k households: published, refused and suppressed regions."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.records import protect_by_microaggregation as protecting
from microguard.schemas.errors import InputRejected, ProtectionFailed

from tests.pipelines.microdata import NOMINAL, ROLES, persons, published, quality, run, specification
from tests.pipelines.risk_by_record import household_risk, individual_risk

pytestmark = pytest.mark.spark

HOUSEHOLD = ROLES | {"home": {"role": "household"}}


def families(n=40, seed=3):
    """Return households of one to five equal persons each in three regions; `note` identifies the persons."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, n)
    frame = persons(len(sizes)).iloc[: len(sizes)].loc[np.repeat(np.arange(n), sizes)].reset_index(drop=True)
    return frame.assign(
        person=np.arange(len(frame)),
        home=np.repeat(np.arange(n) + 900, sizes),
        note=[f"p{i}" for i in range(len(frame))],
    )


def fewest_homes(original, areas, variables=("sex", "age", "income")):
    both = published(areas).merge(original[["note", "home"]], on="note")
    assert len(both) == len(original)
    return both.groupby(["region", *variables])["home"].nunique().min()


def assert_household_risk(section, original, released, variables):
    both = released.merge(original[["note", "home"]], on="note")
    for when, frame in (("before", original), ("after", both)):
        classes = frame.groupby(["region", *variables], dropna=False).ngroup().to_numpy()
        weights = frame["weight"].to_numpy() if "weight" in released else None
        risk = household_risk(individual_risk(classes, weights), frame["home"].to_numpy())
        by_home = pd.Series(risk).groupby(frame["home"].to_numpy()).first()
        assert section["households"] == len(by_home)
        assert section[f"expected_{when}"] == pytest.approx(by_home.sum(), rel=1e-8)
        assert section[f"largest_{when}"] == pytest.approx(by_home.max(), rel=1e-8)


def test_combination_may_have_fewer_than_k_households_if_k_counts_records(spark, tmp_path):
    """Without weights, the risk of a household follows from the sizes of its classes in the file."""
    original = families()
    original.to_parquet(tmp_path / "data", index=False)
    _, areas = run(
        spark, specification(tmp_path, HOUSEHOLD | {"weight": {"role": "identifier"}}), ("household_risk",)
    )
    assert fewest_homes(original, areas) < 3
    found = quality(areas)["household_risk"]
    assert found["largest_before"] > found["largest_after"]
    assert_household_risk(found, original, published(areas), ["sex", "age", "income"])


@pytest.fixture(scope="module")
def by_households(spark, tmp_path_factory):
    """Return the areas of a release whose k counts households, by the kinds of its variables."""

    @cache
    def released(kinds):
        folder, roles, publish = tmp_path_factory.mktemp(kinds), HOUSEHOLD, {}
        if kinds == "nominal":
            roles = HOUSEHOLD | {name: NOMINAL[name] for name in ("age", "income")}
            publish = {"accept_dependencies": ["income"]}
        families().to_parquet(folder / "data", index=False)
        return run(
            spark,
            specification(folder, roles, method={"unit": "household"}, publish=publish),
            ("risk", "household_risk"),
        )[1]

    return released


@pytest.mark.parametrize("kinds", ["mixed", "nominal"])
def test_every_combination_has_k_households_if_k_counts_households(by_households, kinds):
    original, areas = families(), by_households(kinds)
    variables = ("sex", "age", "income") if kinds == "mixed" else ("sex", "age")
    assert fewest_homes(original, areas, variables) >= 3
    assert "home" not in published(areas)
    found = quality(areas)
    assert found["risk"]["all"]["before"]["smallest"] == 1
    assert found["risk"]["all"]["after"]["smallest"] >= 3
    verdicts = {verdict["metric"]: verdict for verdict in found["verdicts"]}
    assert verdicts["fewest_households"]["passed"]
    public = json.loads((areas.public.release(areas.public.current()) / "manifest.json").read_text())
    assert public["guarantee"]["unit"] == "household"
    assert "k counts households" in public["limits"][0]
    assert audit(areas.public.release(areas.public.current())).passed
    page = (areas.record(areas.public.current()) / "report.html").read_text()
    assert "at least k = 3 households" in page
    assert_household_risk(found["household_risk"], original, published(areas), list(variables))


def test_protection_of_households_does_not_depend_on_record_order(spark, tmp_path, by_households):
    families().sample(frac=1, random_state=0).to_parquet(tmp_path / "data", index=False)
    _, areas = run(spark, specification(tmp_path, HOUSEHOLD, method={"unit": "household"}), ())
    pd.testing.assert_frame_equal(published(areas), published(by_households("mixed")))


def test_region_of_too_few_households_is_refused_or_suppressed(spark, tmp_path):
    original = families()
    lonely = original.iloc[:6].assign(region="isle", home=[1, 1, 1, 2, 2, 2], person=range(900, 906))
    pd.concat([original, lonely.assign(note=[f"q{i}" for i in range(6)])]).to_parquet(
        tmp_path / "data", index=False
    )
    with pytest.raises(InputRejected, match=r"units of the smallest region +2  at least 3"):
        run(spark, specification(tmp_path, HOUSEHOLD, method={"unit": "household"}), ())
    suppress = {"method": {"unit": "household"}, "blocking": {"small_regions": "suppress"}}
    _, areas = run(spark, specification(tmp_path, HOUSEHOLD, **suppress), ())
    assert fewest_homes(original, areas) >= 3
    assert quality(areas)["counts"]["suppressed"] == 6


def test_household_larger_than_a_block_shares_its_class_with_others(spark, tmp_path):
    original = families().assign(region="north")
    home = (
        original.iloc[:1]
        .loc[[0] * 120]
        .assign(home=1, person=range(1_000, 1_120), note=[f"h{i}" for i in range(120)], age=90, income=5.0)
    )
    both = pd.concat([original, home], ignore_index=True)
    both["age"] = both["age"].astype(np.int16)
    both.to_parquet(tmp_path / "data", index=False)
    blocks = {"method": {"unit": "household"}, "blocking": {"max_records": 40}}
    _, areas = run(spark, specification(tmp_path, HOUSEHOLD, **blocks), ())
    assert fewest_homes(both, areas) >= 3


def test_class_that_lost_households_is_not_published(spark, tmp_path, monkeypatch):
    families().to_parquet(tmp_path / "data", index=False)
    task = protecting._clustering_task
    monkeypatch.setattr(protecting, "_clustering_task", lambda *given: replace(task(*given), counted=None))
    with pytest.raises(ProtectionFailed, match="units that have any combination of all"):
        run(spark, specification(tmp_path, HOUSEHOLD, method={"unit": "household"}), ())
