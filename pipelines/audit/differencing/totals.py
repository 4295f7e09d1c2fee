"""Published totals of two releases that fewer than k records tell apart: subtract one from the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.histories import Histories, mix_bits

#: What a reader can add up and subtract, of one release and of another.
_LEVELS = (
    ("class", "class"),
    ("region", "region"),
    ("class", "region"),
    ("region", "class"),
    ("file", "file"),
)


def close_totals(releases: Sequence[Classes], records: Histories) -> int:
    """Pairs of sums (of a class, a region, the file) of two releases that fewer than k records tell apart.

    A sum of the same records counts once, in however many releases it is.

    Parameters
    ----------
    releases : sequence of Classes
    records : Histories
        By record, of these releases.
    """
    weights = records.sizes.astype(np.int64)
    most = max(release.k for release in releases)
    if weights.min(initial=most) >= most:
        return 0  # totals differ by whole histories
    labels = [_labels(release, records) for release in releases]
    marks = mix_bits(np.arange(len(records)), 7)
    pairs = set[tuple[int, int]]()
    for i, j in combinations(range(len(releases)), 2):
        k = max(releases[i].k, releases[j].k)
        for left, right in _LEVELS:
            pairs |= _close(labels[i][left], labels[j][right], weights, marks, k)
    return len(pairs)


def _labels(release: Classes, records: Histories) -> dict[str, np.ndarray]:
    """Class, region and file of each history in a release, -1 where it is not in it."""
    class_of = np.full(len(records), -1, np.int64)
    class_of[records.history_of[release.record]] = release.class_of
    present = class_of >= 0
    region = np.where(present, release.region[np.maximum(class_of, 0)], -1)
    return {"class": class_of, "region": region, "file": np.where(present, 0, -1)}


def _close(
    left: np.ndarray, right: np.ndarray, weights: np.ndarray, marks: np.ndarray, k: int
) -> set[tuple[int, int]]:
    """Pairs with a member in common whose symmetric difference has at least one and fewer than k.

    `marks` (h,) are mixed bits of each history: sums of them tell sets of histories apart.
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
    of_left, of_right = (_marks(each, marks) for each in (left, right))
    ends = zip(of_left[close // width].tolist(), of_right[close % width].tolist(), strict=True)
    return {(min(pair), max(pair)) for pair in ends}


def _marks(label: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """A mark of the histories that each label has."""
    sums = np.zeros(int(label.max(initial=-1)) + 1, np.uint64)
    np.add.at(sums, label[label >= 0], marks[label >= 0])
    return sums
