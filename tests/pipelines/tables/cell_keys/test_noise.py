"""Tests of counts with cell-key noise: reused, examined, verified, refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.tables.cell_keys.measures import NoiseComparison
from microguard.pipelines.tables.cell_keys.noise import (
    attacked,
    noise_table,
    published_counts,
    standing_counts,
)
from microguard.pipelines.tables.published_before import PublishedValues, StandingValueFails, new_cells
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN

from tests.pipelines.tables.manifests import manifest_of
from tests.pipelines.tables.test_published_before import COUNTS, ORIGIN, counted
from tests.schemas.specification.test_table import build

NOISY = COUNTS | {"method": "cell_key"}


def keyed(cells, seed=0):
    """Return keys of all cells from keys of internal cells, as records add them up."""
    finest = (cells.codes != "Total").all(axis=1).to_numpy()
    drawn = np.random.default_rng(seed).integers(0, KEY_SPAN, len(cells)).astype(np.uint64)
    drawn = np.where(finest & (cells.units > 0), drawn, 0).astype(np.uint64)
    keys = np.zeros(len(cells), np.uint64)
    codes, columns = cells.codes, list(cells.codes)
    for row in range(len(cells)):
        free = [name for name in columns if codes[name][row] != "Total"]
        inside = finest & (codes[free] == codes.loc[row, free]).all(axis=1).to_numpy()
        keys[row] = drawn[inside].sum() % KEY_SPAN
    return keys


def nothing_standing(cells):
    return PublishedValues(np.zeros(len(cells), dtype=bool), np.zeros(len(cells)))


def test_cells_of_the_same_records_have_equal_noise_within_its_limits() -> None:
    specification = build(NOISY)
    cells = counted(specification)
    noise = noise_table(specification)
    assert (noise.parameters.k, noise.parameters.largest, noise.parameters.variance) == (3, 5, 2)
    shown = published_counts(cells, keyed(cells), noise, nothing_standing(cells))
    assert not np.any((shown > 0) & (shown < 3))
    assert np.all(shown[cells.units == 0] == 0)
    assert 0 < np.abs(shown - cells.units).max() <= 5
    alone = (cells.codes["a10"] == "CC").to_numpy()  # CC has C as its only part
    by_region = cells.codes[alone].assign(shown=shown[alone]).groupby("region")["shown"]
    assert (by_region.nunique() == 1).all()


def test_published_value_is_reused_for_all_cells_of_its_records_or_the_table_is_refused() -> None:
    specification = build(NOISY)
    cells, noise = counted(specification), noise_table(specification)
    keys = keyed(cells)
    shown = published_counts(cells, keys, noise, nothing_standing(cells))
    total = (cells.codes == "Total").all(axis=1).to_numpy()
    other = np.where(total, shown + np.where(shown > cells.units, -2, 2), 0.0)
    kept = published_counts(cells, keys, noise, PublishedValues(total, other))
    assert kept[total] == other[total]
    assert np.array_equal(kept[~total], shown[~total])
    pair = ((cells.codes["a10"] == "CC") & (cells.codes["region"] == "n")).to_numpy()
    assert pair.sum() == 2
    one = np.flatnonzero(pair)[:1]
    standing = PublishedValues(np.isin(np.arange(len(cells)), one), cells.units)
    assert np.all(published_counts(cells, keys, noise, standing)[pair] == cells.units[one])
    for wrong in (other + 30, np.where(total, 1.0, 0.0)):
        with pytest.raises(StandingValueFails, match="source was revised"):
            published_counts(cells, keys, noise, PublishedValues(total, wrong))
    twice = PublishedValues(pair, np.where(pair, cells.units + np.cumsum(pair) - 1, 0))
    with pytest.raises(StandingValueFails, match="two different values"):
        published_counts(cells, keys, noise, twice)


def test_new_cells_next_to_published_cells_are_refused_unless_a_steward_accepts_them() -> None:
    specification = build(NOISY)
    table, cells = specification.table, counted(specification)
    assert table is not None
    listed = new_cells(cells, table, cells.units, None, ORIGIN)
    elsewhere = replace(listed[0], codes=(("size", "small"),))
    assert standing_counts(cells, table, [*listed, elsewhere], accepted=False).published.all()
    with pytest.raises(StandingValueFails, match="All tables together may disclose"):
        standing_counts(cells, table, [*listed[1:], elsewhere], accepted=False)
    assert not standing_counts(cells, table, [*listed[1:], elsewhere], accepted=True).published.all()


def test_equal_cells_are_examined_once_and_every_interval_contains_the_original_value() -> None:
    specification = build(NOISY)
    cells, noise = counted(specification), noise_table(specification)
    shown = published_counts(cells, keyed(cells), noise, nothing_standing(cells))
    noisy = attacked(cells, shown, noise, most_cells=50, seed=1)
    intervals = noisy.intervals
    counts = cells.units[intervals.cells]
    assert np.all((intervals.lower <= counts) & (counts <= intervals.upper))
    assert np.all((counts > 0) & (counts < 3))
    alike = cells.codes["a10"].to_numpy() == "CC"
    assert np.sum(alike[noisy.examined]) <= alike.sum() / 2
    few = attacked(cells, shown, noise, most_cells=1, seed=1)
    assert len(few.intervals.cells) == 1
    sections = NoiseComparison(specification.table, cells, noisy).sections
    assert sections["metrics"]["linked_posterior"] == noisy.linked.max()
    assert sections["noise"]["residual"] == np.abs(cells.tabulation.relations @ shown).max()
    assert sum(part["cells"] for part in sections["noise"]["by_dimension"].values()) == len(cells)


def test_manifest_states_the_noise_and_that_tables_are_not_additive() -> None:
    specification = build(NOISY | {"largest_noise": 8, "noise_variance": 4.0})
    manifest = manifest_of(specification)
    assert manifest["method"] == {"name": "cell keys", "largest": 8, "variance": 4.0, "least": 3}
    assert "it is off by 8 at the most" in manifest["guarantee"]
    assert any("do not add up" in limit for limit in manifest["limits"])
