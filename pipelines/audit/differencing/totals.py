"""Search for pairs of totals in two releases whose difference is a sum over fewer than k records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.histories import Histories, mix_bits

#: Levels of totals that a reader can subtract from each other.
_LEVELS = (
    ("class", "class"),
    ("region", "region"),
    ("class", "region"),
    ("region", "class"),
    ("file", "file"),
)


def close_totals(releases: Sequence[Classes], records: Histories) -> int:
    """Count the pairs of totals (class, region or file) of two releases whose records differ by fewer than k.

    Totals of the same records in several releases count once.

    Parameters
    ----------
    releases : sequence of Classes
    records : Histories
        Histories of the records of these releases.
    """
    weights = records.sizes.astype(np.int64)
    most = max(release.k for release in releases)
    if weights.min(initial=most) >= most:
        return 0  # differences contain complete histories, thus at least k records
    labels = [_labels(release, records) for release in releases]
    hashes = mix_bits(np.arange(len(records)), 7)
    pairs = set[tuple[int, int]]()
    for i, j in combinations(range(len(releases)), 2):
        k = max(releases[i].k, releases[j].k)
        for left, right in _LEVELS:
            pairs |= _close(labels[i][left], labels[j][right], weights, hashes, k)
    return len(pairs)


def _labels(release: Classes, records: Histories) -> dict[str, np.ndarray]:
    """Return the class, region and file of each history in a release; -1 if the release does not
    contain it.
    """
    class_of = np.full(len(records), -1, np.int64)
    class_of[records.history_of[release.record]] = release.class_of
    present = class_of >= 0
    region = np.where(present, release.region[np.maximum(class_of, 0)], -1)
    return {"class": class_of, "region": region, "file": np.where(present, 0, -1)}


def _close(
    left: np.ndarray, right: np.ndarray, weights: np.ndarray, hashes: np.ndarray, k: int
) -> set[tuple[int, int]]:
    """Return pairs of totals that have common records and a symmetric difference of 1 to k - 1 records.

    A total is identified by the sum of `hashes` (h,) over its histories.
    """
    common_records = (left >= 0) & (right >= 0)
    if not common_records.any():
        return set()
    size = [np.bincount(each[each >= 0], weights[each >= 0]) for each in (left, right)]
    width = len(size[1])
    pair, place = np.unique(left[common_records] * width + right[common_records], return_inverse=True)
    common = np.bincount(place, weights[common_records])
    apart = size[0][pair // width] + size[1][pair % width] - 2 * common
    close = pair[(apart > 0.5) & (apart < k - 0.5)]
    of_left, of_right = (_hashes(each, hashes) for each in (left, right))
    ends = zip(of_left[close // width].tolist(), of_right[close % width].tolist(), strict=True)
    return {(min(pair), max(pair)) for pair in ends}


def _hashes(label: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Return for each total the sum of the hashes of its histories."""
    sums = np.zeros(int(label.max(initial=-1)) + 1, np.uint64)
    np.add.at(sums, label[label >= 0], hashes[label >= 0])
    return sums
