"""Canonical order of records by content, and numbering of distinct records.

Records are sorted by a hash of their content. This takes one pass, while a lexicographic sort takes one per
column. If hashes are equal, the content itself decides.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import borrowing, kernel

#: Expected number of records per bucket, and the largest number that is sorted by insertion.
BUCKET, MOST_INSERTED = 8, 40

_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
#: Bit pattern of -0.0, which counts as 0.0.
_SIGN = np.uint64(1 << 63)


def content_order(columns: list[np.ndarray]) -> np.ndarray:
    """Return the order of records given as numeric columns (n,), (n,) int64: by hash, content, position."""
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        _mix(hashes, _bits(column)[:, np.newaxis])
    order, hashes = _by_hash(hashes)
    repeats = 1 + np.flatnonzero(hashes[1:] == hashes[:-1])
    if all(np.array_equal(column[order[repeats]], column[order[repeats - 1]]) for column in columns):
        return order
    places = np.union1d(repeats, repeats - 1)
    among = order[places]
    within = np.lexsort((*(column[among] for column in reversed(columns)), hashes[places]))
    order[places] = among[within]
    return order


def deduplicate(values: np.ndarray) -> np.ndarray:
    """Return a number from 0 for each record, (n,) int64; records with equal coordinates get the same number.

    If the hashes of two different records collide, equal records may get two numbers.

    Parameters
    ----------
    values : (n, p) float64 array, C-contiguous
    """
    hashes = np.zeros(len(values), dtype=np.uint64)
    _mix(hashes, values.view(np.uint64))
    order, hashes = _by_hash(hashes)
    fresh = np.zeros(len(values), dtype=bool)
    fresh[1:] = hashes[1:] != hashes[:-1]
    same = 1 + np.flatnonzero(~fresh[1:])
    fresh[same] = np.any(values[order[same]] != values[order[same - 1]], axis=1)
    content_ids = np.empty(len(values), dtype=np.int64)
    content_ids[order] = np.cumsum(fresh)
    return content_ids


def _bits(column: np.ndarray) -> np.ndarray:
    return column.view(np.uint64) if column.dtype == np.float64 else column.astype(np.uint64)


def _by_hash(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions in stable order of the hashes, and the sorted hashes."""
    order, ordered = np.empty(len(hashes), dtype=np.int64), np.empty_like(hashes)
    _sort(hashes, order, ordered)
    return order, ordered


@kernel
def _mix(hashes, bits):
    """Mix the words bits[i] into the hash of record i."""
    for i in range(len(hashes)):
        mixed = hashes[i]
        for d in range(bits.shape[1]):
            word = bits[i, d]
            mixed = (mixed ^ (np.uint64(0) if word == _SIGN else word)) * _FACTOR
            mixed ^= mixed >> _SHIFT
        hashes[i] = mixed


@kernel
def _sort(hashes, order, ordered):
    """Sort stably by hash. Hashes are uniformly distributed, so buckets by their leading bits are small."""
    bits = 1
    while BUCKET << bits < len(hashes):
        bits += 1
    shift = np.uint64(64 - bits)
    stops = np.zeros(1 << bits, dtype=np.int64)
    for one in hashes:
        stops[one >> shift] += 1
    total = 0
    for bucket in range(len(stops)):
        total += stops[bucket]
        stops[bucket] = total - stops[bucket]
    for i in range(len(hashes)):
        bucket = hashes[i] >> shift
        place = stops[bucket]
        order[place], ordered[place] = i, hashes[i]
        stops[bucket] += 1
    for bucket in range(len(stops)):
        start, stop = stops[bucket - 1] if bucket > 0 else 0, stops[bucket]
        if stop - start > MOST_INSERTED:
            ranks = np.argsort(ordered[start:stop], kind="mergesort")
            order[start:stop], ordered[start:stop] = order[start:stop][ranks], ordered[start:stop][ranks]
        else:
            _insert(order, ordered, start, stop)


@borrowing
def _insert(order, ordered, start, stop):
    """Sort the range [start, stop) by insertion."""
    for t in range(start + 1, stop):
        i, one, place = order[t], ordered[t], t
        while place > start and ordered[place - 1] > one:
            order[place], ordered[place] = order[place - 1], ordered[place - 1]
            place -= 1
        order[place], ordered[place] = i, one
