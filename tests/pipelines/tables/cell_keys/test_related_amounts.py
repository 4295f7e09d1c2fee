"""Tests of related amounts: sums are recognised by original values and counted as second looks."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables.cell_keys.related_amounts import related_amounts
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.published_before import PublishedCell
from microguard.schemas.specification.table import Table
from microguard.sdc.cta.cell_keys.amount_posterior import within_level
from microguard.sdc.cta.cell_keys.amounts import Perturbed

REGIONS = ["north", "south", "west", "east"]
TRUE = {"domestic": [40.0, 70.0, 30.0, 55.0], "foreign": [60.0, 20.0, 50.0, 45.0]}


def published(measure, values, deviation=5.0, level=0.0, period="", error=2.0):
    return [
        PublishedCell("firms", period, measure, (("region", region),), Decimal(str(value + error)), 1,
                      "a" * 32, Decimal(str(value)), error=error, deviation=deviation, level=level,
                      entropy=np.inf)
        for region, value in zip(REGIONS, values, strict=True)
    ]  # fmt: skip


def related(*earlier, period=""):
    """Return earlier variables related to turnover by region; their noise is plus or minus ten."""
    values = np.sum(list(TRUE.values()), axis=0)
    table = Table(kind="magnitude", value="turnover", tables=(("region",),), decimals=0, method="cell_key")
    cells = Cells(pd.DataFrame({"region": REGIONS}), values, None)
    noise, odds = np.tile([-1.0, 1.0], (4, 1)), np.full((4, 2), 0.5)
    noisy = Perturbed(values + 10, values + 10, np.full(4, 10.0), noise, odds)
    before = [cell for cells in earlier for cell in cells]
    return related_amounts(cells, table, noisy, before, period)


def test_sum_of_published_terms_is_found_and_raises_the_posterior_of_its_cells():
    found = related(*(published(name, of) for name, of in TRUE.items()))
    assert found.measures == (("domestic", "foreign"),)
    chosen, levels = np.array([1, 3]), np.full(2, 5.0)
    likely = np.exp(-(4.0**2) / 100) / (np.exp(-(4.0**2) / 100) + np.exp(-(16.0**2) / 100))
    assert within_level(found.noisy, chosen, levels).tolist() == [0.5, 0.5]
    assert found.within_level(chosen, levels) == pytest.approx(likely)


def test_multiple_and_difference_are_found_and_unrelated_variables_are_not_found():
    values = np.sum(list(TRUE.values()), axis=0)
    assert related(published("thousands", values / 1000)).measures == (("thousands",),)
    gains = np.array([7.0, 31.0, 2.0, 12.0])
    costs = published("costs", values + gains), published("loss", gains)
    assert related(*costs).measures == (("costs", "loss"),)
    assert related(published("sales", values, error=10.0)).measures == (), "equal amounts have one draw"
    assert len(related(published("sales", values, error=2.0)).measures) == 1
    wages = published("wages", [11.0, 3.0, 90.0, 17.0])
    assert related(published("domestic", TRUE["domestic"]), wages).measures == ()
    terms = [published(name, of, period="2025") for name, of in TRUE.items()]
    assert related(*terms, period="2026").measures == (), "of another period"


def test_sensitive_term_that_follows_from_the_sum_is_counted():
    foreign = published("foreign", TRUE["foreign"], level=6.0, deviation=50.0)
    found = related(published("domestic", TRUE["domestic"], deviation=1.0), foreign)
    assert 0.4 < found.earlier < 0.5, "a deviation of 10, of 50 by its own value alone"
    found = related(published("domestic", TRUE["domestic"], deviation=None), foreign)
    assert found.earlier > 0.4


def test_amount_without_related_amounts_has_no_second_look():
    nothing = related()
    assert (nothing.measures, nothing.earlier) == ((), 0.0)
    assert nothing.within_level(np.array([0]), np.array([5.0])).tolist() == [0.0]


def test_two_sums_of_published_terms_are_averaged():
    """The reader knows turnover = domestic + foreign = goods + services, and averages both sums."""
    values = np.sum(list(TRUE.values()), axis=0)
    goods = np.array([13.0, 37.0, 71.0, 29.0])
    first = [published(name, of) for name, of in TRUE.items()]
    second = [published("goods", goods), published("services", values - goods)]
    one, both = related(*first), related(*first, *second)
    assert both.measures == (("domestic", "foreign"), ("goods", "services"))
    chosen, levels = np.arange(4), np.full(4, 5.0)
    likely = np.exp(-(4.0**2) / 50) / (np.exp(-(4.0**2) / 50) + np.exp(-(16.0**2) / 50))
    assert both.within_level(chosen, levels) == pytest.approx(likely)
    assert (one.within_level(chosen, levels) < likely - 0.05).all()


def many_digits(unit, seed, draws=9):
    """Return amounts a = b + c = d + e in units of the noise scale, few draws, and the published amounts."""
    rng = np.random.default_rng(seed)
    a = np.rint(rng.lognormal(12, 0.5, 40) / unit)
    b, d = (np.rint(a * rng.uniform(0.2, 0.8, len(a))) for _ in range(2))
    true = {"a": a, "b": b, "c": a - b, "d": d, "e": a - d}
    noise = np.linspace(-1, 1, draws)
    scale = {name: amounts * rng.uniform(0.1, 0.3, len(a)) for name, amounts in true.items()}
    shown = {name: true[name] + scale[name] * rng.choice(noise, len(a)) for name in true}
    return true, scale, shown, noise


def counted(names, true, scale, shown, noise):
    """Return the audited probability of each cell of a after the other amounts were published."""
    codes = [f"r{row}" for row in range(len(true["a"]))]
    table = Table(kind="magnitude", value="a", tables=(("region",),), decimals=0, method="cell_key")
    cells = Cells(pd.DataFrame({"region": codes}), true["a"], None)
    odds = np.full((len(codes), len(noise)), 1 / len(noise))
    noisy = Perturbed(shown["a"], shown["a"], scale["a"], np.tile(noise, (len(codes), 1)), odds)
    spread = float(np.sqrt((noise**2).mean()))
    before = [
        PublishedCell("firms", "", name, (("region", code),), Decimal(int(shown[name][row])), 1, "a" * 32,
                      Decimal(int(true[name][row])), error=shown[name][row] - true[name][row],
                      deviation=spread * scale[name][row], level=1.0, entropy=float(np.log(len(noise))))
        for name in names for row, code in enumerate(codes)
    ]  # fmt: skip
    found = related_amounts(cells, table, noisy, before, "")
    return found, found.within_level(np.arange(len(codes)), np.full(len(codes), 0.5))


def tried(terms, scale, shown, noise):
    """Attack: try all draws of a and its terms; return the probability of the true draws among those that
    fit.
    """
    a, *others = (shown[name][:, None] - scale[name][:, None] * noise for name in ("a", *terms))
    off = a[:, :, None, None] - others[0][:, None, :, None] - others[1][:, None, None, :]
    fits = np.abs(off) <= 1.5
    return 1 / np.maximum(fits.sum(axis=(1, 2, 3)), 1)


@pytest.mark.parametrize(("unit", "undone"), [(1.0, True), (10_000.0, False)])
def test_audit_counts_related_amounts_that_trying_all_draws_recovers(unit, undone):
    stated, reached = [], []
    for seed in range(3):
        amounts = many_digits(unit, seed)
        found, odds = counted("bc", *amounts)
        stated.append(odds.mean())
        reached.append(tried("bc", *amounts[1:]).mean())
        assert found.earlier >= 0.9 or not undone, "the terms as well"
    assert bool(np.mean(reached) > 0.8) == undone
    assert np.mean(stated) >= np.mean(reached) - 0.05
