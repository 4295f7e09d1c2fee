"""Solution of the linear system of published means, to find the values and small sums that the means
determine.

The unknowns are the sums over the records of each history, because published means cannot distinguish these
records. A class of n records with the published mean m and the rounding unit u is one equation: the sums of
its histories add up to n m, with an error of at most n u / 2. If means are weighted by published weights, the
sums are weighted, too, and histories are split by weight (`mean_weights.split_by_weight`).

A sum is determined if every vector of the null space of the system is zero at its position. Its error is
estimated by least squares: half the rounding unit times the norm of its row of the pseudo-inverse. This is a
lower bound on the range that a linear program over all rounding errors would compute. The audit therefore
reports every sum that the linear program would report, and possibly some more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.histories import Histories, mix_bits
from scipy import sparse
from scipy.sparse.csgraph import connected_components

#: Maximum size of a component that is solved by dense factorisation (0.1 s); larger ones are solved
#: iteratively.
DENSE = 600
#: Eigenvalues below this share of the largest are zero; matrices of class means have a wide gap there.
RANK_TOLERANCE = 1e-10
#: Entries below this count as zero, in a projection of a random vector onto the null space.
NULL_TOLERANCE = 1e-6
#: Numbers of random vectors: those that probe the null space, and those that simulate the rounding of the
#: means.
NULL_PROBES, NOISE_PROBES = 2, 16
#: Maximum number of conjugate gradient iterations, and relative residual at which they stop.
ITERATIONS, RESIDUAL = 3000, 1e-11
#: Resolution to which shares of records in a mean are rounded, when equations of the same records are
#: compared.
SHARE_UNITS = 1e9
#: Maximum relative error of a value that counts as disclosed.
KNOWN_WITHIN = 0.01


@dataclass(frozen=True)
class Solution:
    """Solution of the linear system for each history.

    Attributes
    ----------
    follows : (h,) bool array
        Whether the means determine the sum, except for their rounding.
    width : (h,) float array
        Estimated error of the sum in rounding units; infinite if the sum is not determined.
    sums : (h, p) float array
        The sums, valid if they are determined.
    """

    follows: np.ndarray
    width: np.ndarray
    sums: np.ndarray

    def within(self, rounding: np.ndarray) -> np.ndarray:
        """Return whether the error of each sum is at most 1 % or at most `rounding` (p,), as (h, p) bool."""
        width = np.where(self.follows, self.width, 0.0)[:, None] * rounding
        return self.follows[:, None] & (width <= np.maximum(KNOWN_WITHIN * np.abs(self.sums), rounding))


def solve(
    releases: Sequence[Classes], variables: Sequence[str], records: Histories, *, dense: int = DENSE
) -> Solution:
    """Solve the system for variables whose means are published by the same releases.

    Parameters
    ----------
    releases : sequence of Classes
        Releases with means of `variables`.
    variables : sequence of str
    records : Histories
        Histories of records: the versions of a corrected unit are different unknowns.
    dense : int
        Size of the largest component that is factorised densely.
    """
    matrix, means = equations(releases, variables, records)
    unknowns = matrix.shape[1]
    follows, width = np.zeros(unknowns, bool), np.full(unknowns, np.inf)
    sums = np.zeros((unknowns, len(variables)))
    component, members = _components(matrix)
    owner = component[: matrix.shape[0]]
    by_equation = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[by_equation], np.arange(len(members) + 1))
    large: list[int] = []
    single = _single_unknowns(matrix, members)
    follows[single.unknown], width[single.unknown] = True, single.size / 2
    sums[single.unknown] = means[single.equation] * single.size[:, None]
    for which, unknown in enumerate(members):
        if len(unknown) < 2:
            continue
        if len(unknown) > dense:
            large.append(which)
            continue
        rows = by_equation[starts[which] : starts[which + 1]]
        block = matrix[rows][:, unknown].toarray()
        follows[unknown], width[unknown], sums[unknown] = _factorised(block, means[rows])
    if large:
        rows = by_equation[np.isin(owner[by_equation], large)]
        unknown = np.concatenate([members[which] for which in large])
        follows[unknown], width[unknown], sums[unknown] = _iterated(matrix[rows][:, unknown], means[rows])
    return Solution(follows, width, sums)


def equations(
    releases: Sequence[Classes], variables: Sequence[str], records: Histories
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return the matrix (equations, histories) and the means (equations, p) of the system.

    The row of class j has 1 / n_j for each of its histories. With weights, the entry is the mean weight of
    the history's records divided by the weight of the class. Classes with the same records and weights in
    several releases give one equation.
    """
    rows, columns, entries, means = [], [], [], []
    hashes: list[np.ndarray] = []
    count = 0
    for release in releases:
        history = records.history_of[release.record]
        mass = np.bincount(release.class_of, release.weight, len(release))
        share = np.rint(release.weight / mass[release.class_of] * SHARE_UNITS).astype(np.uint64)
        digest = np.zeros(len(release), np.uint64)
        np.add.at(digest, release.class_of, mix_bits(mix_bits(release.record, 2) + share, 2))
        hashes.append(digest)
        # nothing to split, because all records of a history are in the same class
        _, first = np.unique(history, return_index=True)
        rows.append(release.class_of[first] + count)
        columns.append(history[first])
        members = np.bincount(history, minlength=len(records))[history[first]]
        weights = np.bincount(history, release.weight, len(records))[history[first]]
        entries.append(weights / members / mass[release.class_of[first]])
        means.append(np.column_stack([release.means[name] for name in variables]))
        count += len(release)
    shape = (count, len(records))
    matrix = sparse.csr_matrix(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape
    )
    _, distinct = np.unique(np.concatenate(hashes), return_index=True)
    stacked = np.concatenate(means)
    distinct = np.sort(distinct[~np.isnan(stacked[distinct]).any(axis=1)])
    return matrix[distinct], stacked[distinct]


