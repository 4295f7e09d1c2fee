"""Tests of the synthetic register: updates have the events of their names, and depend only on the seed."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pytest

from tests.benchmarks.registers.stream import TRACE, UNIT, register_updates


@pytest.fixture(scope="module")
def nights():
    return list(register_updates("mixed", 1_200, 12, 1))


def changes(before, after):
    """Return entrants, exits, and units with changed values."""
    one, other = before.frame.set_index(UNIT).sort_index(), after.frame.set_index(UNIT).sort_index()
    both = one.index.intersection(other.index)
    corrected = (one.loc[both] != other.loc[both]).any(axis=1).sum()
    return len(other.index.difference(one.index)), len(one.index.difference(other.index)), int(corrected)


def test_stream_has_each_unit_once_per_update_with_its_identifying_column(nights):
    for night in nights:
        assert night.frame[UNIT].is_unique
        assert night.frame[TRACE].is_unique


def test_stream_events_have_their_named_effects(nights):
    changed = {after.event: changes(before, after) for before, after in pairwise(nights)}
    assert changed["empty"] == (0, 0, 0)
    assert changed["few"] == (1, 1, 0)
    assert changed["burst"][0] == pytest.approx(60, abs=2)
    assert changed["mass departure"][1] == pytest.approx(120, abs=12)
    assert changed["region emptied"][1] > 200
    assert changed["region returns"][0] > 200
    assert changed["taken back"][2] > 20


def test_stream_returns_only_units_of_earlier_updates(nights):
    position = next(i for i, night in enumerate(nights) if night.event == "return")
    before = pd.concat([night.frame[UNIT] for night in nights[: position - 1]]).unique()
    came = set(nights[position].frame[UNIT]) - set(nights[position - 1].frame[UNIT])
    assert len(came & set(before)) > len(came) / 2


def test_stream_depends_only_on_the_seed(nights):
    again = register_updates("mixed", 1_200, 3, 1)
    for one, other in zip(nights, again, strict=False):
        pd.testing.assert_frame_equal(one.frame, other.frame)
