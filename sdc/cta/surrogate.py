"""A quadratic stand-in for the linear program, cheap enough to anneal on.

Making residuals r good at least squares, min sum y_c^2 / w_c subject to the lines, costs r' G r with
G = (A W A')^-1 over the lines A of the free cells: every flip then feels how the whole table answers, at
the price of a few entries of G. With w_c = min(room, twice the typical level) / cost it orders directions
nearly as the linear program does (correlation 0.85 to 0.95 among good ones on random 3-D tables).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from sdc.cta.problem import Problem
from sdc.kernels import kernel
from sdc.stop import Deadline

#: Lines beyond which the dense matrix G no longer fits a task's memory (8 bytes each squared).
MAX_LINES = 6000
#: Added to the diagonal relative to its mean: redundant lines are dependent, and lines that no free cell
#: can make good must come out dear, not infinite.
REGULARISATION = 1e-6
#: First and last temperature relative to the typical change of energy by one flip.
HOT, COLD = 0.5, 1e-3
#: Moves between two looks at the clock.
SLICE_MOVES = 2e6


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Energy r' G r of residuals on the lines that sensitive cells touch.

    Attributes
    ----------
    problem : Problem
    matrix : (touched, touched) G
    pointers, lines, entries
        Compressed columns of the sensitive cells over the touched lines.
    """

    problem: Problem
    matrix: np.ndarray
    pointers: np.ndarray
    lines: np.ndarray
    entries: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> Surrogate:
        """Build G once for a problem."""
        incidence = problem.incidence
        touched = np.unique(incidence.indices)
        typical = float(np.mean(problem.swing))
        room = np.minimum((problem.rise + problem.fall) / 2, typical)
        weight = room / np.maximum(problem.free_costs, np.finfo(float).tiny ** 0.5)
        weight = np.minimum(weight, 1e6 * typical)
        free = problem.lines[:, problem.free]
        gram = (free @ sparse.diags_array(weight) @ free.T).toarray()
        gram.flat[:: len(gram) + 1] += REGULARISATION * max(float(np.mean(np.diag(gram))), 1.0)
        factor = linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        unit = np.zeros((len(factor[0]), len(touched)), order="F")
        unit[touched, np.arange(len(touched))] = 1.0
        inverse = linalg.cho_solve(factor, unit, overwrite_b=True, check_finite=False)[touched]
        rows = sparse.csc_matrix(incidence.tocsr()[touched])
        rows.sort_indices()
        return cls(
            problem=problem,
            matrix=np.ascontiguousarray((inverse + inverse.T) / 2),
            pointers=rows.indptr.astype(np.int64),
            lines=rows.indices.astype(np.int64),
            entries=rows.data,
        )

    def residuals(self, directions: np.ndarray) -> np.ndarray:
        """(touched,) sums of signed protections per line."""
        shape = (len(self.matrix), self.problem.size)
        columns = sparse.csc_matrix((self.entries, self.lines, self.pointers), shape=shape)
        return np.asarray(columns @ self.problem.base(directions))

    def energy(self, directions: np.ndarray) -> float:
        """r' G r at directions of 0 and 1."""
        residuals = self.residuals(directions)
        return float(residuals @ self.matrix @ residuals)

    @property
    def _typical_change(self) -> float:
        """Energy of a flip on its own; the diagonal of G would be swamped by redundant lines."""
        columns = np.diff(self.pointers)
        owner = np.repeat(np.arange(self.problem.size), columns)
        shape = (self.problem.size, len(self.matrix))
        flips = sparse.csr_matrix(
            (self.entries * self.problem.swing[owner], (owner, self.lines)), shape=shape
        )
        sample = flips[:: max(1, self.problem.size // 200)]
        own = np.asarray(sample.multiply(sample @ self.matrix).sum(axis=1)).ravel()
        return max(float(np.mean(own)), np.finfo(float).tiny)

    def anneal(
        self, directions: np.ndarray, sweeps: int, seed: int, deadline: Deadline | None = None
    ) -> np.ndarray:
        """Best directions met while annealing from the given ones; sweeps times p proposals."""
        free = np.flatnonzero(self.problem.forced < 0)
        start = self.problem.admissible(directions)
        if len(free) == 0 or sweeps < 1:
            return start
        typical = self._typical_change
        deadline = deadline or Deadline.after(None)
        current, chosen, best = start.copy(), start.copy(), np.full(1, np.inf)
        step = max(1, int(SLICE_MOVES / len(free)))
        for first in range(0, sweeps, step):
            _anneal(
                self.pointers,
                self.lines,
                self.entries,
                self.problem.swing,
                self.matrix,
                self.residuals(current),
                current,
                chosen,
                best,
                free,
                HOT * typical,
                COLD * typical,
                first,
                min(first + step, sweeps),
                sweeps,
                seed + first,
            )
            if deadline.passed:
                break
        return chosen


@kernel
def change_of_energy(pointers, lines, entries, matrix, forces, cell, move):
    """Change of r' G r when one sensitive cell's base deviation moves; `forces` is G r."""
    change = 0.0
    for a in range(pointers[cell], pointers[cell + 1]):
        change += 2.0 * move * entries[a] * forces[lines[a]]
        for b in range(pointers[cell], pointers[cell + 1]):
            change += move * move * entries[a] * entries[b] * matrix[lines[a], lines[b]]
    return change


@kernel
def move_forces(pointers, lines, entries, matrix, forces, cell, move):
    """Bring G r up to date after that move."""
    for a in range(pointers[cell], pointers[cell + 1]):
        step = move * entries[a]
        row = matrix[lines[a]]
        for k in range(len(forces)):
            forces[k] += step * row[k]


@kernel
def _anneal(
    pointers,
    lines,
    entries,
    swing,
    matrix,
    residuals,
    directions,
    chosen,
    best,
    free,
    hot,
    cold,
    first,
    last,
    sweeps,
    seed,
):
    np.random.seed(seed)
    forces = matrix @ residuals
    energy = 0.0
    for k in range(len(forces)):
        energy += residuals[k] * forces[k]
    if energy < best[0]:
        best[0] = energy
        chosen[:] = directions
    for sweep in range(first, last):
        temperature = hot * (cold / hot) ** (sweep / max(1, sweeps - 1))
        for _ in range(len(free)):
            cell = free[np.random.randint(len(free))]
            move = -swing[cell] if directions[cell] == 1 else swing[cell]
            change = change_of_energy(pointers, lines, entries, matrix, forces, cell, move)
            if change <= 0.0 or np.random.random() < np.exp(-change / temperature):
                directions[cell] = 1 - directions[cell]
                energy += change
                move_forces(pointers, lines, entries, matrix, forces, cell, move)
                if energy < best[0]:
                    best[0] = energy
                    chosen[:] = directions
