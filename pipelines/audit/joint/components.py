"""Split of a system into components without common unknowns, each named by a hash of its content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from microguard.pipelines.audit.differencing.histories import mix_bits
from microguard.pipelines.audit.joint.system import MIXED, STRUCTURE, System
from scipy import sparse
from scipy.sparse.csgraph import connected_components

#: Maximum number of units in a set whose values are searched in a public list of values.
MOST_UNITS = 4
#: Maximum relative width of an interval that counts as a single value. If the ends of an interval cross by
#: more, statements contradict each other.
FIXED, CROSSED = 1e-12, 1e-9


@dataclass(frozen=True)
class Component:
    """Part of a system that shares no open unknown with the rest of the system.

    Attributes
    ----------
    system : System
    name : str
        Hash of all its statements; equal content has equal hashes.
    """

    system: System
    name: str


def components(system: System) -> Iterator[Component]:
    """Return the components that contain secrets and statements of at least two releases."""
    lower, upper = system.bounds()
    fixed = _is_fixed(lower, upper)
    value = np.where(fixed, (np.where(fixed, lower, 0) + np.where(fixed, upper, 0)) / 2, 0.0)
    known = system.rows @ value
    shifted = _attributed(replace(system, low=system.low - known, high=system.high - known), fixed)
    open_unknowns = np.flatnonzero(~fixed)
    kept = np.flatnonzero(np.diff(shifted.rows[:, open_unknowns].tocsr().indptr) > 0)
    part = shifted.part(open_unknowns, kept)
    low, high = (np.where(np.abs(end) < 1e-9, 0.0, end) for end in (part.low, part.high))
    yield from _split(replace(part, rows=_without_zeros(part.rows), low=low, high=high))


def published_secrets(system: System) -> tuple[np.ndarray, np.ndarray]:
    """Return the secret cells whose true value other releases publish.

    Returns
    -------
    cells, second : (n,) bool arrays
        Cells whose value is known, and those of them whose second largest contributor learns the largest
        value.
    """
    lower, upper = system.bounds()
    own = _is_fixed(system.said_low, system.said_high) & system.said_secret
    accepted = np.zeros(len(system), bool)
    accepted[system.said[own]] = True
    found = _is_fixed(lower, upper) & system.secret & (system.units == 0) & ~accepted & (upper > 0)
    with np.errstate(invalid="ignore"):
        near = np.abs(upper - system.second - system.largest) <= 0.01 * system.largest
    return found, found & near & (system.second > 0)


def _is_fixed(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        width, size = upper - lower, 1 + np.abs(lower)
        return np.isfinite(lower) & np.isfinite(upper) & (width <= FIXED * size) & (width >= -CROSSED * size)


def _attributed(system: System, fixed: np.ndarray) -> System:
    """Copy rows whose unknowns are fixed, one copy for each release that states the row alone."""
    releases = 1 + max(int(system.said_release.max(initial=0)), int(system.row_release.max(initial=0)))
    own = _is_fixed(system.said_low, system.said_high)
    shape = (len(system), releases)
    fixers = sparse.csr_matrix((np.ones(int(own.sum())), (system.said[own], system.said_release[own])), shape)
    fixers.data[:] = 1.0
    incidence = system.rows.copy()
    incidence.data[:] = 1.0
    incidence = incidence @ sparse.diags(fixed.astype(float))
    needed = np.asarray(incidence.sum(axis=1)).reshape(-1)
    stated = (incidence @ fixers).tocoo()
    whole = stated.data == needed[stated.row]
    rows, of = stated.row[whole], stated.col[whole]
    mine = (system.row_release[rows] == STRUCTURE) | (system.row_release[rows] == of)
    rows, of = rows[mine], of[mine]
    plain = np.flatnonzero(needed == 0)
    mixed = np.setdiff1d(np.flatnonzero(needed > 0), rows)
    order = np.concatenate([plain, rows, mixed]).astype(np.int64)
    release = np.concatenate([system.row_release[plain], of, np.full(len(mixed), MIXED)])
    return replace(system.with_rows(order), row_release=release)


def _without_zeros(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    return matrix


def _split(part: System) -> Iterator[Component]:
    n, m = len(part), len(part.low)
    graph = sparse.bmat([[None, part.rows], [part.rows.T, None]], format="csr") if m else sparse.csr_matrix(
        (n, n))  # fmt: skip
    count, of = connected_components(graph, directed=False)
    of_row, of_unknown = of[:m] if m else np.zeros(0, np.int64), of[m:] if m else of
    worth = _worth(part, count, of_row, of_unknown)
    row_order, unknown_order = (np.argsort(each, kind="stable") for each in (of_row, of_unknown))
    row_ends = np.searchsorted(of_row[row_order], np.arange(count + 1))
    unknown_ends = np.searchsorted(of_unknown[unknown_order], np.arange(count + 1))
    for which in np.flatnonzero(worth):
        unknowns = unknown_order[unknown_ends[which] : unknown_ends[which + 1]]
        rows = row_order[row_ends[which] : row_ends[which + 1]]
        unknowns = unknowns[np.argsort(part.key[unknowns], kind="stable")]
        one = part.part(unknowns, rows)
        one = one.with_rows(np.argsort(_row_hashes(one), kind="stable"))
        yield Component(one, _name(one))


def _worth(part: System, count: int, of_row: np.ndarray, of_unknown: np.ndarray) -> np.ndarray:
    """Return whether each component must be examined: it contains a secret and statements of two releases,
    (count,).
    """
    smallest = np.where(len(part.values) > 0, np.maximum(part.k, MOST_UNITS + 1), part.k)
    secret = part.secret | ((part.units > 0) & (part.units < smallest))
    has = np.bincount(of_unknown, secret, count) > 0
    later = np.bincount(of_unknown, part.secret & ~np.isnan(part.last), count) > 0
    releases = np.concatenate([part.row_release, part.said_release])
    places = np.concatenate([of_row, of_unknown[part.said]])
    width = int(releases.max(initial=0)) + 1
    stated = releases >= 0
    pairs = np.unique(places[stated] * width + releases[stated])
    several = np.bincount(pairs // width, minlength=count) > 1
    several[places[releases == MIXED]] = True
    return np.asarray(has & (several | later))


def _row_hashes(system: System) -> np.ndarray:
    """Return a hash of each row: its unknowns, entries and interval."""
    matrix = system.rows.tocsr()
    terms = mix_bits(system.key[matrix.indices] + matrix.data.view(np.uint64), 21)
    hashes = np.zeros(len(system.low), np.uint64)
    np.add.at(hashes, np.repeat(np.arange(len(hashes)), np.diff(matrix.indptr)), terms)
    return mix_bits(mix_bits(hashes + _bits(system.low), 22) + _bits(system.high), 23)


def _name(system: System) -> str:
    """Return a hash of a component that does not depend on the order of rows and unknowns or on release
    numbers.

    The hash includes which statements belong to the same release, because disclosure by one release alone is
    not counted.
    """
    marks = system.key.copy()
    for salt, array in enumerate((system.secret, system.units, system.k, system.truth, system.largest,
                                  system.second, system.last, system.positive)):  # fmt: skip
        marks = mix_bits(marks + _bits(array), 30 + salt)
    marks = mix_bits(marks ^ system.holder, 38)
    said = system.key[system.said]
    said_of = (system.said_low, system.said_high, system.said_gap, system.said_shown, system.said_secret)
    for salt, array in enumerate(said_of):
        said = mix_bits(said + _bits(array), 40 + salt)
    values = mix_bits(_bits(system.values) + mix_bits(np.arange(len(system.values)), 50), 51)
    rows = _row_hashes(system)
    total = [int(each.sum(dtype=np.uint64)) for each in (marks, said, rows, values)]
    again = [int(mix_bits(each, 60).sum(dtype=np.uint64)) for each in (marks, said, rows)]
    releases, of = np.unique(np.append(system.row_release, system.said_release), return_inverse=True)
    together = np.minimum(releases, 0).view(np.uint64)  # separate sums for structural rows and other rows
    np.add.at(together, of.reshape(-1), mix_bits(np.append(rows, said), 61))
    again.append(int(mix_bits(together, 62).sum(dtype=np.uint64)))
    return "".join(f"{each:016x}" for each in (*total, *again, int(system.whole)))


def _bits(array: np.ndarray) -> np.ndarray:
    return (np.asarray(array, np.float64) + 0.0).view(np.uint64)
