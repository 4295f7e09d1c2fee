"""Aggregation step: choose one representative per cluster such that table errors are small (Cost 2023,
chapter 5).
"""

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

#: Maximum number of choices for which "auto" solves the exact program; with more choices it uses local
#: search.
PROVABLE_CHOICES = 600
#: Number of local search moves per choice, and minimum total number of moves.
MOVES_PER_CHOICE = {"fast": 50, "standard": 500, "thorough": 2_000, "exact": 2_000}
_FEWEST_MOVES = 50_000
#: Node limit of the integer program. With effort "standard", optimality is proved only if the program is
#: easy.
_NODES = {"standard": 100, "thorough": 2_000, "exact": 20_000}
#: Names of algorithms beyond the twelve names of the thesis, whose last letter denotes the aggregation
#: algorithm.
ALGORITHMS = ("auto", "exact", "greedy", "clique", "local-search")


@dataclass(frozen=True)
class Aggregation:
    """Protected frame, and the proved bound on its chi-square.

    Attributes
    ----------
    protected : DataFrame
        Same index and columns as the original. The records of a cluster are equal.
    chi2 : float
        Sum over the cells of the control tables of (n_t - o_t)^2 / o_t.
    lower_bound : float or None
        Valid bound on the chi-square of every choice of representatives for these clusters.
    optimal : bool
        Whether chi2 is proved minimal.
    algorithm : str
        Algorithm that ran.
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
    """Replace the records of each cluster by one of them such that chi-square is small.

    Parameters
    ----------
    frame : DataFrame (n, a)
        Nominal variables of any dtype. A missing value is a separate category.
    labels : (n,) integer array
        Cluster of each record. Clusters may have any size; the partition step guarantees the minimum k.
    control_tables : int or sequence of tuples of names
        All tables up to this dimension, or tables given by their variables.
    algorithm : str
        "exact" (mixed-integer program), "greedy" (Algorithm 8), "clique" (Algorithm 9), "local-search", or a
        name of the thesis such as "own-hhg", whose last letter selects the algorithm. "auto" is exact for few
        choices and local-search for more.
    seed : int
        Seed of the local search, at least 0. The exact algorithm also starts from a local search.
    time_limit : float, optional
        Seconds for the mixed-integer program, as a safety net.

    Returns
    -------
    Aggregation
        The protected frame has the index, columns and dtypes of `frame`.

    Raises
    ------
    TooFewRecords
        If the frame has no records.
    ShapeMismatch
        If there is not one label per record.
    InvalidParameter
        If the labels are not integers; if the algorithm, a control table or the time limit is invalid; if the
        frame has no variables, or values that cannot be compared.
    UnknownVariable
        If two variables have the same name, or a control table names an unknown variable.

    References
    ----------
    Cost 2023, chapter 5. Its quadratic integer program is replaced by a linear one over the convex hull of
    each
    cell's attainable counts (`error_hull`).
    """
    check_name("aggregation algorithm", algorithm, (*ALGORITHMS, *TWO_STEP))
    if algorithm in TWO_STEP:
        algorithm = TWO_STEP[algorithm].aggregation
    seed = checked_seed(seed)
    coded = from_frame(frame)
    clusters = _clusters(labels, len(frame))
    tables = ControlTables.of(coded.frequencies, control_tables)
    problem = AggregationProblem.from_clustering(coded.combination, clusters, tables)
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
    """Choose the representatives of a preprocessed problem by a named algorithm."""
    if len(problem.sizes) == 0:  # nothing to choose, because every cluster consists of equal records
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
    """Return the labels as consecutive numbers from 0."""
    given = np.asarray(labels)
    if given.shape != (records,):
        raise ShapeMismatch(f"labels: expected one per record, shape ({records},), found shape {given.shape}")
    if not np.issubdtype(given.dtype, np.integer):
        raise InvalidParameter(f"labels: expected integers, found type {given.dtype}")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)
