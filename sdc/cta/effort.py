"""How much work an effort stands for, by the size of the problem: the only place that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from microguard.sdc.arguments import check_name
from microguard.sdc.cta.annealing.belief_propagation import pattern_count
from microguard.sdc.cta.annealing.internal_cells import DescentParams
from microguard.sdc.cta.annealing.local_search import LocalSearchParams
from microguard.sdc.cta.program.constraint_classes import disjoint_classes
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_nothing

#: What proves a lower bound.
Bound = Literal["disjoint constraints", "covering", "relaxation"]
Effort = Literal["fast", "standard", "thorough", "exact"]
EFFORTS: tuple[Effort, ...] = ("fast", "standard", "thorough", "exact")
#: Cells beyond which no linear program over the whole table is solved.
LARGE_CELLS = 120_000
#: Constraints, and cells of a constraint on average, from which, both together, one annealing run is all
#: there is time for and no relaxation. Constraints alone make nothing hard: hierarchical tables have many
#: short ones, whose programs solve in seconds; it is long constraints that cross which fill the solver's
#: factors.
MANY_CONSTRAINTS, LONG_CONSTRAINT = 2500, 20
#: Moves of annealing, and columns of linear programs in total, that an effort pays for. A million moves
#: take 0.15 seconds and more with more constraints, a million columns about 20 seconds, on one core.
_MOVES = {"fast": 3e6, "standard": 1.2e8, "thorough": 3e8, "exact": 3e8}
_COLUMNS = {"fast": 4e4, "standard": 1.2e6, "thorough": 2.4e6, "exact": 2.4e6}
#: Moves on the sum of constraint residuals, of which a million take 0.035 seconds.
_SUM_MOVES = {"fast": 2e7, "standard": 3e8, "thorough": 6e8, "exact": 6e8}
#: Constraints at which the quadratic surrogate doubles the time of a move.
_MOVE_DOUBLING_CONSTRAINTS = 600
#: Sensitive cells above which long runs from few starts beat short ones from many.
_FEW_STARTS_SIZE = 1000
#: Sensitive cells for each constraint up to which the sums of few starts over long constraints decide: they
#: get so many times the moves, and what follows so much less work. With more cells residuals vanish in any
#: run. Where starts are beliefs nothing follows: at 20x20x20 rounds and flips take half of the time, and gain
#: 0.2 % of the excess.
_CELLS_OF_CONSTRAINT, _DECISIVE = 20, 3
#: Sensitive cells of a constraint on average from which starts are beliefs. At 8x8x8, with 1.7, the rounds
#: end as well or better from random ones; hierarchies, with 0.5, were not compared.
_SETTLED_CELLS = 2
#: Rounds of a run of beliefs: 600 leave no less on the constraints. Patterns of constraints that all rounds
#: may go through, of which a million take 0.08 seconds.
_BELIEF_ROUNDS = 400
_PATTERNS = {"fast": 2.5e7, "standard": 3e8, "thorough": 9e8, "exact": 9e8}
#: Programs that such a run stands for, where nothing follows.
_BELIEF_PROGRAMS = 2
#: Runs of beliefs on a two-way table, where a program is next to nothing, for each start of others: at 25x25
#: the best of 120 is 0.1 to 0.3 % of the unavoidable part cheaper than that of 60, of 240 no more.
_TWO_WAY_RUNS = 3
#: Share of the columns that rounds under cuts and final flips may use, and programs that a start stands for.
_CUT_SHARE, _FLIP_SHARE, _START_PROGRAMS = 1 / 3, 1 / 4, 6
#: Programs that the columns pay for from which rounds under cuts are worth it; with fewer, all are flips.
_CUT_PROGRAMS = 50
#: Entries of the relations up to which branch and bound is run: its root alone takes minutes from 5,000 on.
_PROOF_ENTRIES = 3000
#: Sensitive cells up to which branch and bound is run, and its nodes (None: to proof).
_PROOF_SIZE = {"fast": 25, "standard": 70, "thorough": 100, "exact": 10**9}
_NODES: dict[str, int | None] = {"fast": 500, "standard": 2000, "thorough": 4000, "exact": None}
#: Sweeps of a run on margins that are summed again, runs at most, and passes of each.
_DESCENT_SWEEPS, _DESCENT_RUNS, _DESCENT_PASSES = 5000, 8, 6
#: Constraints from which short ones are flipped by blocks: their programs then cost a fraction of the whole
#: one.
_BLOCK_CONSTRAINTS = 6000
#: Work of the flips of the descent by blocks, in columns.
_BLOCK_WORK = {"fast": 0.0, "standard": 5e6, "thorough": 1.5e7, "exact": 1.5e7}
#: Cells of a constraint on average up to which flips and shifts are annealed where margins are sensitive, and
#: integer programs of blocks turn directions at last: in three and four hierarchies. In two hierarchies, of 6
#: to 10 cells, the annealing ends up to 3 % dearer, and the programs take ten times as long.
_VERY_SHORT_CONSTRAINT = 5
#: Work of these programs, in columns.
_TURN_WORK = {"fast": 0.0, "standard": 2e5, "thorough": 2e6, "exact": 2e6}
#: Moves of the annealing on margins that are summed again, of which a million take half a second.
_MARGIN_MOVES = {"fast": 2e6, "standard": 8e7, "thorough": 2e8, "exact": 2e8}
#: Integer programs of neighbourhoods, times columns and constraints of the table, which their roots take; and
#: how many at most.
_NEIGHBOURHOOD_WORK = {"fast": 0.0, "standard": 2.5e5, "thorough": 1.5e6, "exact": 1.5e6}
_NEIGHBOURHOODS = 60
#: Work of the plane cuts, in columns.
_PLANE_WORK = {"fast": 0.0, "standard": 1e6, "thorough": 3e6, "exact": 3e6}
#: Work of the cell cuts, in columns.
_CELL_WORK = {"fast": 1e5, "standard": 4e6, "thorough": 1.2e7, "exact": 1.2e7}


@dataclass(frozen=True)
class Budget:
    """Work allowed.

    Attributes
    ----------
    search : parameters of the local search
    descents : parameters of margins that are summed again
    short_constraints : whether constraints are short enough for programs of blocks of them
    block_work : work of the descent by blocks where the table is large
    prove : whether branch and bound is run
    nodes : its nodes, None for as many as it takes
    bound : what proves it: disjoint constraints, the covering relaxation, or the whole one too
    plane_work : work of the plane cuts that tighten it
    cell_work : work of the cell cuts that tighten it
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
    """Work for a problem.

    Raises
    ------
    InvalidParameter
        Where the effort is unknown.
    """
    check_name("effort", effort, EFFORTS)
    size, cells = max(1, problem.size), problem.table.cells
    constraints, entries = problem.constraints.shape[0], problem.constraints.nnz
    columns = max(1, 2 * len(problem.free) + 2 * constraints)
    programs = int(max(4, _COLUMNS[effort] / columns))
    from_nothing = _COLUMNS[effort] / work_from_nothing(columns, constraints)
    many = constraints >= MANY_CONSTRAINTS and entries >= LONG_CONSTRAINT * constraints
    most = 6 if size > _FEW_STARTS_SIZE else 60
    fewest = 1 if many or from_nothing < _START_PROGRAMS else 2
    starts = fewest if many else max(fewest, min(most, int(from_nothing / _START_PROGRAMS)))
    moves = _MOVES[effort] / 2 / size / (1 + constraints / _MOVE_DOUBLING_CONSTRAINTS)
    sweeps = int(min(20_000, 100 * size, max(30, moves / starts)))
    short = entries < LONG_CONSTRAINT * constraints
    decisive = (
        size > _FEW_STARTS_SIZE
        and not short
        and size < _CELLS_OF_CONSTRAINT * constraints
        and effort != "fast"
    )
    sum_moves, following = _SUM_MOVES[effort], _COLUMNS[effort]
    blocks = short and constraints >= _BLOCK_CONSTRAINTS
    prove = size <= _PROOF_SIZE[effort] and entries <= _PROOF_ENTRIES
    very_short = entries <= _VERY_SHORT_CONSTRAINT * constraints
    turns = very_short and not (blocks or prove or problem.table.quality)
    neighbourhoods = int(min(_NEIGHBOURHOODS, _NEIGHBOURHOOD_WORK[effort] / columns / max(constraints, 1)))
    runs = _belief_runs(problem, effort) if decisive or not (many or blocks or turns) else 0
    if runs and decisive:
        starts = max(1, min(runs, int(from_nothing / _BELIEF_PROGRAMS)))
        following = 0.0
    elif runs and disjoint_classes(problem).max(initial=-1) <= 1:
        starts, neighbourhoods = min(runs, _TWO_WAY_RUNS * starts), 0
    elif runs:
        starts = min(runs, starts)
    elif decisive:
        sum_moves, following = sum_moves * _DECISIVE, following / _DECISIVE
    sum_sweeps = int(min(100_000, 100 * size, max(30, sum_moves / size / starts)))
    turn_work = _TURN_WORK[effort] if turns else 0.0
    if turn_work:
        starts = 1
    rounds = 0 if many or blocks or not following else min(1500, 2 * programs // 3)
    cut_share = _CUT_SHARE if programs >= _CUT_PROGRAMS else 0.0
    flip_work = 0.0 if many else (_CUT_SHARE - cut_share + _FLIP_SHARE) * following
    if blocks:
        flip_work = _BLOCK_WORK[effort]
    cut_sweeps = int(min(150, max(10, moves / max(rounds, 1))))
    bound: Bound = "disjoint constraints" if many or cells > LARGE_CELLS else "relaxation"
    if cells > LARGE_CELLS and short:
        bound = "covering"
    return Budget(
        search=LocalSearchParams(
            starts,
            sweeps,
            sum_sweeps,
            rounds,
            cut_sweeps,
            cut_work=cut_share * following,
            flip_work=flip_work,
            blocks=blocks,
            turn_work=turn_work,
            neighbourhoods=0 if prove else neighbourhoods,
            belief_rounds=_BELIEF_ROUNDS if runs else 0,
            margin_moves=_MARGIN_MOVES[effort] if very_short else 0.0,
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
    """Runs of beliefs that the patterns of all constraints allow; 0 where they are no good starts."""
    patterns = pattern_count(problem)
    if patterns is None or problem.incidence.nnz < _SETTLED_CELLS * max(problem.constraints.shape[0], 1):
        return 0
    return int(_PATTERNS[effort] / _BELIEF_ROUNDS / max(patterns, 1))


def _descent_params(size: int, effort: str) -> DescentParams:
    sweeps = _SUM_MOVES[effort] / size
    runs = int(min(_DESCENT_RUNS, max(1, sweeps / _DESCENT_SWEEPS)))
    each = int(min(_DESCENT_SWEEPS, max(20, sweeps)))
    return DescentParams(runs, each, _DESCENT_PASSES if effort != "fast" else 2)
