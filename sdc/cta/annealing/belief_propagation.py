"""Directions by belief propagation: lines tell their cells how likely each direction is, until all agree.

Directions weigh exp(-sum of |line residuals| / temperature), the stand-in of `line_sums`. Given what its
cells hear from their other lines, a line says of each how much likelier it makes up than down; a cell's
belief is what its lines say together, and a part of its last belief. With this memory beliefs harden into
directions. At n x n x n these leave 4 (n = 20) to 22 % (n = 36) less on the lines than annealing in the
same time, which freezes where no few cells can be turned any more.

A line says it exactly, over all patterns of its cells: half of its cells against the other half, in the order
of their sums (meet in the middle).

Source: Braunstein and Zecchina 2006, Learning by message passing in networks of discrete synapses (the
memory: reinforcement); Kschischang, Frey and Loeliger 2001, Factor graphs and the sum-product algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from microguard.sdc.cta.annealing.constraint_residuals import line_weights
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.kernels.compile import borrowing, kernel
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Sensitive cells of a line at most: a half of them has 2^12 patterns.
MOST_CELLS = 24
#: Relative to the mean level times the mean line weight. At 20x20x20 from 0.2 to 0.6 all
#: end alike, at 36x36x36 0.4 leaves 5 % more on the lines.
TEMPERATURE = 0.3
#: Share of its last belief that a cell keeps: at the end of a run, growing from nothing by equal steps. What
#: ends at 0.6 leaves 1 % more on the lines.
MEMORY = 0.3
#: Share of its last message that a line repeats: without it messages of few cells swing to and fro.
DAMPING = 0.5
#: Spread of the beliefs a run begins with, which the seed draws: where up and down are alike, none
#: would stay.
FIRST_SPREAD = 0.1
#: Spread of the logarithms of line weights, which the seed draws, times the root of the number of cells, and
#: at most: on small tables beliefs end alike wherever they begin, on large ones other weights leave more on
#: the lines.
WEIGHT_SPREAD, MOST_SPREAD = 5.0, 0.3
#: Digits of these weights: powers of different processors may differ in the last bit of a double.
DIGITS = 9
#: Log-odds beyond which a belief is certain to floating-point numbers.
_CERTAIN = 30.0
#: Rounds between two looks at the clock.
_STRETCH = 20
_TINY = 1e-290


class Rows(NamedTuple):
    """Cells of each line, from pointers[line] to pointers[line + 1], and the entries of each cell among them.

    Attributes
    ----------
    pointers, cells : of the lines
    cell_pointers, places : the entries of a cell are at places[cell_pointers[cell]] and on
    """

    pointers: np.ndarray
    cells: np.ndarray
    cell_pointers: np.ndarray
    places: np.ndarray


class Halves(NamedTuple):
    """Patterns of the first and the second half of each line's cells.

    Attributes
    ----------
    pointers : (2 lines + 1,) where the patterns of each half begin
    sums : signed base deviations of each pattern, ascending within each half
    codes : these patterns, a bit for each cell in the order of the half, 1 for up
    """

    pointers: np.ndarray
    sums: np.ndarray
    codes: np.ndarray


class Run(NamedTuple):
    """Where a run stands, in log-odds of up.

    Attributes
    ----------
    beliefs, kept : (p,) of the cells, and what they keep of them
    messages : (entries,) of lines to their cells
    """

    beliefs: np.ndarray
    kept: np.ndarray
    messages: np.ndarray


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Belief propagation on the sums of a problem's line residuals.

    Attributes
    ----------
    problem : Problem
    rows, halves : of its lines
    steepness : (lines,)
        Weight of each line over the temperature.
    """

    problem: Problem
    rows: Rows
    halves: Halves
    steepness: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> Beliefs:
        """Prepare a problem whose lines have `MOST_CELLS` sensitive cells at most."""
        incidence = sparse.csr_matrix(problem.incidence)
        incidence.sort_indices()
        numbers = np.arange(incidence.nnz)
        cells = incidence.indices.astype(np.int64)
        counts = np.bincount(cells, minlength=problem.size)
        rows = Rows(
            incidence.indptr.astype(np.int64),
            cells,
            np.cumsum([0, *counts]),
            numbers[np.argsort(cells, kind="stable")],
        )
        weights = line_weights(problem)
        touched = np.diff(incidence.indptr) > 0
        scale = float(np.mean(problem.swing)) / 2 * float(np.mean(weights[touched])) if touched.any() else 1.0
        return cls(problem, rows, _halves(problem, incidence), weights / (TEMPERATURE * scale))

    def settle(self, rounds: int, seed: int, deadline: Deadline) -> np.ndarray:
        """Directions (p,) that beliefs from a random start have hardened into after so many rounds.

        Lines weigh a little more or less than they do, by the seed.
        """
        problem = self.problem
        rng = np.random.default_rng(seed)
        first = FIRST_SPREAD * rng.standard_normal(problem.size)
        spread = min(MOST_SPREAD, WEIGHT_SPREAD / max(problem.size, 1) ** 0.5)
        factors = np.exp(spread * rng.standard_normal(len(self.steepness)))
        steepness = self.steepness * np.round(factors, DIGITS)
        certain = np.where(problem.forced == 1, _CERTAIN, -_CERTAIN)
        run = Run(np.where(problem.forced >= 0, certain, 0.0), first, np.zeros(len(self.rows.cells)))
        longest = int(np.max(np.diff(self.halves.pointers), initial=1))
        scratch = np.zeros((3, longest))
        for start in range(0, rounds, _STRETCH):
            for number in range(start, min(start + _STRETCH, rounds)):
                memory = MEMORY * number / max(1, rounds - 1)
                _gather(self.rows, run, problem.forced, memory)
                _tell(self.rows, self.halves, steepness, run, scratch)
            if deadline.passed:
                break
        return problem.admissible(run.beliefs > 0)


