"""Protection of a frame of nominal variables: choose the method, protect the counts, assign the records to
the protected counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.algorithms.nominal import ByTable, ChiExactParameters, Guidance, SearchParameters
from microguard.sdc.arguments import checked_seed
from microguard.sdc.errors import UnknownVariable
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.distances import Distance
from microguard.sdc.nominal.frequency import check_k, checked_frame, from_frame
from microguard.sdc.nominal.methods import ProtectionTask, chosen, protect_counts
from microguard.sdc.nominal.protected_counts import Certificate
from microguard.sdc.nominal.region_levels import RegionLevels
from microguard.sdc.nominal.similarity import similarity_of
from microguard.sdc.nominal.structural_zeros import Declared, allowed_combinations
from microguard.sdc.nominal.transport import carry_back, transport
from microguard.sdc.stop import Deadline, StoppedBy


@dataclass(frozen=True)
class Anonymised:
    """Protected frame, and the errors of its control tables.

    Attributes
    ----------
    protected : DataFrame
        Same index, columns, dtypes and number of records; every combination occurs at least k times.
    chi2 : float
        Chi-square over the cells of the control tables with an original count above 0.
    lower_bound : float or None
        Valid lower bound on the chi-square of every such frame, from `nested_bound` or from an integer
        program.
    errors : dict
        Largest absolute error of a cell of the whole file by table dimension.
    optimal : bool
        Whether chi2 is proved to be minimal.
    algorithm : str
    stopped_by : "proof", "work" or "time"
    certificates : tuple of Certificate
        Objective and bound of each step that solved an optimisation problem, given the results of the steps
        before it.
    region_errors : dict
        Largest absolute error of a cell of a region, by level of regions and table dimension.
    """

    protected: pd.DataFrame
    chi2: float
    lower_bound: float | None
    errors: dict[int, int]
    optimal: bool
    algorithm: str
    stopped_by: StoppedBy
    certificates: tuple[Certificate, ...] = ()
    region_errors: dict[Hashable, dict[int, int]] = field(default_factory=dict)


def anonymise(
    frame: pd.DataFrame,
    k: int,
    control_tables: int | Sequence[Sequence[Hashable]] = 3,
    *,
    effort: Effort = "standard",
    algorithm: str = "auto",
    max_absolute_error: ByTable | None = None,
    kept_dimension: int = 0,
    seed: int = 0,
    time_limit: float | None = None,
    parameters: SearchParameters | ChiExactParameters | Guidance | None = None,
    structural_zeros: Declared | None = None,
    region: Hashable | Sequence[Hashable] | None = None,
    region_dimension: int = 1,
    distances: Mapping[Hashable, Distance] | None = None,
) -> Anonymised:
    """Make a frame of nominal variables k-anonymous with small errors in its frequency tables.

    The number of records is kept, and only combinations that occur in the frame are published.

    Parameters
    ----------
    frame : DataFrame (n, a)
        Nominal variables of any dtype; a missing value is a separate category.
    k : int
        Minimum number of records of every published combination, 2 <= k <= n.
    control_tables : int or sequence of tuples of names
        All tables up to a dimension, or tables given by their variables.
    effort : {"fast", "standard", "thorough", "exact"}
        Determines the number of moves of the local search. "exact" proves optimality or states the gap. With
        "exact", "auto" is Chi-ex for up to a thousand combinations; for more it is the search of "thorough"
        with the lower bound of the whole file. "random" and the two-step methods refuse "exact", because
        their work does not depend on the effort.
    algorithm : str
        "auto", "local-search", "chi-exact", "random", or a two-step method own-eee ... own-hhc.
    max_absolute_error : mapping of table dimension, or of a table's names, to records, optional
        Maximum absolute errors that the local search tries to keep; `errors` contains the errors of the
        result.
    kept_dimension : int
        If possible, the local search does not empty cells with at least k records in tables with up to this
        number of variables. With 1 every category is kept (in each region too, if there is such a table);
        with 0 any cell may be emptied. Keeping cells has priority over small errors.
    seed : int
        Seed of the searches, not negative.
    time_limit : float, optional
        Time limit in seconds, as a safety net.
    parameters : SearchParameters, ChiExactParameters or Guidance, optional
        Parameters of the algorithm: further terms of the objective of the local search, work limits of
        Chi-ex, or gamma and lambda of the two-step methods. "auto" with parameters is the local search.
    structural_zeros : callable or sequence of mappings, optional
        Impossible combinations, for the local search: a function that takes the distinct combinations as a
        frame and marks the impossible ones, or a list of values that cannot occur together.
    region : name or sequence of names, optional
        Columns that are regions, finest level first. Their values do not change, records only move within a
        region of the finest level, and k holds for each pair of combination and region. Control tables may
        name each level.
    region_dimension : int
        The tables of each region level by up to this number of variables are control tables too.
    distances : mapping of name to Nominal, Ordinal, Hierarchical or Costs, optional
        Distances and weights of variables. They determine the clusters of the two-step methods and the
        assignment of records to protected combinations. Other variables are nominal with weight 1.

    Returns
    -------
    Anonymised
        The protected frame has the index, columns and dtypes of `frame`. Errors are in numbers of records.

    Raises
    ------
    TooFewRecords
        If there are fewer than k records, or none.
    InvalidParameter
        If k, the effort, the algorithm, a control table, a bound, a structural zero or the time limit is
        invalid; if the frame has no variables, or values that cannot be compared for equality.
    UnknownVariable
        If two variables have the same name, or if a region, control table or structural zero names an unknown
        variable.
    UnsupportedCombination
        If the method does not support bounds, parameters or structural zeros that are given.
    ImpossibleProtection
        If the structural zeros exclude every combination.
    ShapeMismatch
        If a structural-zero function does not return one mark per combination.

    References
    ----------
    Cost 2023, chapters 4 to 6; the local search on the frequency vector is specific to this package
    (`protect`).
    """
    inside, levels, regions = _regions(checked_frame(frame), region)
    coded = from_frame(inside, regions)
    check_k(len(frame), k)
    tables = ControlTables.of(
        coded.frequencies, control_tables, levels=levels, region_dimension=region_dimension
    )
    similarity = similarity_of(coded, distances) if distances else None
    task = ProtectionTask(
        coded.frequencies,
        k,
        tables,
        effort=effort,
        seed=checked_seed(seed),
        max_absolute_error=max_absolute_error,
        kept_dimension=kept_dimension,
        allowed=None if structural_zeros is None else allowed_combinations(coded, structural_zeros),
        parameters=parameters,
        similarity=similarity,
        deadline=Deadline.after(time_limit),
    )
    name = chosen(algorithm, task)
    solution = protect_counts(task, name)
    target = carry_back(coded.combination, transport(coded.frequencies, solution.counts, similarity))
    protected = coded.decode_combinations(target)
    if levels is not None:
        protected = pd.concat([protected, frame[list(levels.names)]], axis=1)[list(frame.columns)]
    return Anonymised(
        protected=protected,
        chi2=tables.chi2(solution.counts),
        lower_bound=solution.lower_bound,
        errors=tables.max_absolute_error(solution.counts),
        region_errors=tables.region_errors(solution.counts),
        optimal=solution.optimal,
        algorithm=name,
        stopped_by=solution.stopped_by,
        certificates=solution.certificates,
    )


def _regions(
    frame: pd.DataFrame, region: Hashable | Sequence[Hashable] | None
) -> tuple[pd.DataFrame, RegionLevels | None, np.ndarray | None]:
    """Split a frame into its other variables, the levels of regions, and the region of each record."""
    if region is None:
        return frame, None, None
    listed = isinstance(region, Sequence) and not isinstance(region, str | tuple)
    names = list(region) if listed and isinstance(region, Sequence) else [region]
    if not names or any((frame.columns == name).sum() != 1 for name in names):
        raise UnknownVariable(
            f"regions: expected names that occur once in the frame, found {len(names)} of them with others"
        )
    levels, regions = RegionLevels.of(frame[names])
    return frame.drop(columns=names), levels, regions
