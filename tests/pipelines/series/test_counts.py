"""Tests of the public shares of an update by region: no share reveals a change of fewer than k units."""

import pyarrow as pa
from microguard.pipelines.series.counts import public_shares
from microguard.pipelines.series.settings import REGION


def shares(published, units):
    table = pa.table({REGION: ["n"], "published": [published], "ghosts": [units], "waiting": [0]})
    (row,) = public_shares(table, 3)
    assert row["waiting"] == 0.0
    return row["ghosts"]


def test_public_shares_hide_the_exit_of_fewer_than_k_units():
    """In a region of ten units, a share of 0.1 reveals one exit; in a region of thirty, 0.05 does."""
    assert [shares(10, units) for units in range(6)] == [0.0, 0.0, 0.0, 0.3, 0.3, 0.6]
    assert [shares(30, units) for units in range(4)] == [0.0, 0.0, 0.0, 0.1]


def test_public_shares_of_large_regions_are_multiples_of_a_twentieth():
    assert [shares(1_000, units) for units in (2, 24, 26, 80, 1_000)] == [0.0, 0.0, 0.05, 0.1, 1.0]
