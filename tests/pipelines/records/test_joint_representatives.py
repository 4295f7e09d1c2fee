"""Tests of jointly chosen representatives: better tables of a mixed release with the same k and loss."""

import numpy as np
import pandas as pd
import pytest

from tests.pipelines.microdata import ROLES, persons, published, quality, run, specification

pytestmark = pytest.mark.spark
ROLES_WITH_TWO_NOMINAL = ROLES | {"note": {"role": "quasi_identifier", "kind": "nominal"}}


@pytest.fixture(scope="module")
def releases(spark, tmp_path_factory):
    """Return the original records, and per choice of representatives the published records and measures."""
    rng = np.random.default_rng(5)
    original = persons(300).assign(
        note=lambda frame: rng.choice(
            ["common", "seldom", "rare", None], len(frame), p=[0.7, 0.2, 0.07, 0.03]
        )
    )
    found = {}
    for representative in ("auto", "mode"):
        folder = tmp_path_factory.mktemp(representative)
        original.to_parquet(folder / "data", index=False)
        method = {"effort": "fast", "representative": representative}
        spec = specification(folder, ROLES_WITH_TWO_NOMINAL, method=method)
        _, areas = run(spark, spec, ("loss", "tables", "by_dimension", "by_region"))
        found[representative] = published(areas), quality(areas)
    return original, found


def chi2(measured, dimension, section="by_dimension"):
    return measured[section][dimension]["chi2"]


def of_all_tables(measured):
    """Return the objective; with few records, the error of a single region may increase."""
    return chi2(measured, "1") + chi2(measured, "2") + chi2(measured, "1", "by_region")


def test_joint_representatives_give_better_tables_than_modes_at_the_same_loss(releases):
    _, found = releases
    (_, together), (_, modes) = found["auto"], found["mode"]
    for dimension in ("1", "2"):
        assert chi2(together, dimension) < 0.5 * chi2(modes, dimension)
    assert of_all_tables(together) < 0.75 * of_all_tables(modes)
    loss = [measured["loss"]["all"]["information_loss"] for measured in (together, modes)]
    assert loss[0] == pytest.approx(loss[1])


def test_every_class_has_k_records_and_a_combination_that_occurred_in_its_region(releases):
    original, found = releases
    frame, _ = found["auto"]
    keys = ["region", "sex", "age", "income", "note"]
    assert frame.groupby(keys, dropna=False).size().min() >= 3
    nominal = ["region", "sex", "note"]
    occurring = set(map(tuple, original[nominal].fillna("missing").to_numpy()))
    assert set(map(tuple, frame[nominal].fillna("missing").to_numpy())) <= occurring
    pd.testing.assert_series_equal(
        frame["weight"].sort_values(ignore_index=True), original["weight"].sort_values(ignore_index=True)
    )


def test_chi_square_by_region_equals_that_of_pandas(releases):
    original, found = releases
    frame, measured = found["auto"]
    chi2 = 0.0
    for name in ("sex", "note"):
        before, after = (
            table.assign(**{name: table[name].fillna("missing")}).groupby(["region", name]).size()
            for table in (original, frame)
        )
        chi2 += float(((after.reindex(before.index, fill_value=0) - before) ** 2 / before).sum())
    assert measured["by_region"]["1"]["chi2"] == pytest.approx(chi2)
    assert {tuple(table["variables"]) for table in measured["tables"] if table["by_region"]} == {
        ("region", "sex"),
        ("region", "note"),
    }
