"""Annealing on line residuals: a flip touches only the lines its cell lies in.

Lines are grouped into classes of disjoint lines (the rows of a table, its columns, ...). Disjoint lines
each need at least |r| of adjustments, so the largest class sum of |r| bounds the excess from below, and in
a 2-D table whose capacities do not bind it *is* the excess. For tables too large for a linear program the
sum over all cells that a residual reaches is annealed instead, which is what re-summing margins costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sdc.cta.problem import Problem
from sdc.kernels import kernel
from sdc.stop import Deadline

#: First and last temperature relative to the mean protection level.
HOT, COLD = 1.0, 1e-3
#: Weight of the mean class beside the largest: breaks the ties between classes that are not the largest.
MEAN_CLASS_WEIGHT = 0.1
#: Moves between two looks at the clock.
SLICE_MOVES = 2e6


@dataclass(frozen=True, eq=False)
class LineClasses:
    """Lines touched by sensitive cells, grouped into classes of lines that share no cell.

    Attributes
    ----------
    problem : Problem
    pointers, lines, entries
        Compressed columns of the sensitive cells over all lines.
    classes : (lines,) class of each line, -1 where no sensitive cell lies in it
    """

    problem: Problem
    pointers: np.ndarray
    lines: np.ndarray
    entries: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> LineClasses:
        """First-fit colouring of the lines in their order."""
        incidence = problem.incidence
        incidence.sort_indices()
        return cls(
            problem=problem,
            pointers=incidence.indptr.astype(np.int64),
            lines=incidence.indices.astype(np.int64),
            entries=incidence.data,
            classes=_disjoint_classes(problem),
        )

    def anneal(
        self, directions: np.ndarray, sweeps: int, seed: int, deadline: Deadline | None = None
    ) -> np.ndarray:
        """Best directions met while annealing the largest class sum of |r|."""
        problem = self.problem
        free = np.flatnonzero(problem.forced < 0)
        start = problem.admissible(directions)
        if len(free) == 0 or sweeps < 1:
            return start
        residuals = np.asarray(problem.incidence @ problem.base(start))
        level = float(np.mean(problem.swing)) / 2
        deadline = deadline or Deadline.after(None)
        current, chosen, best = start.copy(), start.copy(), np.full(1, np.inf)
        step = max(1, int(SLICE_MOVES / len(free)))
        for first in range(0, sweeps, step):
            _anneal(
                self.pointers,
                self.lines,
                self.entries,
                problem.swing,
                self.classes,
                residuals,
                current,
                chosen,
                best,
                free,
                HOT * level,
                COLD * level,
                first,
                min(first + step, sweeps),
                sweeps,
                seed + first,
            )
            if deadline.passed:
                break
        return chosen


def _disjoint_classes(problem: Problem) -> np.ndarray:
    rows = sparse.csr_matrix(problem.lines)
    touched = np.unique(problem.incidence.indices)
    classes = np.full(rows.shape[0], -1, dtype=np.int64)
    met = np.zeros(rows.shape[1], dtype=np.int64)  # bit set of the classes a cell lies in
    for line in touched:
        cells = rows.indices[rows.indptr[line] : rows.indptr[line + 1]]
        taken = int(np.bitwise_or.reduce(met[cells]))
        own = 0
        while taken >> own & 1 and own < 61:
            own += 1
        classes[line] = own
        met[cells] |= 1 << own
    return classes


@kernel
def _anneal(
    pointers,
    lines,
    entries,
    swing,
    classes,
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
    count = classes.max() + 1
    sums = np.zeros(count)
    for line in range(len(classes)):
        if classes[line] >= 0:
            sums[classes[line]] += abs(residuals[line])
    weight = MEAN_CLASS_WEIGHT / count
    energy = sums.max() + weight * sums.sum()
    if energy < best[0]:
        best[0] = energy
        chosen[:] = directions
    after = np.empty(count)
    for sweep in range(first, last):
        temperature = hot * (cold / hot) ** (sweep / max(1, sweeps - 1))
        for _ in range(len(free)):
            cell = free[np.random.randint(len(free))]
            move = -swing[cell] if directions[cell] == 1 else swing[cell]
            other = -1
            if np.random.random() < 0.5:  # together with another cell of one of its lines
                other = free[np.random.randint(len(free))]
                if directions[other] == directions[cell]:
                    other = -1
            for k in range(count):
                after[k] = sums[k]
            for a in range(pointers[cell], pointers[cell + 1]):
                line = lines[a]
                after[classes[line]] -= abs(residuals[line])
                residuals[line] += move * entries[a]
                after[classes[line]] += abs(residuals[line])
            second = 0.0
            if other >= 0:
                second = -swing[other] if directions[other] == 1 else swing[other]
                for a in range(pointers[other], pointers[other + 1]):
                    line = lines[a]
                    after[classes[line]] -= abs(residuals[line])
                    residuals[line] += second * entries[a]
                    after[classes[line]] += abs(residuals[line])
            changed = after.max() + weight * after.sum()
            if changed <= energy or np.random.random() < np.exp((energy - changed) / temperature):
                energy = changed
                directions[cell] = 1 - directions[cell]
                if other >= 0:
                    directions[other] = 1 - directions[other]
                for k in range(count):
                    sums[k] = after[k]
                if energy < best[0]:
                    best[0] = energy
                    chosen[:] = directions
            else:
                for a in range(pointers[cell], pointers[cell + 1]):
                    residuals[lines[a]] -= move * entries[a]
                if other >= 0:
                    for a in range(pointers[other], pointers[other + 1]):
                        residuals[lines[a]] -= second * entries[a]
