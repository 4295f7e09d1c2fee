"""The nominal algorithms by name: what each needs and can carry, and its call.

A new one is a row here, its file, and its name in `schemas.methods`. An algorithm is a function

    solve(task: ProtectionTask, name: str) -> ProtectedCounts

that keeps the total of each region, makes every count 0 or at least k, and never occupies a combination
that did not occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from microguard.sdc.arguments import check_name
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.nominal.bounds import nested_bound
from microguard.sdc.nominal.chi_exact import ChiExactParameters, chi_exact
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.frequency_search.objective import ByTable, SearchParameters
from microguard.sdc.nominal.frequency_search.search import protect_frequencies
from microguard.sdc.nominal.partitioning.construction import Guidance
from microguard.sdc.nominal.protected_counts import (
    OBJECTIVE_TOLERANCE,
    Certificate,
    Objective,
    ProtectedCounts,
)
from microguard.sdc.nominal.similarity import Similarity
from microguard.sdc.nominal.two_step import RANDOM, two_step
from microguard.sdc.nominal.two_step_names import TWO_STEP
from microguard.sdc.stop import Deadline

Effort = Literal["fast", "standard", "thorough", "exact"]
EFFORTS: tuple[Effort, ...] = ("fast", "standard", "thorough", "exact")
#: Of algorithms that prove nothing of the whole.
UNPROVED: tuple[Effort, ...] = ("fast", "standard", "thorough")
LOCAL_SEARCH, CHI_EXACT = "local-search", "chi-exact"
#: Combinations up to which effort "exact" hands the problem to the solver.
PROVABLE = 1_000
#: Branch-and-bound nodes of Chi-ex on a block: seconds, where a whole file is given minutes.
_BLOCK_NODES = 20


@dataclass(frozen=True)
class ProtectionTask:
    """A frequency vector to be protected, and how.

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
    parameters : of the type that the method's row names, optional
    similarity : distances that a partition is to use, optional
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
    deadline: Deadline = field(default_factory=lambda: Deadline.after(None))

    @property
    def steered(self) -> bool:
        """Whether bounds on errors, cells to be kept or structural zeros are asked for."""
        return self.max_absolute_error is not None or self.kept_dimension != 0 or self.allowed is not None


@dataclass(frozen=True)
class Method:
    """What an algorithm needs and can carry.

    Attributes
    ----------
    solve : callable
        See the module's text.
    parameters : type or None
        Type of the parameters it takes.
    steered : bool
        Whether it carries bounds on errors, cells to be kept and structural zeros.
    efforts : tuple of str
        Efforts it can be asked for. "exact" is for those that solve a program of the whole problem, or
        search the longer and have their gap stated; where the work depends on no effort, it is refused.
    whole_file : bool
        Whether it takes the combinations of a whole file at once; the others solve programs, and are
        for some hundred records at a time.
    block_parameters : object or None
        Parameters on such a block.
    """

    solve: Callable[[ProtectionTask, str], ProtectedCounts]
    parameters: type | None = None
    steered: bool = False
    efforts: tuple[Effort, ...] = EFFORTS
    whole_file: bool = False
    block_parameters: object | None = None

    def check(self, name: str, task: ProtectionTask) -> None:
        """Refuse what it cannot carry."""
        if task.steered and not self.steered:
            raise UnsupportedCombination(
                f"{name} takes no max_absolute_error, kept_dimension or structural_zeros; {LOCAL_SEARCH} does"
            )
        if task.effort not in self.efforts:
            raise UnsupportedCombination(
                f"{name} can be asked for effort {', '.join(self.efforts)}, found {task.effort}: its work "
                "depends on no effort, and of the whole it proves nothing"
            )
        if task.parameters is not None and not (
            self.parameters is not None and isinstance(task.parameters, self.parameters)
        ):
            taken = "none" if self.parameters is None else self.parameters.__name__
            raise UnsupportedCombination(
                f"parameters of {name}: expected {taken}, found {type(task.parameters).__name__}"
            )


