"""Tests of protected variables that follow arithmetically from published amounts."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.pipelines.measures.attribute_disclosure.arithmetic import computed
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import Dependency

N = 300


def amounts(n=N, seed=1):
    random = np.random.default_rng(seed)
    income = np.round(random.lognormal(8, 1, n), 2)
    wage = np.round(income * random.random(n), 2)
    hours, pay = random.integers(5, 50, n).astype(float), np.round(random.uniform(9, 60, n), 2)
    return {
        "income": income,
        "wage": wage,
        "rent": np.round(random.lognormal(6, 1, n), 2),
        "profit": np.round(income - wage, 2),
        "after_tax": np.round(np.where(income > 4000, 0.6 * income + 400, 0.7 * income), 2),
        "hours": hours,
        "pay": pay,
        "earned": np.round(hours * pay, 2),
    }


def told(target, *names, n=N, seed=1, **changed):
    values = amounts(n, seed) | changed
    columns = {name: values[name] for name in names}
    return computed(columns, {target: values[target]}, {})


@pytest.mark.parametrize("seed", range(5))
def test_amount_determines_another_amount_that_is_computed_from_it(seed):
    assert told("income", "after_tax", "rent", seed=seed) == [Dependency("after_tax", "income")]
    copied = amounts(seed=seed)["income"]
    assert told("income", "rent", seed=seed, rent=copied) == [Dependency("rent", "income")]


@pytest.mark.parametrize("seed", range(5))
def test_amount_is_determined_by_its_terms_and_by_its_factors(seed):
    parts = [Dependency("wage", "income", ("profit",))]
    assert told("income", "wage", "rent", "profit", "hours", seed=seed) == parts
    assert told("earned", "wage", "hours", "rent", "pay", seed=seed) == [
        Dependency("hours", "earned", ("pay",))
    ]


def test_dependency_is_found_despite_some_miscoded_records():
    values = amounts()
    values["profit"][:8] *= 3
    values["after_tax"][:4] *= 3
    assert told("income", "wage", "profit", profit=values["profit"])
    assert told("income", "after_tax", after_tax=values["after_tax"])


@pytest.mark.parametrize("seed", range(5))
def test_correlated_amount_determines_nothing(seed):
    random = np.random.default_rng(seed + 100)
    values = amounts(seed=seed)
    about = values["income"] * random.lognormal(0, 0.05, N)
    mostly_zero = np.where(random.random(N) < 0.9, 0.0, values["rent"])
    few = random.integers(0, 3, N).astype(float)
    assert not told("income", "about", "rent", "wage", seed=seed, about=about)
    assert not told("rent", "wage", "income", "hours", seed=seed, rent=mostly_zero)
    assert not told("rent", "wage", "income", "hours", "pay", seed=seed, rent=few)
    assert not computed({"income": values["income"]}, {}, {"class": few.astype(int)})


@pytest.mark.parametrize("seed", range(5))
def test_amount_determines_the_band_that_contains_it(seed):
    income = amounts(seed=seed, n=2000)["income"]
    classes = np.searchsorted([1000.0, 3000.0, 6000.0], income)
    assert computed({"income": income}, {}, {"class": classes}) == [Dependency("income", "class")]


@pytest.mark.parametrize("seed", range(5))
def test_column_of_many_values_that_follows_from_an_amount_determines_it(seed):
    """Each hundred of an income is published, or its distance from a mean: two incomes have the same one."""
    n, random = 2000, np.random.default_rng(seed)
    income = np.round(np.exp(random.normal(8, 0.6, n)), 2)
    hundreds = np.round(income / 100)
    deviation = np.round(np.abs(income - 3000.0), 2)
    bands = np.searchsorted(np.quantile(income, np.linspace(0, 1, 20)), income).astype(float)
    shuffled = random.permutation(hundreds)
    columns = {"hundreds": hundreds, "deviation": deviation, "bands": bands, "shuffled": shuffled}
    found = [Dependency("hundreds", "income"), Dependency("deviation", "income")]
    assert computed(columns, {"income": income}, {}) == found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("reference", [0, 100, 200])
def test_date_of_birth_determines_the_age_on_any_day(seed, reference):
    random = np.random.default_rng(seed)
    born = random.integers(0, 365 * 90, N)
    age = (365 * 90 + reference - born) // 365
    about = np.round(age + random.normal(0, 0.6, N))
    columns = {"born": born.astype(float)}
    assert computed(columns, {"age": age.astype(float)}, {}) == [Dependency("born", "age")]
    assert not computed(columns, {"age": about}, {})


@pytest.mark.parametrize("seed", range(5))
def test_few_values_that_are_often_those_of_the_neighbours_are_no_dependency(seed):
    random = np.random.default_rng(seed)
    columns = {"rent": random.random(N)}
    for share in (0.02, 0.1, 0.5):
        assert not computed(columns, {"employed": (random.random(N) < share).astype(float)}, {})


def test_known_dependency_is_not_reported_again():
    values = amounts()
    known = Dependency("after_tax", "income")
    assert not computed({"after_tax": values["after_tax"]}, {"income": values["income"]}, {}, [known])


def test_arithmetic_dependencies_do_not_depend_on_the_order_of_records():
    values = amounts()
    order = np.random.default_rng(3).permutation(N)
    columns = {name: number for name, number in values.items() if name != "income"}
    shuffled = {name: number[order] for name, number in columns.items()}
    assert computed(columns, {"income": values["income"]}, {}) == computed(
        shuffled, {"income": values["income"][order]}, {}
    )


def test_missing_amounts_are_ignored_and_mostly_missing_columns_determine_nothing():
    values = amounts()
    curve = np.round(100 * np.sqrt(values["income"]), 2)
    some, most = (np.where(np.arange(N) % 10 < share, np.nan, curve) for share in (2, 8))
    assert told("income", "after_tax", after_tax=some)
    assert not told("income", "after_tax", after_tax=most)


@pytest.mark.parametrize("seed", range(5))
def test_amount_that_equals_another_for_some_records_determines_it(seed):
    """Example: a one-person household has the income of its person."""
    values = amounts(seed=seed)
    alone = np.random.default_rng(seed).random(N) < 0.2
    household = np.where(alone, values["income"], values["income"] + values["rent"])
    assert told("income", "household", seed=seed, household=household)
    monthly = np.round(np.where(alone, values["income"] / 12, values["rent"]), 2)
    assert told("income", "monthly", seed=seed, monthly=monthly)


@pytest.mark.parametrize("seed", range(5))
def test_equal_common_values_are_no_dependency(seed):
    random = np.random.default_rng(seed)
    rooms, persons = random.integers(1, 7, N).astype(float), random.integers(1, 7, N).astype(float)
    earned, lent = (np.where(random.random(N) < 0.5, 0.0, random.lognormal(8, 1, N)) for _ in range(2))
    assert not told("rooms", "persons", rooms=rooms, persons=persons)
    assert not told("earned", "lent", earned=earned, lent=lent)


@pytest.mark.parametrize("seed", range(5))
def test_amount_determines_another_amount_within_one_category(seed):
    """Examples: a share of the total of the own town; a size class with other limits in every region."""
    random, n = np.random.default_rng(seed), 1000
    income, region = amounts(n, seed)["income"], random.integers(0, 50, n)
    share = np.round(100 * income / np.bincount(region, income)[region], 4)
    other = random.integers(0, 50, n)
    found = computed({"share": share}, {"income": income}, {}, (), {"region": region, "other": other})
    assert found == [Dependency("share", "income", ("region",))]
    coarse, level = region % 5, np.array([0.3, 0.6, 1.0, 1.7, 3.0])
    poor = (income < 2000 * level[coarse]).astype(int)
    found = computed({"income": income}, {}, {"poor": poor}, (), {"region": coarse, "other": other})
    assert found == [Dependency("income", "poor", ("region",))]
    assert not computed({"share": share}, {"income": income}, {}, (), {"other": other})
