"""Intrinsics in plain Python, so that kernels that call them can run uncompiled."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.lanes import LANES


def _in_lanes(terms):
    lanes, whole = np.zeros(LANES), len(terms) // LANES * LANES
    for start in range(0, whole, LANES):
        lanes += terms[start : start + LANES]
    for term in terms[whole:]:
        lanes[0] += term
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


def _inner_product(x, y):
    return _in_lanes(x * y)


def _exchange(x, y, here, there, both):
    apart = y - x
    return _in_lanes(apart * (both * apart + (here - there)))


def _add_multiple(sums, factor, x):
    sums += factor * x


def _squares(apart, squares):
    total = np.zeros(apart.shape[1])
    for row in apart:
        total += row * row
    squares[:] = total


def _squared_distances(points, centre, start, stop, squares):
    stop += -(stop - start) % 8
    _squares(points[:, start:stop] - centre[:, np.newaxis], squares[start:stop])


def _squared_distances_from_boxes(low, high, centre, squares):
    with np.errstate(invalid="ignore"):
        below, above = low - centre[:, np.newaxis], centre[:, np.newaxis] - high
        _squares(np.maximum(np.maximum(below, above), 0.0), squares)


def _farthest(distances, ranks, count):
    among = np.flatnonzero(distances[:count] == distances[:count].max(initial=-1.0))
    return int(among[np.argmin(ranks[among])]) if len(among) else 0


def _insert_key(keys, row, key):
    if key not in keys[row]:
        keys[row] = np.sort(np.append(keys[row], key))[:-1]


MEANINGS = {
    meaning.__name__: meaning
    for meaning in (
        _inner_product,
        _exchange,
        _add_multiple,
        _squared_distances,
        _squared_distances_from_boxes,
        _farthest,
        _insert_key,
    )
}
