"""Protect a frequency vector by a named algorithm; `sdc.algorithms.nominal` lists the algorithms."""

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
    """A frequency vector to protect, and the parameters.

    Attributes
    ----------
    frequencies : FrequencyVector
    k : int
    tables : ControlTables of these frequencies
    effort : determines the number of moves of a search
    seed : int, not negative
    max_absolute_error : mapping of table dimension, or of a table's names, to records, optional
    kept_dimension : maximum number of variables of the tables whose cells with at least k records must not be
    emptied; 0 for none
    allowed : (m,) bool array, optional; False for structural zeros
    parameters : of the type given in the algorithm's row, optional
    similarity : distances for the partition step, optional
    in_block : whether the vector is one of the many blocks of a run
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
        """Return whether maximum errors, cells that must not become empty, or structural zeros are
        specified.
        """
        return self.max_absolute_error is not None or self.kept_dimension != 0 or self.allowed is not None


def protect_counts(
    task: ProtectionTask, name: str, rows: Mapping[str, FrequencyAlgorithm] = FREQUENCY
) -> ProtectedCounts:
    """Protect a frequency vector by a named algorithm.

    Parameters
    ----------
    task : ProtectionTask
    name : str
        Name in `rows`; `chosen` replaces "auto" by such a name.
    rows : mapping of name to FrequencyAlgorithm
        Available algorithms.

    Raises
    ------
    InvalidParameter, TooFewRecords, UnsupportedCombination
    """
    check_name("algorithm", name, ("auto", *rows))
    check_name("effort", task.effort, EFFORTS)
    row = rows[name]
    if task.steered and not row.steered:
        raise UnsupportedCombination(
            f"algorithm {name}: expected no max_absolute_error, kept_dimension or structural_zeros, because "
            f"only {LOCAL_SEARCH} supports them. Leave them out, or choose it"
        )
    row.check(name, task.effort, task.parameters)
    return bounded(task, row.solve(task, name))


def chosen(algorithm: str, task: ProtectionTask) -> str:
    """Return the algorithm that "auto" selects: Chi-ex if the effort is "exact" and a proof is feasible,
    otherwise local search.
    """
    if algorithm != "auto":
        return algorithm
    provable = len(task.frequencies) <= PROVABLE and not task.steered and task.parameters is None
    return CHI_EXACT if task.effort == "exact" and provable else LOCAL_SEARCH


def bounded(task: ProtectionTask, solution: ProtectedCounts) -> ProtectedCounts:
    """Return the solution with the larger of two lower bounds: its own, and the bound valid for every
    algorithm.
    """
    chi2, proved = task.tables.chi2(solution.counts), solution.lower_bound
    bound = nested_bound(task.tables, task.k)
    bound = min(chi2, bound if proved is None else max(bound, proved))
    optimal = solution.optimal or chi2 <= bound + OBJECTIVE_TOLERANCE
    whole = Certificate("whole", "chi-square", chi2, bound, optimal)
    return replace(solution, lower_bound=bound, optimal=optimal, certificates=(*solution.certificates, whole))
