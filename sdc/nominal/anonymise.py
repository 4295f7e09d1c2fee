"""Protect a frame of nominal variables: choose the method, protect the counts, carry records over."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sdc.errors import InvalidParameter, UnsupportedCombination
from sdc.nominal.chi_exact import chi_exact
from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import FrequencyVector, check_k, from_frame
from sdc.nominal.frequency_search.objective import ByDimension, SearchParameters
from sdc.nominal.frequency_search.search import Effort, protect_frequencies
from sdc.nominal.structural_zeros import Declared, allowed_combinations
from sdc.nominal.transport import carry_back, transport
from sdc.nominal.two_step import RANDOM, own
from sdc.nominal.two_step_names import OWN
from sdc.stop import Deadline, StoppedBy

LOCAL_SEARCH, CHI_EXACT = "local-search", "chi-exact"
#: Every algorithm by name; "auto" is local-search, and chi-exact where effort is exact and it fits.
ALGORITHMS = (*OWN, RANDOM, CHI_EXACT, LOCAL_SEARCH)
#: Combinations up to which effort "exact" hands the problem to the solver.
_PROVABLE = 1_000


@dataclass(frozen=True)
class Anonymised:
    """A protected frame and what it did to the control tables.

    Attributes
    ----------
    protected : DataFrame
        Same index, columns, dtypes and number of records; every combination occurs at least k times.
    chi2 : float
        Over the cells of the control tables with an original count above 0.
    lower_bound : float or None
        Valid bound on the chi-square of every such frame, where one was proved.
    errors : dict
        Largest absolute error of a cell by table dimension.
    optimal : bool
        Whether chi2 is proved least.
    algorithm : str
    stopped_by : "proof", "work" or "time"
    """

    protected: pd.DataFrame
    chi2: float
    lower_bound: float | None
    errors: dict[int, int]
    optimal: bool
    algorithm: str
    stopped_by: StoppedBy


def anonymise(
    frame: pd.DataFrame,
    k: int,
    control_tables: int | Sequence[Sequence[Hashable]] = 3,
    *,
    effort: Effort = "standard",
    algorithm: str = "auto",
    max_absolute_error: ByDimension | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    parameters: SearchParameters | None = None,
    structural_zeros: Declared | None = None,
) -> Anonymised:
    """Make a frame of nominal variables k-anonymous with little error in its frequency tables.

    The number of records is kept, and no combination is published that does not occur in the frame.

    Parameters
    ----------
    frame : DataFrame (n, a)
        Nominal variables of any dtype; missing values are one more category.
    k : int
        Least records of every combination published, 2 <= k <= n.
    control_tables : int or sequence of tuples of names
        All tables up to a dimension, or those named.
    effort : {"fast", "standard", "thorough", "exact"}
        Moves of the local search. With "exact", "auto" proves what it can by Chi-ex on small files; the
        other algorithms by name take none of it.
    algorithm : str
        "auto", "local-search", "chi-exact", "random", or a two-step method own-eee ... own-hhc.
    max_absolute_error : mapping of table dimension to records, optional
        Bounds that steer the local search; `errors` says what was reached.
    seed : int
        Of the searches, not negative.
    time_limit : float, optional
        Seconds, a safety net.
    parameters : SearchParameters, optional
        Further terms of the local search's objective.
    structural_zeros : callable or sequence of mappings, optional
        For the local search: combinations that cannot be, as a rule that takes the distinct combinations
        as a frame and marks the impossible ones, or as a list of values that cannot occur together.

    Returns
    -------
    Anonymised
        The protected frame has the index, columns and dtypes of `frame`; chi-square and errors are in
        records.

    Raises
    ------
    TooFewRecords
        Fewer than k records, or none.
    InvalidParameter
        A bad k, effort, algorithm, control table, bound, structural zero or time limit; a frame without
        variables, or with values that cannot be told equal or not.
    UnknownVariable
        Two variables of one name; a control table or structural zero of a name that is no variable.
    UnsupportedCombination
        Bounds, parameters or structural zeros with a method that cannot carry them.
    ImpossibleProtection
        Structural zeros leave no combination.
    ShapeMismatch
        A rule that does not give one mark per combination.

    References
    ----------
    Cost 2023, chapters 4 to 6; the local search on the frequency vector is ours (`protect`).
    """
    coded = from_frame(frame)
    check_k(len(frame), k)
    tables = ControlTables.of(coded.frequencies, control_tables)
    steering = [max_absolute_error, parameters, structural_zeros]
    steered = any(option is not None for option in steering)
    name = _choose(algorithm, effort, len(coded.frequencies), steered)
    deadline = Deadline.after(time_limit)
    if name == LOCAL_SEARCH:
        found = protect_frequencies(
            coded.frequencies,
            k,
            tables,
            effort=effort,
            seed=seed,
            max_absolute_error=max_absolute_error,
            parameters=parameters,
            allowed=allowed_combinations(coded, structural_zeros),
            deadline=deadline,
        )
        counts, bound, optimal = found.counts, None, False
        stopped_by = found.stopped_by
    elif name == CHI_EXACT:
        proved = chi_exact(coded.frequencies, k, tables, seed=seed, deadline=deadline)
        counts, bound, optimal = proved.counts, proved.lower_bound, proved.optimal
        stopped_by = proved.stopped_by
    else:
        steps = own(coded.frequencies, k, tables, name=name, seed=seed, deadline=deadline)
        counts, bound, optimal = steps.counts, None, False
        stopped_by = steps.stopped_by
    return Anonymised(
        protected=coded.decode_combinations(_carried(coded.frequencies, coded.combination, counts)),
        chi2=tables.chi2(counts),
        lower_bound=bound,
        errors=tables.max_absolute_error(counts),
        optimal=optimal,
        algorithm=name,
        stopped_by=stopped_by,
    )


def _carried(frequencies: FrequencyVector, combination: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return carry_back(combination, transport(frequencies, counts))


def _choose(algorithm: str, effort: str, combinations: int, steered: bool) -> str:
    """The algorithm to run; refuses a name that there is not and options that it cannot carry."""
    if effort not in ("fast", "standard", "thorough", "exact"):
        raise InvalidParameter(f"effort must be fast, standard, thorough or exact, found {effort!r}")
    if algorithm == "auto":
        provable = effort == "exact" and combinations <= _PROVABLE and not steered
        return CHI_EXACT if provable else LOCAL_SEARCH
    if algorithm not in ALGORITHMS:
        raise InvalidParameter(f"no algorithm {algorithm!r}; expected auto or one of {', '.join(ALGORITHMS)}")
    if steered and algorithm != LOCAL_SEARCH:
        raise UnsupportedCombination(
            f"{algorithm} takes no max_absolute_error, parameters or structural_zeros; local-search does"
        )
    return algorithm