def pattern_count(problem: Problem) -> int | None:
    """Patterns of all halves, which a round takes as long as; None where a line has too many cells."""
    cells = np.diff(sparse.csr_matrix(problem.incidence).indptr)
    if cells.max(initial=0) > MOST_CELLS:
        return None
    return int(np.sum(2.0 ** (cells // 2) + 2.0 ** (cells - cells // 2)))


def _halves(problem: Problem, incidence: sparse.csr_matrix) -> Halves:
    sums, codes = [], []
    for line in range(incidence.shape[0]):
        begin, end = incidence.indptr[line], incidence.indptr[line + 1]
        middle = begin + (end - begin) // 2
        for first, last in ((begin, middle), (middle, end)):
            cells, entries = incidence.indices[first:last], incidence.data[first:last]
            of_patterns = np.full(1, -float(entries @ problem.down[cells]))
            for step in entries * problem.swing[cells]:
                of_patterns = np.concatenate([of_patterns, of_patterns + step])
            order = np.argsort(of_patterns, kind="stable")
            sums.append(of_patterns[order])
            codes.append(order)
    pointers = np.cumsum([0, *(len(each) for each in sums)])
    return Halves(pointers, np.concatenate(sums), np.concatenate(codes).astype(np.int64))


@kernel
def _gather(rows: Rows, run: Run, forced: np.ndarray, memory: float) -> None:
    """Beliefs from what lines say and cells keep."""
    for cell in range(len(run.beliefs)):
        if forced[cell] < 0:
            belief = run.kept[cell]
            for entry in range(rows.cell_pointers[cell], rows.cell_pointers[cell + 1]):
                belief += run.messages[rows.places[entry]]
            run.beliefs[cell] = belief
            run.kept[cell] = memory * belief


@kernel
def _tell(rows: Rows, halves: Halves, steepness: np.ndarray, run: Run, scratch: np.ndarray) -> None:
    """New messages of all lines, each of which its cells hear before the next one speaks."""
    one, other, shares = scratch[0], scratch[1], scratch[2]
    for line in range(len(steepness)):
        begin, end = rows.pointers[line], rows.pointers[line + 1]
        if begin == end:
            continue
        middle = begin + (end - begin) // 2
        _weigh(rows.cells, run, begin, middle, one)
        _weigh(rows.cells, run, middle, end, other)
        _match(halves, 2 * line, one, 2 * line + 1, other, steepness[line], shares)
        _say(rows.cells, run, begin, middle, shares)
        _match(halves, 2 * line + 1, other, 2 * line, one, steepness[line], shares)
        _say(rows.cells, run, middle, end, shares)


@borrowing
def _heard(cells: np.ndarray, run: Run, entry: int) -> float:
    """Log-odds of a line's cell by all but that line."""
    return max(-_CERTAIN, min(_CERTAIN, run.beliefs[cells[entry]] - run.messages[entry]))


@borrowing
def _weigh(cells: np.ndarray, run: Run, begin: int, end: int, weights: np.ndarray) -> None:
    """Weights of all patterns of some entries by what their cells hear elsewhere."""
    weights[0] = 1.0
    count = 1
    for entry in range(begin, end):
        up = 1.0 / (1.0 + np.exp(-_heard(cells, run, entry)))
        for pattern in range(count):
            weights[count + pattern] = weights[pattern] * up
            weights[pattern] *= 1.0 - up
        count *= 2


@borrowing
def _match(
    halves: Halves,
    mine: int,
    weights: np.ndarray,
    theirs: int,
    their_weights: np.ndarray,
    steepness: float,
    shares: np.ndarray,
) -> None:
    """Share of each pattern of one half: its weight times what the other half makes of its residuals.

    Patterns of the other half that leave the residual above zero are passed in one walk, those below in one
    back; what was passed fades by the step that the residual grows.
    """
    first, last = halves.pointers[mine], halves.pointers[mine + 1]
    low, high = halves.pointers[theirs], halves.pointers[theirs + 1]
    passed, at = 0.0, high - 1
    for pattern in range(first, last):
        own = halves.sums[pattern]
        if pattern > first:
            passed *= np.exp(-steepness * (own - halves.sums[pattern - 1]))
        while at >= low and halves.sums[at] >= -own:
            passed += their_weights[halves.codes[at]] * np.exp(-steepness * (own + halves.sums[at]))
            at -= 1
        shares[halves.codes[pattern]] = passed
    passed, at = 0.0, low
    for pattern in range(last - 1, first - 1, -1):
        own = halves.sums[pattern]
        if pattern < last - 1:
            passed *= np.exp(-steepness * (halves.sums[pattern + 1] - own))
        while at < high and halves.sums[at] < -own:
            passed += their_weights[halves.codes[at]] * np.exp(steepness * (own + halves.sums[at]))
            at += 1
        code = halves.codes[pattern]
        shares[code] = (shares[code] + passed) * weights[code]


@borrowing
def _say(cells: np.ndarray, run: Run, begin: int, end: int, shares: np.ndarray) -> None:
    """Messages to the cells of a half, the last first, whose two directions halve what is summed on."""
    count = 1 << (end - begin)
    for entry in range(end - 1, begin - 1, -1):
        count //= 2
        up, down = 0.0, 0.0
        for pattern in range(count):
            down += shares[pattern]
            up += shares[count + pattern]
            shares[pattern] += shares[count + pattern]
        said = np.log(up + _TINY) - np.log(down + _TINY) - _heard(cells, run, entry)
        run.messages[entry] = DAMPING * run.messages[entry] + (1.0 - DAMPING) * said
