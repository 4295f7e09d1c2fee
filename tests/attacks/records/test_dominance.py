"""Tests that the second largest contributor of a class or region cannot compute the largest from published
means.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.records import block
from microguard.pipelines.records.block import protect_block
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import BLOCK, Plan
from microguard.pipelines.records.coordinates import Coordinates

from tests.attacks.records.dominance import Known, attack

REGIONS, SIZE = 60, 15


def businesses(seed: int) -> pa.Table:
    """Return blocks of a survey, one region each: turnover and production of businesses of very different
    sizes.
    """
    random = np.random.default_rng(seed)
    n = REGIONS * SIZE
    turnover = np.round(random.lognormal(6.0, 2.5, n), 2)
    production = np.round(turnover * random.uniform(0.05, 0.9, n), 2)
    return pa.table(
        {"turnover": turnover, "production": production, BLOCK: np.repeat(np.arange(REGIONS), SIZE)}
    )


def found(seed: int) -> tuple[Known, Known]:
    """Return the result of the attack by class and by region, on the turnover of one file."""
    table = businesses(seed)
    scales = {}
    for name in ("turnover", "production"):
        values = table[name].to_numpy()
        scales[name] = Scale(float(values.mean()), float(values.std(ddof=1)), len(values))
    plan = Plan(pa.table({"records": [SIZE], "__first": [0], "__tree": [-1]}), (), Coordinates(scales, {}), 1)
    task = BlockConfig(
        secret=seed, k=3, seed=1, effort="fast", algorithm="mdav", parameters=None, representative="auto",
        counted=None, min_diversity=1, sensitive=(), dominance=(1, 85.0), resume=None, nominal=(), plan=plan,
    )  # fmt: skip
    regions = table[BLOCK].to_numpy()
    parts, known = [], 0
    for region in range(REGIONS):
        protected, report, _ = protect_block(table.slice(region * SIZE, SIZE), task)
        assert report["status"] == "done"
        known += report["p_percent"]["turnover"][1]
        parts.append(protected)
    shown = pa.concat_tables(parts)
    values, after = table["turnover"].to_numpy(), shown["turnover"].to_numpy()
    rows = np.column_stack([regions, after, shown["production"].to_numpy()])
    classes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    ones = np.ones(len(values))
    by_class = attack(values, after, classes, ones, seed)
    assert by_class.naive == known  # the run counts the groups that the attack finds
    return by_class, attack(values, after, regions, ones, seed)


def test_second_largest_contributor_does_not_compute_the_largest_from_a_published_mean() -> None:
    each = [found(seed) for seed in range(5)]
    classes = [by_class for by_class, _ in each]
    assert min(one.forbidden for one in classes) > 30
    assert sum(one.naive for one in classes) == 0
    # a random guess is correct in half of the cells
    assert max(one.informed / one.forbidden for one in classes) < 0.65
    assert max(one.within_one_percent / one.forbidden for one in classes) < 0.2
    regions = [by_region for _, by_region in each]
    assert sum(one.forbidden for one in regions) > 20
    assert sum(one.naive for one in regions) / sum(one.forbidden for one in regions) < 0.1


def test_control_unmoved_means_disclose_the_largest_contributor_to_the_second_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block, "_mean_protection", lambda *_: None)
    by_class, by_region = found(0)
    assert by_class.naive == by_class.forbidden > 20
    assert by_region.naive == by_region.forbidden > 0


@pytest.mark.long
def test_many_seeds_do_not_disclose_the_largest_contributor_to_the_second_largest() -> None:
    each = [found(seed) for seed in range(20)]
    assert sum(by_class.naive for by_class, _ in each) == 0
    assert max(by_class.informed / by_class.forbidden for by_class, _ in each) < 0.65
    assert max(by_class.within_one_percent / by_class.forbidden for by_class, _ in each) < 0.2
    regions = [by_region for _, by_region in each]
    assert sum(one.naive for one in regions) / sum(one.forbidden for one in regions) < 0.1


if __name__ == "__main__":  # print the figures of docs/attacks.md
    for number in range(5):
        print(*found(number))
