"""Aggregation step: one representative per cluster, by errors in control tables (Cost 2023, chapter 5)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.nominal import TWO_STEP
from microguard.sdc.arguments import check_name, checked_seed
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.nominal.aggregation.exact import OptimalChoices, aggregate_exactly
from microguard.sdc.nominal.aggregation.heuristics import (
    aggregate_by_cliques,
    aggregate_greedily,
    improve_choices,
)
from microguard.sdc.nominal.aggregation.problem import AggregationProblem
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import from_frame
from microguard.sdc.stop import Deadline, StoppedBy

#: "auto" proves optimality up to this many choices, and searches beyond.
PROVABLE_CHOICES = 600
#: Moves of the local search per choice, and at least.
MOVES_PER_CHOICE = {"fast": 50, "standard": 500, "thorough": 2_000, "exact": 2_000}
_FEWEST_MOVES = 50_000
#: Branch-and-bound nodes of the integer program: at "standard" a proof where it comes by itself.
_NODES = {"standard": 100, "thorough": 2_000, "exact": 20_000}
#: Algorithms by name besides the twelve of the thesis, whose last letter decides here.
ALGORITHMS = ("auto", "exact", "greedy", "clique", "local-search")


@dataclass(frozen=True)
class Aggregation:
    """The protected frame.

    Attributes
    ----------
    protected : DataFrame, the same index and columns; the records of a cluster are alike
    chi2 : sum over the cells of the control tables of (n_t - o_t)^2 / o_t
    lower_bound : valid bound on chi2 over all representatives of these clusters, or None
    optimal : whether chi2 is proved least
    algorithm : the algorithm that ran
    stopped_by : "proof", "work" or "time"
    """

    protected: pd.DataFrame
    chi2: float
    lower_bound: float | None
    optimal: bool
    algorithm: str
    stopped_by: StoppedBy


def aggregate(
    frame: pd.DataFrame,
    labels: np.ndarray,
    control_tables: int | Sequence[Sequence[Hashable]] = 3,
    *,
    algorithm: str = "auto",
    seed: int = 0,
    time_limit: float | None = None,
) -> Aggregation:
    """Replace the records of each cluster by one of its records, with least chi-square.

    Parameters
    ----------
    frame : DataFrame (n, a)
        Nominal variables of any dtype; a missing value is one more category.
    labels : (n,) integer array
        Cluster of each record, any integers. Clusters of any size are taken: k is the partition's promise.
    control_tables : int or sequence of tuples of names
        All tables up to a dimension, or those named.
    algorithm : str
        "exact" (mixed-integer program), "greedy" (Algorithm 8), "clique" (Algorithm 9), "local-search",
        a name of the thesis such as "own-hhg", of which the last letter decides here, or "auto": exact
        where there are few enough choices, else local-search.
    seed : int
        Of the local search, which the exact method starts from, too; not negative.
    time_limit : float, optional
        Seconds, a safety net for the mixed-integer program.

    Returns
    -------
    Aggregation
        The protected frame has the index, columns and dtypes of `frame`.

    Raises
    ------
    TooFewRecords
        A frame without records.
    ShapeMismatch
        Not one label per record.
    InvalidParameter
        Labels that are no integers; a bad algorithm, control table or time limit; a frame without
        variables, or with values that cannot be told equal or not.
    UnknownVariable
        Two variables of one name, or a control table of a name that is no variable.

    References
    ----------
    Cost 2023, chapter 5; in place of its quadratic integer program a linear one over the hull of each
    cell's attainable counts (`error_hull`).
    """
    check_name("aggregation algorithm", algorithm, (*ALGORITHMS, *TWO_STEP))
    if algorithm in TWO_STEP:
        algorithm = TWO_STEP[algorithm].aggregation
    seed = checked_seed(seed)
    coded = from_frame(frame)
    clusters = _clusters(labels, len(frame))
    tables = ControlTables.of(coded.frequencies, control_tables)
    problem = AggregationProblem.of(coded.combination, clusters, tables)
    if algorithm == "auto":
        algorithm = "exact" if problem.choices <= PROVABLE_CHOICES else "local-search"
    solution = choose_representatives(problem, algorithm, seed=seed, deadline=Deadline.after(time_limit))
    return Aggregation(
        protected=coded.decode_combinations(problem.representatives(solution.chosen)[clusters]),
        chi2=problem.chi2(solution.chosen),
        lower_bound=solution.lower_bound,
        optimal=solution.optimal,
        algorithm=algorithm,
        stopped_by=solution.stopped_by,
    )


def choose_representatives(
    problem: AggregationProblem,
    algorithm: str,
    *,
    seed: int,
    deadline: Deadline,
    effort: str = "exact",
) -> OptimalChoices:
    """Run one algorithm on a preprocessed problem."""
    if len(problem.sizes) == 0:  # every cluster is decided
        nothing = np.empty(0, np.int64)
        return OptimalChoices(nothing, problem.chi2(nothing), True, "proof")
    if algorithm == "clique":
        return _unproved(aggregate_by_cliques(problem))
    chosen = aggregate_greedily(problem)
    if algorithm == "greedy":
        return _unproved(chosen)
    moves = max(_FEWEST_MOVES, MOVES_PER_CHOICE[effort] * problem.choices)
    chosen = improve_choices(problem, chosen, moves=moves, seed=seed)
    if algorithm == "local-search":
        return _unproved(chosen)
    return aggregate_exactly(problem, chosen, nodes=_NODES[effort], deadline=deadline)


def _unproved(chosen: np.ndarray) -> OptimalChoices:
    return OptimalChoices(chosen, None, False, "work")


def _clusters(labels: np.ndarray, records: int) -> np.ndarray:
    """Labels as 0 ... clusters - 1, none empty."""
    given = np.asarray(labels)
    if given.shape != (records,):
        raise ShapeMismatch(f"labels have shape {given.shape}, expected ({records},): one per record")
    if not np.issubdtype(given.dtype, np.integer):
        raise InvalidParameter(f"labels are integers, found {given.dtype}")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)
