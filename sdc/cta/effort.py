"""Work limits of all methods by effort and size of the problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from microguard.sdc.algorithms.algorithm import EFFORTS
from microguard.sdc.arguments import check_name
from microguard.sdc.cta.annealing.belief_propagation import pattern_count
from microguard.sdc.cta.annealing.dual_cuts import CutParams
from microguard.sdc.cta.annealing.internal_cells import DescentParams
from microguard.sdc.cta.annealing.local_search import LocalSearchParams
from microguard.sdc.cta.program.constraint_classes import disjoint_classes
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_nothing

#: Methods that compute a lower bound.
Bound = Literal["disjoint constraints", "covering", "relaxation"]
#: Maximum number of cells for which linear programs over the whole table are solved.
LARGE_CELLS = 120_000
#: Number of constraints and average number of cells in a constraint. If a table reaches both, only one start
#: solution and no relaxation is computed, because linear programs with long constraints cause fill-in of the
#: solver's factors. Programs with many short constraints (hierarchical tables) take seconds.
MANY_CONSTRAINTS, LONG_CONSTRAINT = 2500, 20
#: Total work of linear programs, in columns; a million columns take about 20 seconds of one core.
_COLUMNS = {"fast": 4e4, "standard": 1.2e6, "thorough": 2.4e6, "exact": 2.4e6}
#: Number of moves of annealing on constraint residuals; a million take 0.035 seconds.
_MOVES = {"fast": 2e7, "standard": 3e8, "thorough": 6e8, "exact": 6e8}
#: Number of sensitive cells above which few long runs give better start solutions than many short runs. Next:
#: the maximum number of start solutions below and above this number of cells.
_FEW_STARTS_SIZE, _MANY_STARTS, _FEW_STARTS = 1000, 60, 6
#: Number of sensitive cells per constraint below which flips after belief propagation gain little in large
#: tables with long constraints (`_FEW_STARTS_SIZE`). At 20x20x20 the flips take half of the time for 0.2 % of
#: the avoidable cost. All work is then spent on start solutions.
_CELLS_OF_CONSTRAINT = 20
#: Average number of sensitive cells in a constraint from which belief propagation computes the start
#: solutions. At 8x8x8 (average 1.7) annealing gives equally good results. Hierarchies (average 0.5) were not
#: compared.
_BELIEF_CELLS = 2
#: Number of rounds of belief propagation (600 rounds give no better results), and maximum total number of
#: patterns; a million patterns take 0.08 seconds.
_BELIEF_ROUNDS = 400
_PATTERNS = {"fast": 2.5e7, "standard": 3e8, "thorough": 9e8, "exact": 9e8}
#: Work of a start solution, in linear programs: the default, and for belief propagation without subsequent
#: flips.
_START_PROGRAMS, _BELIEF_PROGRAMS = 6, 2
#: Factor of the number of start solutions of a two-way table, whose linear programs take little time. At
#: 25x25 the best of 120 start solutions is better than the best of 60 by 0.1 to 0.3 % of the unavoidable
#: cost; 240 give no further gain.
_TWO_WAY_STARTS = 3
#: Shares of the linear programs for annealing on cuts and for flips. There are no cuts if start solutions do
#: not come from annealing or if the budget allows few programs; then flips use both shares.
_CUT_SHARE, _FLIP_SHARE = 1 / 3, 1 / 4
#: Annealing on cuts: minimum number of linear programs in the budget, maximum number of rounds, and sweeps
#: per round.
_CUT_PROGRAMS, _CUT_ROUNDS, _CUT_SWEEPS = 50, 1500, 150
#: Maximum number of nonzero entries of the relations for branch and bound. Above 5,000 entries its root takes
#: minutes.
_PROOF_ENTRIES = 3000
#: Maximum number of sensitive cells for branch and bound, and its node limit (None: no limit).
_PROOF_SIZE = {"fast": 25, "standard": 70, "thorough": 100, "exact": 10**9}
_NODES: dict[str, int | None] = {"fast": 500, "standard": 2000, "thorough": 4000, "exact": None}
#: Descents on internal cells: maximum number of sweeps, maximum number of descents, and number of passes.
_DESCENT_SWEEPS, _DESCENT_RUNS, _DESCENT_PASSES = 5000, 8, 6
#: Minimum number of constraints for flips by blocks, if constraints are short. The programs of the blocks
#: take a fraction of the time.
_BLOCK_CONSTRAINTS = 6000
#: Work of block descent, in columns.
_BLOCK_WORK = {"fast": 0.0, "standard": 5e6, "thorough": 1.5e7, "exact": 1.5e7}
#: Maximum average number of cells in a constraint for annealing on internal cells (if margins are sensitive)
#: and for integer programs over blocks. Tables of three and four hierarchies have smaller constraints. Tables
#: of two hierarchies (6 to 10 cells) are excluded, because there the annealing gives up to 3 % larger
#: objectives, and the integer programs take ten times as long.
_VERY_SHORT_CONSTRAINT = 5
#: Total work of the integer programs over blocks, in columns.
_OPTIMISATION_WORK = {"fast": 0.0, "standard": 2e5, "thorough": 2e6, "exact": 2e6}
#: Number of moves of the annealing on internal cells; a million take half a second.
_INTERNAL_MOVES = {"fast": 2e6, "standard": 8e7, "thorough": 2e8, "exact": 2e8}
#: Maximum product of neighbourhoods, columns and constraints of the table, and maximum number of
#: neighbourhoods.
_NEIGHBOURHOOD_WORK = {"fast": 0.0, "standard": 2.5e5, "thorough": 1.5e6, "exact": 1.5e6}
_NEIGHBOURHOODS = 60
#: Work of plane cuts and of cell cuts, each in columns.
_PLANE_WORK = {"fast": 0.0, "standard": 1e6, "thorough": 3e6, "exact": 3e6}
_CELL_WORK = {"fast": 1e5, "standard": 4e6, "thorough": 1.2e7, "exact": 1.2e7}


@dataclass(frozen=True)
class Budget:
    """Work limits of one problem.

    Attributes
    ----------
    search : LocalSearchParams
    descents : DescentParams
        Parameters of the search on internal cells in large tables.
    short_constraints : bool
        Whether constraints are short enough for block descent.
    block_work : float
        Work of the block descent in large tables.
    prove : bool
        Whether branch and bound is run.
    nodes : int or None
        Node limit of branch and bound.
    bound : Bound
    plane_work, cell_work : float
        Work of the plane cuts and of the cell cuts.
    """

    search: LocalSearchParams
    descents: DescentParams
    short_constraints: bool
    block_work: float
    prove: bool
    nodes: int | None
    bound: Bound
    plane_work: float
    cell_work: float


def budget(problem: Problem, effort: str) -> Budget:
    """Compute the work limits of a problem from its size and the effort.

    Raises
    ------
    InvalidParameter
        If the effort is unknown.
    """
    check_name("effort", effort, EFFORTS)
    size, cells = max(1, problem.size), problem.table.cells
    constraints, entries = problem.constraints.shape[0], problem.constraints.nnz
    columns = max(1, 2 * len(problem.free) + 2 * constraints)
    programs = _COLUMNS[effort] / work_from_nothing(columns, constraints)
    short = entries < LONG_CONSTRAINT * constraints
    very_short = entries <= _VERY_SHORT_CONSTRAINT * constraints
    many = constraints >= MANY_CONSTRAINTS and not short
    blocks = short and constraints >= _BLOCK_CONSTRAINTS
    prove = size <= _PROOF_SIZE[effort] and entries <= _PROOF_ENTRIES
    optimised = very_short and not (blocks or prove or problem.table.quality)
    starts_only = (
        size > _FEW_STARTS_SIZE
        and not short
        and size < _CELLS_OF_CONSTRAINT * constraints
        and effort != "fast"
    )
    runs = _belief_runs(problem, effort) if starts_only or not (many or blocks or optimised) else 0
    most_starts = _FEW_STARTS if size > _FEW_STARTS_SIZE else _MANY_STARTS
    starts = max(2, min(most_starts, int(programs / _START_PROGRAMS)))
    if many or programs < _START_PROGRAMS:
        starts = 1
    neighbourhoods = int(min(_NEIGHBOURHOODS, _NEIGHBOURHOOD_WORK[effort] / columns / max(constraints, 1)))
    if runs and starts_only:
        starts = max(1, min(runs, int(programs / _BELIEF_PROGRAMS)))
    elif runs and disjoint_classes(problem).max(initial=-1) <= 1:
        starts, neighbourhoods = min(runs, _TWO_WAY_STARTS * starts), 0
    elif runs:
        starts = min(runs, starts)
    sweeps = int(min(100_000, 100 * size, max(30, _MOVES[effort] / size / starts)))
    rounds = int(min(_CUT_ROUNDS, _COLUMNS[effort] / columns))
    has_cuts = rounds >= _CUT_PROGRAMS and not (runs or many or blocks)
    cuts = CutParams(rounds, _CUT_SWEEPS, _CUT_SHARE * _COLUMNS[effort]) if has_cuts else None
    flip_share = _FLIP_SHARE if has_cuts else _CUT_SHARE + _FLIP_SHARE
    flip_work = 0.0 if many or (runs and starts_only) else flip_share * _COLUMNS[effort]
    bound: Bound = "disjoint constraints" if many or cells > LARGE_CELLS else "relaxation"
    if cells > LARGE_CELLS and short:
        bound = "covering"
    return Budget(
        search=LocalSearchParams(
            starts=1 if optimised else starts,
            sweeps=sweeps,
            flip_work=_BLOCK_WORK[effort] if blocks else flip_work,
            belief_rounds=_BELIEF_ROUNDS if runs else 0,
            blocks=blocks,
            internal_moves=_INTERNAL_MOVES[effort] if very_short else 0.0,
            block_work=_OPTIMISATION_WORK[effort] if optimised else 0.0,
            cuts=cuts,
            neighbourhoods=0 if prove else neighbourhoods,
        ),
        descents=_descent_params(size, effort),
        short_constraints=short,
        block_work=_BLOCK_WORK[effort],
        prove=prove,
        nodes=_NODES[effort],
        bound=bound,
        plane_work=_PLANE_WORK[effort],
        cell_work=_CELL_WORK[effort],
    )


def _belief_runs(problem: Problem, effort: str) -> int:
    """Return the number of runs of belief propagation; 0 if belief propagation is not applicable."""
    patterns = pattern_count(problem)
    if patterns is None or problem.incidence.nnz < _BELIEF_CELLS * max(problem.constraints.shape[0], 1):
        return 0
    return int(_PATTERNS[effort] / _BELIEF_ROUNDS / max(patterns, 1))


def _descent_params(size: int, effort: str) -> DescentParams:
    sweeps = _MOVES[effort] / size
    runs = int(min(_DESCENT_RUNS, max(1, sweeps / _DESCENT_SWEEPS)))
    each = int(min(_DESCENT_SWEEPS, max(20, sweeps)))
    return DescentParams(runs, each, _DESCENT_PASSES if effort != "fast" else 2)
