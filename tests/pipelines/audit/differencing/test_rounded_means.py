"""Tests of rounded means: each mean is known up to its rounding step."""

from __future__ import annotations

import numpy as np
from microguard.pipelines.audit.differencing.cells import rounding_of_means


def test_mean_is_known_to_half_of_the_step_that_divides_it():
    values = np.array([4050.0, 4100.0, 4026.33, 9000.0, 1000.0])
    assert rounding_of_means(values, 0.01).tolist() == [25.0, 50.0, 0.005, 50.0, 25.0]


def test_rounding_step_is_between_the_unit_of_the_column_and_the_limit_of_the_rule():
    ages = np.array([30.0, 40.0, 50.0, 45.0])
    assert rounding_of_means(ages, 1.0).tolist() == [0.5] * 4
    assert rounding_of_means(np.zeros(3), 1.0).tolist() == [0.5] * 3
    assert rounding_of_means(np.array([]), 1.0).tolist() == []
