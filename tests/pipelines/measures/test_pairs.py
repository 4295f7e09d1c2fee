"""Tests of measures of records before and after protection, against computations on the joined files."""

import numpy as np
import pandas as pd
import pytest

from tests.pipelines.risk_by_record import individual_risk

pytestmark = pytest.mark.spark
NUMBERS, KEYS = ["age", "income"], ["region", "sex", "age", "income"]


@pytest.fixture(scope="module")
def release(mixed_release):
    """Return original and protected records by person, the evidence and its areas."""
    both = mixed_release.original.merge(mixed_release.frame, on="note", suffixes=("", "_after"))
    return both, mixed_release.found, mixed_release.areas


def test_shares_of_changed_records_and_values_equal_a_count_on_the_joined_files(release):
    both, found, _ = release
    changed = pd.DataFrame({name: both[name] != both[f"{name}_after"] for name in ("sex", *NUMBERS)})
    section = found["changed"]
    assert section["sampled"] == section["of"] == len(both)
    assert section["records"] == pytest.approx(changed.any(axis=1).mean())
    assert section["by_variable"] == pytest.approx(changed.mean().to_dict())
    spread = both["income"].std() * np.sqrt(2)
    assert section["il1s"]["income"] == pytest.approx(
        (both["income"] - both["income_after"]).abs().mean() / spread
    )
    shares = [both[name].value_counts(normalize=True) for name in ("sex", "sex_after")]
    roots = np.sqrt(shares[0]) - np.sqrt(shares[1].reindex(shares[0].index, fill_value=0))
    assert section["hellinger"]["sex"] == pytest.approx(np.sqrt((roots**2).sum() / 2))
    assert 0 <= section["propensity_error"] <= 0.25


def test_totals_and_means_equal_pandas_with_and_without_weights(release):
    both, found, _ = release
    for name in NUMBERS:
        for which, weight in (("unweighted", 1.0), ("weighted", both["weight"])):
            section = found["estimates"][name][which]
            before, after = weight * both[name], weight * both[f"{name}_after"]
            mass = len(both) if which == "unweighted" else weight.sum()
            assert section["total_before"] == pytest.approx(before.sum())
            assert section["total_after"] == pytest.approx(after.sum())
            assert section["mean_after"] == pytest.approx(after.sum() / mass)
            old, new = (each.groupby(both["region"]).sum() for each in (before, after))
            assert section["largest_change"] == pytest.approx(((new - old) / old).abs().max(), abs=1e-9)
            assert section["regions"] == 3
            assert section["exact"] == int(((new - old).abs() <= 1e-9 * old).sum())
            masses = (weight * both["region"].notna()).groupby(both["region"]).sum()
            step = max({"age": 1.0, "income": 0.01}[name], both[name].std(ddof=0) / 20)
            room = 0.5 * step * masses + 1e-9 * old
            kept = int(((new - old).abs() <= room).sum())
            assert section["kept"] == (kept if which == "weighted" else None)
    old, new = (
        np.quantile(both[name], [0.1, 0.25, 0.5, 0.75, 0.9], method="inverted_cdf")
        for name in ("age", "age_after")
    )
    shifts = found["estimates"]["age"]["unweighted"]["quantile_shifts"]
    assert shifts == pytest.approx((new - old) / both["age"].std(), abs=0.006)
    assert all(shift == round(shift, 2) for shift in shifts)  # two decimals do not disclose a record's value


def test_means_preserve_the_weighted_totals_of_every_region_and_no_others(release):
    _, found, _ = release
    assert found["loss"]["all"]["weighted_by"] == "weight"
    for name in NUMBERS:
        section = found["estimates"][name]
        assert section["weighted"]["kept"] == 3
        assert section["unweighted"]["kept"] is None
        assert section["unweighted"]["exact"] < 3
        assert (section["weight"], section["heeded"]) == ("weight", True)


def test_individual_risk_is_summed_over_the_classes_of_each_file(release):
    both, found, _ = release
    after = [name if name == "region" else f"{name}_after" for name in KEYS]
    section = found["individual_risk"]
    for names, when in ((KEYS, "before"), (after, "after")):
        classes = both.groupby(names, dropna=False).ngroup().to_numpy()
        risk = individual_risk(classes, both["weight"].to_numpy())
        assert section[f"expected_{when}"] == pytest.approx(risk.sum(), rel=1e-8)
        assert section[f"largest_{when}"] == pytest.approx(risk.max(), rel=1e-8)
    assert section["weighted"]


def test_linkage_compares_all_protected_records_of_the_region(release):
    both, found, _ = release
    scale = both[NUMBERS].std().to_numpy()
    expected = 0.0
    for _, each in both.iterrows():
        inside = both[both["region"] == each["region"]]
        numbers = (inside[["age_after", "income_after"]].to_numpy() - each[NUMBERS].to_numpy(float)) / scale
        distances = np.sqrt((numbers**2).sum(axis=1) + (inside["sex_after"] != each["sex"]).to_numpy())
        nearest = distances <= distances.min() + 1e-9
        expected += (nearest & (inside["note"] == each["note"]).to_numpy()).sum() / nearest.sum()
    section = found["record_linkage"]
    assert section["linked"] == pytest.approx(expected / len(both))
    near = (both[NUMBERS].to_numpy() - both[["age_after", "income_after"]].to_numpy()) / scale
    assert list(section["inside"].values()) == pytest.approx((np.abs(near) <= 0.1).mean(axis=0))
    assert section["inside_all"] == pytest.approx((np.abs(near) <= 0.1).all(axis=1).mean())


def test_special_uniques_are_computed_on_region_and_nominal_variables(release):
    both, found, _ = release
    section = found["special_uniques"]
    assert section["variables"] == ["region", "sex"]
    assert section["sampled"] == len(both)
    # a record that is unique only on both variables together is not special
    assert len(section["by_size_before"]) == 1


def test_page_shows_the_measures_of_pairs_and_the_release_does_not(release):
    _, _, areas = release
    page = (areas.record(areas.public.current()) / "report.html").read_text()
    for heading in ("What changed", "Totals, means and quantiles", "Linkage with the original records"):
        assert heading in page
    assert "__original" not in "".join(
        path.read_bytes().decode("latin-1")
        for path in areas.public.release(areas.public.current()).rglob("*.*")
    )
