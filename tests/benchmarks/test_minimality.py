"""Tests that the minimality attack fails with mitigation and succeeds without it."""

import numpy as np
import pytest

from tests.benchmarks.minimality import attacked, attacked_mergers


@pytest.mark.long
def test_minimality_attack_on_changes_succeeds_only_without_mitigation():
    bare = attacked(600, 3, 2, False, 0)
    assert bare.right >= 0.95
    assert bare.expected < 0.75
    # these cases are the worst ones with less perturbation
    concealed = [attacked(600, 3, 2, True, seed) for seed in (1, 2)]
    right, expected = (np.mean([getattr(each, name) for each in concealed]) for name in ("right", "expected"))
    assert right < expected + 0.15
    assert max(each.odds for each in concealed) < 3
    assert max(each.loss for each in concealed) < 1.3 * bare.loss


def test_minimality_attack_on_mergers_succeeds_only_without_mitigation():
    bare = attacked_mergers(1_200, 5, 2, False, 0)
    assert bare.right >= 0.9
    assert bare.odds > 4
    for seed in range(3):
        concealed = attacked_mergers(1_200, 5, 2, True, seed)
        assert concealed.odds < 3
        assert concealed.loss < 1.1 * bare.loss
