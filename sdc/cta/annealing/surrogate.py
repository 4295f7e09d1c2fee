"""A quadratic stand-in for the linear program, cheap enough to anneal on.

To close residuals r by least squares, min sum y_c^2 / w_c subject to the constraints, costs r' G r with G =
(A W A')^-1 over the constraints A of the free cells. So a flip is priced by how the whole table answers to
it, from a few entries of G. With w_c = min(room, twice the typical level) / cost it orders directions nearly
as the linear program does (correlation 0.85 to 0.95 among good ones on random 3-D tables).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from microguard.sdc.cta.annealing.annealing import Columns, StandIn, Stretch, Walk, temperature_at, turn
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import kernel
from scipy import linalg, sparse

#: Constraints beyond which the dense matrix G no longer fits a task's memory (8 bytes each squared).
MAX_CONSTRAINTS = 6000
#: Added to the diagonal relative to its mean: redundant constraints are dependent, and constraints that no
#: free cell can make good must come out dear, not infinite.
REGULARISATION = 1e-6
#: First and last temperature relative to the typical change of energy by one flip.
HOT, COLD = 0.5, 1e-3
#: How much colder a run begins that refines directions: at 10x10x20 what beliefs settled on gains 5 % of its
#: excess, at twice or half of it as much, at four times 3 %.
WARMTH = 0.1


@dataclass(frozen=True, eq=False)
class Surrogate(StandIn):
    """Energy r' G r; the best directions met are the answer.

    Attributes
    ----------
    problem, incidence : of `StandIn`, over the constraints that sensitive cells touch
    matrix : (constraints, constraints) G
    """

    matrix: np.ndarray
    warmth: ClassVar[float] = WARMTH

    @classmethod
    def of(cls, problem: Problem) -> Surrogate:
        """Build G once for a problem."""
        incidence = problem.incidence
        touched = np.unique(incidence.indices)
        typical = float(np.mean(problem.swing))
        room = np.minimum((problem.rise + problem.fall) / 2, typical)
        weight = room / np.maximum(problem.free_costs, np.finfo(float).tiny ** 0.5)
        weight = np.minimum(weight, 1e6 * typical)
        free = problem.constraints[:, problem.free]
        gram = (free @ sparse.diags_array(weight) @ free.T).toarray()
        mean = float(np.mean(np.diag(gram))) if len(gram) else 0.0
        gram.flat[:: len(gram) + 1] += REGULARISATION * max(mean, 1.0)
        factor = linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        unit = np.zeros((len(factor[0]), len(touched)), order="F")
        unit[touched, np.arange(len(touched))] = 1.0
        inverse = linalg.cho_solve(factor, unit, overwrite_b=True, check_finite=False)[touched]
        rows = sparse.csc_matrix(incidence.tocsr()[touched])
        rows.sort_indices()
        return cls(problem, rows, np.ascontiguousarray((inverse + inverse.T) / 2))

    def energy(self, directions: np.ndarray) -> float:
        """r' G r at directions of 0 and 1."""
        residuals = self.residuals(directions)
        return float(residuals @ self.matrix @ residuals)

    def temperatures(self, cells: np.ndarray) -> tuple[float, float]:
        """By the energy of a flip on its own; the diagonal of G would be swamped by redundant constraints."""
        pointers, constraints, entries = self.columns
        swing = np.repeat(self.problem.swing, np.diff(pointers))
        flips = sparse.csr_matrix((entries * swing, constraints, pointers), self.incidence.shape[::-1])
        sample = flips[:: max(1, self.problem.size // 200)]
        flip_energies = np.asarray(sample.multiply(sample @ self.matrix).sum(axis=1)).ravel()
        typical = max(float(np.mean(flip_energies)), np.finfo(float).tiny)
        return HOT * typical, COLD * typical

    def cool(self, walk: Walk, stretch: Stretch) -> None:
        """One cell at a time."""
        walk.residuals[:] = self.residuals(walk.directions)  # moves keep G r up to date, not r
        _cool(self.columns, self.problem.swing, self.matrix, walk, stretch)


@kernel
def forces_and_energy(matrix: np.ndarray, residuals: np.ndarray) -> tuple[np.ndarray, float]:
    """G r and r' G r."""
    forces = matrix @ residuals
    energy = 0.0
    for k in range(len(forces)):
        energy += residuals[k] * forces[k]
    return forces, energy


@kernel
def change_of_energy(pointers, constraints, entries, matrix, forces, cell, move):
    """Change of r' G r when one sensitive cell's base deviation moves; `forces` is G r."""
    change = 0.0
    for a in range(pointers[cell], pointers[cell + 1]):
        change += 2.0 * move * entries[a] * forces[constraints[a]]
        for b in range(pointers[cell], pointers[cell + 1]):
            change += move * move * entries[a] * entries[b] * matrix[constraints[a], constraints[b]]
    return change


@kernel
def move_forces(pointers, constraints, entries, matrix, forces, cell, move):
    """Bring G r up to date after that move."""
    for a in range(pointers[cell], pointers[cell + 1]):
        step = move * entries[a]
        row = matrix[constraints[a]]
        for k in range(len(forces)):
            forces[k] += step * row[k]


@kernel
def _cool(columns: Columns, swing: np.ndarray, matrix: np.ndarray, walk: Walk, stretch: Stretch) -> None:
    np.random.seed(stretch.seed)
    pointers, constraints, entries = columns
    directions, residuals, chosen, least = walk
    cells = stretch.cells
    forces, energy = forces_and_energy(matrix, residuals)
    if energy < least[0]:
        least[0] = energy
        chosen[:] = directions
    for sweep in range(stretch.first, stretch.last):
        temperature = temperature_at(stretch, sweep)
        for _ in range(len(cells)):
            cell = cells[np.random.randint(len(cells))]
            move = turn(swing, directions, cell)
            change = change_of_energy(pointers, constraints, entries, matrix, forces, cell, move)
            if change <= 0.0 or np.random.random() < np.exp(-change / temperature):
                directions[cell] = 1 - directions[cell]
                energy += change
                move_forces(pointers, constraints, entries, matrix, forces, cell, move)
                if energy < least[0]:
                    least[0] = energy
                    chosen[:] = directions
