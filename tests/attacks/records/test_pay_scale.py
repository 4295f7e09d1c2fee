"""Tests that published means from a public pay scale determine no values; with all digits they do."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.records import block
from microguard.pipelines.records.block import protect_block
from microguard.pipelines.records.block_config import BlockConfig
from microguard.pipelines.records.blocks import BLOCK, Plan
from microguard.pipelines.records.coordinates import Coordinates
from microguard.pipelines.records.sampling_weights import SamplingWeights
from microguard.sdc.clusters.exact_values import ExactValues
from microguard.sdc.clusters.granularity import steps_of

from tests.attacks.records.pay_scale import Found, Publish, attack, pay_scale

RECORDS, STEPS = 400, 60
AT_MOST = 0.05
"""Share of the records whose class may have one candidate."""


def plain(candidates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return means with all their digits."""
    return (candidates * weights).sum(axis=1) / weights.sum(axis=1)


def stepped(deviation: float, candidates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the published means: the attacker knows the method and the deviation of the file."""
    rows = np.arange(len(candidates))
    steps = steps_of(candidates.ravel(), np.repeat(rows, candidates.shape[1]), deviation)
    return ExactValues(plain(candidates, weights)).rounded(steps, pa.float64()).values


def persons(seed: int, records: int = RECORDS) -> tuple[np.ndarray, pa.Table]:
    """Return a pay scale, and a block of persons on the scale with their age and sampling weight."""
    random = np.random.default_rng(seed)
    listed = pay_scale(random, STEPS)
    grade = np.clip(np.round(random.normal(STEPS / 2, STEPS / 5, records)), 0, STEPS - 1).astype(int)
    columns = {"pay": listed[grade], "age": np.round(random.uniform(20, 65, records))}
    weights = np.round(random.uniform(5, 50, records), 2)
    return listed, pa.table({**columns, "weight": weights, BLOCK: np.zeros(records, np.int64)})


def published(table: pa.Table, weighted: bool) -> pa.Table:
    """Return the published block."""
    scales = {}
    for name in ("pay", "age"):
        values = table[name].to_numpy()
        scales[name] = Scale(float(values.mean()), float(values.std(ddof=1)), len(values))
    one = pa.table({"records": [len(table)], "__first": [0], "__tree": [-1]})
    mean = float(table["weight"].to_numpy().mean())
    task = BlockConfig(
        secret=11, k=3, seed=1, effort="fast", algorithm="mdav", parameters=None, representative="auto",
        counted=None, min_diversity=1, sensitive=(), dominance=(1, 85.0), resume=None, nominal=(),
        plan=Plan(one, (), Coordinates(scales, {}), 1),
        sampling_weights=SamplingWeights("weight", mean, 3, None) if weighted else None,
    )  # fmt: skip
    protected, report, _ = protect_block(table, task)
    assert report["status"] == "done"
    return protected


def found(seed: int, weighted: bool, publish: Publish | None = None) -> Found:
    """Return the result of the attack on one file."""
    listed, table = persons(seed, 120 if weighted else RECORDS)
    pay = table["pay"].to_numpy()
    protected = published(table, weighted)
    rows = np.column_stack([protected[name].to_numpy() for name in ("pay", "age")])
    classes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    publish = publish or partial(stepped, float(pay.std(ddof=1)))
    weights = table["weight"].to_numpy() if weighted else None
    return attack(listed, pay, protected["pay"].to_numpy(), classes, publish, weights, sizes=(3,))


@pytest.mark.parametrize("weighted", [False, True])
def test_published_means_of_a_pay_scale_determine_hardly_any_class(weighted: bool) -> None:
    each = [found(seed, weighted) for seed in range(1 if weighted else 3)]
    assert sum(one.records for one in each) > 50
    assert max(one.determined / one.records for one in each) <= AT_MOST
    assert max(one.compact_right_mixed / one.mixed for one in each) < 0.5


@pytest.mark.long
def test_many_seeds_determine_no_more_classes_of_a_pay_scale() -> None:
    each = [found(seed, weighted=False) for seed in range(20)]
    assert max(one.determined / one.records for one in each) <= AT_MOST
    assert max(one.compact_right_mixed / one.mixed for one in each) < 0.5


@pytest.mark.parametrize(("weighted", "least"), [(False, 0.9), (True, 0.25)])
def test_control_means_with_all_digits_determine_classes_of_a_pay_scale(
    weighted: bool, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block, "_mean_protection", lambda *_: None)
    one = found(0, weighted, plain)
    assert one.determined_right / one.records >= least
    assert one.compact_right / one.records >= 0.9