def protect_counts(
    task: ProtectionTask, name: str, methods: Mapping[str, Method] | None = None
) -> ProtectedCounts:
    """Protect a frequency vector by the algorithm of this name.

    Parameters
    ----------
    task : ProtectionTask
    name : str
        As in `METHODS`; `chosen` turns "auto" into one.
    methods : mapping of name to Method, optional
        Another table than this one.

    Raises
    ------
    InvalidParameter, TooFewRecords, UnsupportedCombination
    """
    methods = METHODS if methods is None else methods
    check_name("algorithm", name, ("auto", *methods))
    check_name("effort", task.effort, EFFORTS)
    methods[name].check(name, task)
    return bounded(task, methods[name].solve(task, name))


def chosen(algorithm: str, task: ProtectionTask) -> str:
    """What "auto" stands for: local search, and Chi-ex where effort is "exact" and its proof can end."""
    if algorithm != "auto":
        return algorithm
    provable = len(task.frequencies) <= PROVABLE and not task.steered and task.parameters is None
    return CHI_EXACT if task.effort == "exact" and provable else LOCAL_SEARCH


def bounded(task: ProtectionTask, solution: ProtectedCounts) -> ProtectedCounts:
    """The solution with the bound that holds for every method beside its own; whichever says more."""
    chi2, proved = task.tables.chi2(solution.counts), solution.lower_bound
    bound = nested_bound(task.tables, task.k)
    bound = min(chi2, bound if proved is None else max(bound, proved))
    optimal = solution.optimal or chi2 <= bound + OBJECTIVE_TOLERANCE
    whole = Certificate("whole", "chi-square", chi2, bound, optimal)
    return replace(solution, lower_bound=bound, optimal=optimal, certificates=(*solution.certificates, whole))


def _local_search(task: ProtectionTask, name: str) -> ProtectedCounts:
    assert task.parameters is None or isinstance(task.parameters, SearchParameters)
    searched = protect_frequencies(
        task.frequencies,
        task.k,
        task.tables,
        effort=task.effort,
        seed=task.seed,
        max_absolute_error=task.max_absolute_error,
        parameters=task.parameters,
        kept_dimension=task.kept_dimension,
        allowed=task.allowed,
        deadline=task.deadline,
    )
    return ProtectedCounts(searched.counts, searched.stopped_by, work={"moves": searched.work})


def _chi_exact(task: ProtectionTask, name: str) -> ProtectedCounts:
    assert task.parameters is None or isinstance(task.parameters, ChiExactParameters)
    proved = chi_exact(
        task.frequencies,
        task.k,
        task.tables,
        parameters=task.parameters or ChiExactParameters(),
        seed=task.seed,
        deadline=task.deadline,
    )
    alone = task.parameters is None or task.parameters.deviation_weight == 0
    objective: Objective = "chi-square" if alone else "chi-square and deviations"
    return ProtectedCounts(
        proved.counts,
        proved.stopped_by,
        lower_bound=proved.lower_bound if alone else None,
        optimal=proved.optimal and alone,
        certificates=(Certificate.of(name, objective, proved.objective, proved),),
        work={"nodes": proved.nodes},
    )


def _two_step(task: ProtectionTask, name: str) -> ProtectedCounts:
    assert task.parameters is None or isinstance(task.parameters, Guidance)
    return two_step(
        task.frequencies,
        task.k,
        task.tables,
        name=name,
        seed=task.seed,
        deadline=task.deadline,
        guidance=task.parameters,
        similarity=task.similarity,
    )


METHODS: dict[str, Method] = {
    **dict.fromkeys(TWO_STEP, Method(_two_step, parameters=Guidance)),
    RANDOM: Method(_two_step, efforts=UNPROVED),
    CHI_EXACT: Method(
        _chi_exact,
        parameters=ChiExactParameters,
        block_parameters=ChiExactParameters(nodes=_BLOCK_NODES),
    ),
    LOCAL_SEARCH: Method(_local_search, parameters=SearchParameters, steered=True, whole_file=True),
}
