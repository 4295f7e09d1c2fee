"""Attack on the counts of successive periods by a reader who knows one of them.

If a count of one was published as the base, its random number is large. With the same number in the next
period, a published 0 would be a certain 0. The control draws by the codes alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables import problem as table_problems

from tests.attacks.office import Office, specification

TABLE = {"kind": "frequency", "tables": [["activity"]]}
BASE = 3


def persons(seed: int) -> pd.DataFrame:
    """Return persons with their numbers in 144 cells, most of them small."""
    counts = np.random.default_rng(seed).poisson(1.6, 144)
    frame = pd.DataFrame({"activity": np.repeat(np.arange(144), counts)})
    return frame.assign(firm=np.arange(len(frame)) + 1000 * seed)


def later(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the persons of the next period: a third left, and others entered."""
    stayed = frame.sample(frac=2 / 3, random_state=seed)
    come = persons(seed + 500).sample(frac=1 / 3, random_state=seed)
    return pd.concat([stayed, come], ignore_index=True)


def zeros_after_ones(keys: range, *, units: bool) -> tuple[int, float]:
    """Return the cells of 1 published as the base and then as 0, and the share that are originally 0."""
    shown = []
    for key in keys:
        office, first = Office(key), persons(key)
        second = later(first, key)
        then, now = (
            office.publish(frame, specification(frame, TABLE, units=units, period=period))
            for frame, period in ((first, "2025"), (second, "2026"))
        )
        both = then.merge(now, "left", on="activity", suffixes=("", "_now"))
        both = both.fillna({"true_now": 0, "published_now": 0})  # a code with zero counts only is not listed
        known = (both["true"] == 1) & (both["published"] == BASE) & (both["published_now"] == 0)
        shown.append(both.loc[known, "true_now"])
    found = pd.concat(shown)
    return len(found), float((found == 0).mean())


@pytest.mark.parametrize("units", [True, False], ids=["with units", "only counts"])
def test_published_zero_after_a_known_one_is_not_certain(units, monkeypatch):
    with monkeypatch.context() as planted:
        planted.setattr(table_problems, "draw_identities", lambda cells, *_: cells.tabulation.identities())
        cells, certain = zeros_after_ones(range(4), units=units)
    assert certain == 1, f"the attack on the control must succeed; {cells} cells"
    cells, certain = zeros_after_ones(range(4), units=units)
    assert cells >= 10
    assert certain < 0.85


@pytest.mark.long
@pytest.mark.parametrize("units", [True, False], ids=["with units", "only counts"])
def test_published_zero_after_a_known_one_is_equally_uncertain_over_many_keys(units):
    cells, certain = zeros_after_ones(range(60), units=units)
    assert cells >= 150
    assert certain < 0.8
