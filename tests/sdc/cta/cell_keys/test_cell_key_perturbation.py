"""Tests of cell keys against the package cell-key-perturbation of the Office for National Statistics.

Both add the record keys of a cell modulo the key range, and look up the noise by count and key. The package
has keys from 0 to 255 and a p-table with a line for each count and key. It also suppresses counts below a
threshold, and uses the lines of 501 to 750 again for counts above 750.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.cta.cell_keys.noise_table import KEY_SPAN, NoiseTable
from microguard.sdc.errors import InvalidParameter

KEYS = 256
#: Original count, published count, probability in 256ths; the last row applies to all larger counts.
LINES = [
    (0, 0, 256), (1, 0, 192), (1, 3, 32), (1, 5, 32), (2, 0, 128), (2, 4, 128), (3, 0, 64), (3, 4, 192),
    (4, 3, 128), (4, 5, 128), (5, 3, 64), (5, 5, 128), (5, 7, 64),
]  # fmt: skip
#: A few cells by the published rule of the package: keys of their records, and the published count.
STORED = [
    ([191], 0), ([192], 3), ([250], 5), ([100, 27], 0), ([100, 28], 4), ([255, 255, 1], 4), ([10, 20, 33], 0),
    ([60, 60, 60, 60], 5), ([60, 60, 7, 0], 3), ([63, 0, 0, 0, 0], 3), ([64, 0, 0, 0, 0], 5),
    ([64, 128, 0, 0, 0, 0], 8), ([], 0),
]  # fmt: skip


def noise_table():
    lines = np.array(LINES)
    return NoiseTable.from_transitions(lines[:, 0], lines[:, 1], lines[:, 2] / KEYS)


def perturbed(counts, sums):
    """Return our published counts; a key of 256 values is the first 8 bits of our key."""
    return noise_table().perturb(np.array(counts), np.array(sums, np.uint64) % KEYS * (KEY_SPAN // KEYS))


def of_package():
    """Return the same noise as a p-table of the package: pcv, ckey and pvalue."""
    rows = {}
    for count, published, weight in LINES:
        rows.setdefault(count, []).extend([published - count] * weight)
    last = max(rows)
    lines = [(count, key, rows[min(count, last)][key]) for count in range(1, 751) for key in range(KEYS)]
    return pd.DataFrame(lines, columns=["pcv", "ckey", "pvalue"])


def test_stored_cells_are_published_by_the_rule_of_cell_key_perturbation():
    counts, sums = [len(keys) for keys, _ in STORED], [sum(keys) for keys, _ in STORED]
    assert perturbed(counts, sums).tolist() == [published for _, published in STORED]


def test_published_counts_equal_the_output_of_the_package_cell_key_perturbation():
    package = pytest.importorskip(
        "cell_key_perturbation.create_perturbed_table", reason="cell-key-perturbation is not installed"
    )
    rng = np.random.default_rng(4)
    size = 6000
    weights = np.geomspace(1, 2000, 20)
    data = pd.DataFrame(
        {
            "area": rng.choice(20, size, p=weights / weights.sum()).astype(str),
            "age": rng.choice(["a", "b", "c", "d"], size, p=[0.6, 0.3, 0.09, 0.01]),
            "record_key": rng.integers(0, KEYS, size),
        }
    )
    table = package.create_perturbed_table(data, of_package(), ["area"], ["age"], "record_key", threshold=0)
    assert len(table) > 60
    assert table["pre_sdc_count"].max() > 500
    sums = data.groupby(["area", "age"])["record_key"].sum()
    keys = table.set_index(["area", "age"]).index.map(sums).fillna(0).to_numpy()
    shown = perturbed(table["pre_sdc_count"].to_numpy(), keys)
    assert shown.tolist() == table["count"].tolist()
    assert np.mean(shown != table["pre_sdc_count"]) > 0.3


def test_p_table_of_the_10_5_rule_is_refused_because_it_is_biased():
    """The example of the package rounds to 5 and publishes 0 below 10 for every key."""
    counts = np.arange(16)
    published = np.where(counts < 10, 0, 5 * np.rint(counts / 5))
    with pytest.raises(InvalidParameter, match="mean 0"):
        NoiseTable.from_transitions(counts, published, np.ones(16))
