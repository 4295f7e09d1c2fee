"""Tests that the independent check finds every violation."""

import numpy as np
from microguard.sdc.cta.table.check import check

from tests.sdc.cta.tables import random_grid


def test_check_finds_each_violation():
    table = random_grid((2, 2), 0, sensitive=0.0)
    cell = int(np.flatnonzero(table.sensitive)[0])
    assert check(table, table.values).unprotected.tolist() == [cell]
    up = table.values.copy()
    up[cell] += table.upper_protection[cell]
    faults = check(table, up)
    assert len(faults.unprotected) == 0
    assert len(faults.broken_constraints) == 2
    far = table.values.copy()
    far[4] += 2 * table.upper_capacity[4]
    assert 4 in check(table, far).beyond_capacity
    between = table.values.copy()
    between[cell] += 1.5 * table.upper_protection[cell]
    assert check(table, between, "exact").not_minimal.tolist() == [cell]
