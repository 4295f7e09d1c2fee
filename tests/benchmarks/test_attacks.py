"""Tests of the attack programs on a release that can be solved by hand."""

import numpy as np
import pandas as pd
import pytest

from tests.benchmarks.attacks import NUMBER, Release, attacked


def released(income, job):
    original = pd.DataFrame(
        {
            "region": ["n"] * 6,
            "income": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0],
            "occupation": job,
            "illness": ["a", "a", "a", "b", "c", "d"],
            NUMBER: range(6),
        }
    )
    published = original.assign(income=income).sample(frac=1, random_state=3).reset_index(drop=True)
    names = (("income",), ("income",), ("region", "occupation", "illness"), ("illness",), ("region",))
    return Release(published, original, 3, *names)


def test_attack_finds_one_of_k_with_protected_variables_and_all_with_further_variables():
    attack = attacked(released([2.0] * 3 + [12.0] * 3, ["x", "y", "z"] * 2))
    assert attack["linked by distance"] == pytest.approx(1 / 3)
    assert attack["found by a colleague"] == pytest.approx(1.0)
    assert attack["told to a colleague"] == pytest.approx(1.0)
    assert attack["homogeneous in illness"] == pytest.approx(0.5)
    assert attack["illness guessed by class"] == pytest.approx(4 / 6)
    assert attack["illness guessed without a release"] == pytest.approx(0.5)
    assert attack["unique on protected variables"] == 0.0
    assert attack["unique on all columns"] == 1.0


def test_attack_finds_every_record_of_an_unprotected_release():
    attack = attacked(released(np.array([1.0, 2, 3, 11, 12, 13]), ["x"] * 6))
    assert attack["linked by distance"] == 1.0
    assert attack["the same with one plain column, worst"] == 1.0
