"""Protect a frequency vector by an algorithm's name; the rows are in `sdc.algorithms.nominal`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from microguard.sdc.algorithms.algorithm import EFFORTS, Effort
from microguard.sdc.algorithms.nominal import (
    CHI_EXACT,
    FREQUENCY,
    LOCAL_SEARCH,
    PROVABLE,
    ByTable,
    FrequencyAlgorithm,
)
from microguard.sdc.arguments import check_name
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.nominal.bounds import nested_bound
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.protected_counts import OBJECTIVE_TOLERANCE, Certificate, ProtectedCounts
from microguard.sdc.nominal.similarity import Similarity
from microguard.sdc.stop import Deadline


@dataclass(frozen=True)
class ProtectionTask:
    """A frequency vector to be protected, and the parameters.

    Attributes
    ----------
    frequencies : FrequencyVector
    k : int
    tables : ControlTables of these frequencies
    effort : moves of a search
    seed : int, not negative
    max_absolute_error : mapping of table dimension, or of a table's names, to records, optional
    kept_dimension : variables of the tables whose cells of k records or more are not to be emptied; 0 is none
    allowed : (m,) bool array, optional; False for structural zeros
    parameters : of the type that the algorithm's row names, optional
    similarity : distances that a partition is to use, optional
    in_block : whether it is one of the many blocks of a run
    deadline : a safety net
    """

    frequencies: FrequencyVector
    k: int
    tables: ControlTables
    effort: Effort = "standard"
    seed: int = 0
    max_absolute_error: ByTable | None = None
    kept_dimension: int = 0
    allowed: np.ndarray | None = None
    parameters: object | None = None
    similarity: Similarity | None = None
    in_block: bool = False
    deadline: Deadline = field(default_factory=lambda: Deadline.after(None))

    @property
    def steered(self) -> bool:
        """Whether bounds on errors, kept cells or structural zeros are specified."""
        return self.max_absolute_error is not None or self.kept_dimension != 0 or self.allowed is not None


def protect_counts(
    task: ProtectionTask, name: str, rows: Mapping[str, FrequencyAlgorithm] = FREQUENCY
) -> ProtectedCounts:
    """Protect a frequency vector by the algorithm of this name.

    Parameters
    ----------
    task : ProtectionTask
    name : str
        As in `rows`; `chosen` turns "auto" into one.
    rows : mapping of name to FrequencyAlgorithm
        Algorithms that may be named.

    Raises
    ------
    InvalidParameter, TooFewRecords, UnsupportedCombination
    """
    check_name("algorithm", name, ("auto", *rows))
    check_name("effort", task.effort, EFFORTS)
    row = rows[name]
    if task.steered and not row.steered:
        raise UnsupportedCombination(
            f"{name} takes no max_absolute_error, kept_dimension or structural_zeros; {LOCAL_SEARCH} does"
        )
    row.check(name, task.effort, task.parameters)
    return bounded(task, row.solve(task, name))


def chosen(algorithm: str, task: ProtectionTask) -> str:
    """Return the algorithm that "auto" selects: local search, or Chi-ex if effort is "exact" and its proof
    can end.
    """
    if algorithm != "auto":
        return algorithm
    provable = len(task.frequencies) <= PROVABLE and not task.steered and task.parameters is None
    return CHI_EXACT if task.effort == "exact" and provable else LOCAL_SEARCH


def bounded(task: ProtectionTask, solution: ProtectedCounts) -> ProtectedCounts:
    """Return the solution with the larger of its own bound and the one that holds for every algorithm."""
    chi2, proved = task.tables.chi2(solution.counts), solution.lower_bound
    bound = nested_bound(task.tables, task.k)
    bound = min(chi2, bound if proved is None else max(bound, proved))
    optimal = solution.optimal or chi2 <= bound + OBJECTIVE_TOLERANCE
    whole = Certificate("whole", "chi-square", chi2, bound, optimal)
    return replace(solution, lower_bound=bound, optimal=optimal, certificates=(*solution.certificates, whole))
