"""Attacks on the secret factor of a cell by readers who know its value in another table.

Each program attacks the office and a control whose factor depends only on key and codes: the attack on the
control must succeed. The result is compared with an attacker without an earlier value (`blind`), who knows
method, level and parameters and also names two candidates, one per direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables import problem as table_problems
from microguard.sdc.cta.rules import secret_factor

from tests.attacks.office import Office, business_survey, specification

TABLE = {"value": "turnover", "tables": [["a88", "size"]]}
#: Default level of a cell with fewer than k contributors, as a share of its value.
SHARE = 0.2
LARGEST_RISE, LARGEST_FALL = 4.0, 7 / 3
#: A candidate within this distance of the original value counts as disclosed.
KNOWN_WITHIN = 0.01
#: Odds that the best guess is within 1 % if the direction is known. The guess covers 0.02 of the value in an
#: interval from 1.2 to 1.8 times the value, or from 0.53 to 0.8, in which the factor is nearly uniform.
BY_LEVEL = 0.07
pytestmark = pytest.mark.reference

#: Published values of cells of one or two firms and the attacker's knowledge, one row per cell.
Attack = Callable[[pd.DataFrame, int], pd.DataFrame]


@contextmanager
def factor_by_codes_alone(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Weaken the office: a cell has the same factor in every period, measure and membership."""
    with patch.context() as planted:
        planted.setattr(table_problems, "draw_identities", lambda cells, *_: cells.tabulation.identities())
        planted.setattr(secret_factor, "LARGEST_DRAWN_LEVEL", 1.0)
        yield


def rise(number: np.ndarray) -> np.ndarray:
    """Return the factor (published / original value) of a cell that rose, for a number drawn from [0, 1)."""
    return 1 + SHARE * (1 + (LARGEST_RISE - 1) * number)


def fall(number: np.ndarray) -> np.ndarray:
    """Return the factor (published / original value) of a cell that fell, for a number drawn from [0, 1)."""
    return 1 - SHARE * (1 + (LARGEST_FALL - 1) * number)


def number_of(ratio: np.ndarray) -> np.ndarray:
    """Return the number that was drawn for a cell, given its factor (published / original value)."""
    up = (ratio - 1) / SHARE - 1
    down = (1 - ratio) / SHARE - 1
    return np.where(ratio > 1, up / (LARGEST_RISE - 1), down / (LARGEST_FALL - 1)).clip(0, 1)