def _components(matrix: sparse.csr_matrix) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the connected component of each equation and each unknown, and the number of unknowns of each
    component.
    """
    graph = sparse.bmat([[None, matrix], [matrix.T, None]], format="csr")
    number, component = connected_components(graph, directed=False)
    unknown = component[matrix.shape[0] :]
    order = np.argsort(unknown, kind="stable")
    return component, np.split(order, np.searchsorted(unknown[order], np.arange(1, number)))


@dataclass(frozen=True)
class _SingleUnknowns:
    """Histories that form a component of their own, because each is a whole class."""

    unknown: np.ndarray
    equation: np.ndarray
    size: np.ndarray


def _single_unknowns(matrix: sparse.csr_matrix, members: list[np.ndarray]) -> _SingleUnknowns:
    single = np.array([each[0] for each in members if len(each) == 1], np.int64)
    columns = matrix.tocsc()
    single = single[np.diff(columns.indptr)[single] > 0]
    at = columns.indptr[single]
    return _SingleUnknowns(single, columns.indices[at].astype(np.int64), 1.0 / columns.data[at])


def _factorised(block: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve a small component by eigendecomposition of its normal matrix; return which unknowns follow, their
    widths and the sums.
    """
    values, vectors = np.linalg.eigh(block.T @ block)
    spanned = values > RANK_TOLERANCE * values[-1]
    null = (vectors[:, ~spanned] ** 2).sum(axis=1)
    root = vectors[:, spanned] / np.sqrt(values[spanned])
    inverse = root @ root.T
    follows = null < NULL_TOLERANCE**2
    width = np.where(follows, np.sqrt(np.diag(inverse)) / 2, np.inf)
    return follows, width, inverse @ (block.T @ means)


def _iterated(block: sparse.csr_matrix, means: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve large components by conjugate gradients with random probes; return which unknowns follow, their
    widths and the sums.
    """
    random = np.random.default_rng(0)
    equations, unknowns = block.shape
    start = np.zeros((unknowns, NULL_PROBES + NOISE_PROBES + means.shape[1]))
    start[:, :NULL_PROBES] = random.normal(size=(unknowns, NULL_PROBES))
    noise = random.choice([-1.0, 1.0], size=(equations, NOISE_PROBES))
    right = np.column_stack([np.zeros((equations, NULL_PROBES)), noise, means])
    solutions = least_squares(block, right, start)
    follows = (np.abs(solutions[:, :NULL_PROBES]) < NULL_TOLERANCE).all(axis=1)
    spread = np.sqrt((solutions[:, NULL_PROBES : NULL_PROBES + NOISE_PROBES] ** 2).mean(axis=1)) / 2
    return follows, np.where(follows, spread, np.inf), solutions[:, NULL_PROBES + NOISE_PROBES :]


def least_squares(matrix: sparse.csr_matrix, right: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return for each column the least-squares solution nearest to `start` (CGLS; Björck 1996, 7.4)."""
    solution, residual = start.copy(), right - matrix @ start
    transposed = matrix.T.tocsr()
    gradient = transposed @ residual
    direction, norm = gradient.copy(), (gradient**2).sum(axis=0)
    goal = np.maximum(norm, np.finfo(float).tiny) * RESIDUAL**2
    for _ in range(ITERATIONS):
        if (norm <= goal).all():
            break
        image = matrix @ direction
        square = (image**2).sum(axis=0)
        step = np.where(norm > goal, norm / np.maximum(square, np.finfo(float).tiny), 0.0)
        solution += step * direction
        residual -= step * image
        gradient = transposed @ residual
        before, norm = norm, (gradient**2).sum(axis=0)
        direction = (
            gradient + np.where(before > goal, norm / np.maximum(before, np.finfo(float).tiny), 0) * direction
        )
    return solution
