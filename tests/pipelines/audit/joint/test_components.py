"""Tests of component names, and of disclosures to attackers in systems of a few units."""

from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.audit.joint.attackers import ATTACKERS, learnt
from microguard.pipelines.audit.joint.components import components

from tests.pipelines.audit.joint.test_intervals import system_of

VALUES = np.array([50.0, 60, 70, 80, 90])


def system(matrix, releases, width=0.05, shift=()):
    """Return the system of sums of `VALUES` by release, each within an interval, some of them shifted."""
    sums = np.array(matrix) @ VALUES
    for row, by in shift:
        sums[row] += by
    return replace(system_of(matrix, sums - width, sums + width), row_release=np.array(releases))


def outsider(one):
    return learnt(one).known[ATTACKERS.index("outsider")]


def test_component_name_depends_on_the_single_statements_of_a_release():
    matrix = [[1, 1, 1, 0, 0], [0, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    alone, together = system(matrix, [0, 0, 1]), system(matrix, [0, 1, 1])
    assert (outsider(alone), outsider(together)) == (0, 1)
    (name,), (other,) = ([each.name for each in components(one)] for one in (alone, together))
    assert name != other


def test_component_name_does_not_depend_on_the_numbers_of_releases():
    matrix = [[1, 1, 1, 0, 0], [0, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    orders = ([0, 1, 2], [2, 0, 1], [5, 3, 0])
    names = {each.name for order in orders for each in components(system(matrix, order))}
    assert len(names) == 1


@pytest.mark.parametrize("leak", [False, True])
def test_contradictory_statements_do_not_hide_a_leak(leak):
    rest = [0, 1, 1, 0, 0] if leak else [1, 0, 0, 1, 0]
    matrix = [[1, 1, 1, 0, 0], rest, [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]]
    found = learnt(system(matrix, [0, 1, 2, 3], shift=[(3, 5)]))
    assert found.contradictory == 1
    assert found.known[ATTACKERS.index("outsider")] == leak