def next_year(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the same firms one year later."""
    growth = np.exp(np.random.default_rng(seed).normal(0.03, 0.15, len(frame)))
    return frame.assign(turnover=frame["turnover"] * growth, production=frame["production"] * growth)


def few(first: pd.DataFrame, second: pd.DataFrame, contributors: tuple[int, ...] = (1, 2)) -> pd.DataFrame:
    """Return the cells of few firms of the first table, joined with the same cells of the second."""
    codes = [name for name in first if name in second and name not in first.columns[-6:]]
    chosen = first[first["contributors"].isin(contributors) & (first[codes] != "Total").all(axis=1)]
    return chosen.merge(second, on=codes, suffixes=("", "_now"))


def accounts_known(frame: pd.DataFrame, key: int) -> pd.DataFrame:
    """Return candidates for this year's turnover, for a reader who knows last year's accounts."""
    office = Office(key)
    last = office.publish(frame, specification(frame, TABLE, period="2025"))
    later = next_year(frame, key)
    now = office.publish(later, specification(later, TABLE, period="2026"))
    return _two_candidates(few(last, now), key)


def another_variable(frame: pd.DataFrame, key: int) -> pd.DataFrame:
    """Return candidates for the production of a year, for a reader who knows its turnover."""
    office = Office(key)
    turnover = office.publish(frame, specification(frame, TABLE, period="2025"))
    chosen = specification(frame, TABLE | {"value": "production"}, period="2025")
    both = few(turnover, office.publish(frame, chosen))
    return _two_candidates(both[both["true_now"] > 0], key)


def competitor_joins(frame: pd.DataFrame, key: int) -> pd.DataFrame:
    """Return candidates for the turnover of a firm that enters the cell of a single firm, for the latter."""
    office = Office(key)
    last = office.publish(frame, specification(frame, TABLE, period="2025"))
    later = next_year(frame, key)
    codes = ["a88", "size"]
    single = later.groupby(codes)["firm"].transform("size") == 1
    joining = later[single].assign(
        firm=lambda each: each["firm"] + 100_000,
        turnover=lambda each: each["turnover"].sample(frac=1, random_state=key).to_numpy(),
    )
    own = later[single].assign(own=lambda each: each["turnover"].round(2))[[*codes, "own"]]
    both = pd.concat([later, joining], ignore_index=True)
    now = office.publish(both, specification(both, TABLE, period="2026"))
    found = _two_candidates(few(last, now, (1,)).merge(own, on=codes), key)
    for name in ("true_now", "by_rise", "by_fall", "blind_rise", "blind_fall"):
        found[name] -= found["own"]
    return found


def growth_known(frame: pd.DataFrame, key: int) -> pd.DataFrame:
    """Return candidates for last year's turnover, for a reader who knows only the growth to 2 %.

    Where the cell went up once and down once, one number drawn explains both published values.
    """
    office = Office(key)
    last = office.publish(frame, specification(frame, TABLE, period="2025"))
    later = next_year(frame, key)
    now = office.publish(later, specification(later, TABLE, period="2026"))
    both = few(last, now)
    ups = both["published"] > both["true"]
    both = both[ups != (both["published_now"] > both["true_now"])].reset_index(drop=True)
    random = np.random.default_rng(key)
    growth = both["true_now"] / both["true"] * (1 + random.uniform(-0.02, 0.02, len(both)))
    numbers = np.linspace(0, 1, 2001)[:, None]
    ratio = (both["published_now"] / both["published"] / growth).to_numpy()
    for name, first, second in (("by_rise", rise, fall), ("by_fall", fall, rise)):
        at = np.abs(second(numbers) / first(numbers) - ratio).argmin(axis=0)
        both[name] = both["published"] / first(numbers[at, 0])
    drawn = random.random(len(both))
    blind = {"blind_rise": both["published"] / rise(drawn), "blind_fall": both["published"] / fall(drawn)}
    return both.assign(true_now=both["true"], **blind)


def _two_candidates(both: pd.DataFrame, key: int) -> pd.DataFrame:
    """Add the values that the number of the first table implies for the second, and the blind guesses."""
    number = number_of((both["published"] / both["true"]).to_numpy())
    drawn = np.random.default_rng(key).random(len(both))
    shown = both["published_now"]
    return both.assign(
        by_rise=shown / rise(number),
        by_fall=shown / fall(number),
        blind_rise=shown / rise(drawn),
        blind_fall=shown / fall(drawn),
    )


def shares(found: pd.DataFrame) -> tuple[int, float, float]:
    """Return the cells, and the shares of them that the attacker and the blind guess know within 1 %."""

    def hit(names: tuple[str, str]) -> float:
        near = [np.abs(found[name] / found["true_now"] - 1) <= KNOWN_WITHIN for name in names]
        return float((near[0] | near[1]).mean())

    return len(found), hit(("by_rise", "by_fall")), hit(("blind_rise", "blind_fall"))


def figures(attack: Attack, keys: range) -> tuple[int, float, float, float]:
    """Return cells and shares known by attack and by blind guess over several keys, and the worst share."""
    frame = business_survey()
    by_key = [attack(frame, key) for key in keys]
    worst = max(shares(each)[1] for each in by_key)
    return (*shares(pd.concat(by_key)), worst)


ATTACKS = [accounts_known, another_variable, competitor_joins, growth_known]


def judge(attack: Attack, keys: range, control: range, patch: pytest.MonkeyPatch) -> None:
    """Assert that the attack on the control succeeds, and that the office discloses at most what the level
    allows.
    """
    with factor_by_codes_alone(patch):
        cells, known, _, _ = figures(attack, control)
    assert known > 0.6, f"the attack on the control must succeed; {known:.0%} of {cells} cells were"
    cells, known, blind, worst = figures(attack, keys)
    error = 3 * np.sqrt(BY_LEVEL / cells)
    assert known <= max(BY_LEVEL, blind) + error, f"{known:.1%} of {cells} cells, worst key {worst:.1%}"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.__name__)
def test_known_value_of_another_table_gives_no_candidate_nearer_than_the_level(attack, monkeypatch):
    judge(attack, range(1), range(1), monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each.__name__)
def test_many_keys_give_no_candidate_nearer_than_the_level(attack, monkeypatch):
    judge(attack, range(20), range(4), monkeypatch)
