"""Protect a frame of nominal variables: choose the method, protect the counts, carry records over."""

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
    """A protected frame and what it did to the control tables.

    Attributes
    ----------
    protected : DataFrame
        Same index, columns, dtypes and number of records; every combination occurs at least k times.
    chi2 : float
        Over the cells of the control tables with an original count above 0.
    lower_bound : float or None
        Valid bound on the chi-square of every such frame (`nested_bound`, or what a program proved).
    errors : dict
        Largest absolute error of a cell of the whole file by table dimension.
    optimal : bool
        Whether chi2 is proved least.
    algorithm : str
    stopped_by : "proof", "work" or "time"
    certificates : tuple of Certificate
        Objective and bound of each step that solved a problem of its own, given the steps before it.
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
        Moves of the local search. "exact" proves, or states the gap: "auto" is Chi-ex up to a thousand
        combinations, and beyond the search of "thorough" with the bound of the whole file; "random" and
        the two-step methods, whose work depends on no effort, refuse it.
    algorithm : str
        "auto", "local-search", "chi-exact", "random", or a two-step method own-eee ... own-hhc.
    max_absolute_error : mapping of table dimension, or of a table's names, to records, optional
        Bounds that steer the local search; `errors` says what was reached.
    kept_dimension : int
        The local search does not empty cells that at least k records hold, of tables of up to so many
        variables, where that can be: 1 keeps every category (by region, too, where there is a table of it),
        0 none. It comes before small errors.
    seed : int
        Of the searches, not negative.
    time_limit : float, optional
        Seconds, a safety net.
    parameters : SearchParameters, ChiExactParameters or Guidance, optional
        Of the algorithm: further terms of the local search's objective, what Chi-ex may spend, or gamma
        and lambda of the two-step methods. "auto" with parameters is the local search.
    structural_zeros : callable or sequence of mappings, optional
        For the local search: combinations that cannot be, as a rule that takes the distinct combinations
        as a frame and marks the impossible ones, or as a list of values that cannot occur together.
    region : name or sequence of names, optional
        Columns that are regions, finest first: they stay as they are, records move within the finest
        only, and k holds on combination and region. Control tables may name each level.
    region_dimension : int
        Region, at every level, by all tables of up to so many variables are control tables, too.
    distances : mapping of name to Nominal, Ordinal, Hierarchical or Costs, optional
        Distances and weights of variables, for the clusters of the two-step methods and for which records
        take which of the protected combinations; the others are nominal of weight 1.

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
        Two variables of one name; a region, control table or structural zero of a name that is none.
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
    """Split a frame into variables without regions, levels of regions, and the region of each record."""
    if region is None:
        return frame, None, None
    listed = isinstance(region, Sequence) and not isinstance(region, str | tuple)
    names = list(region) if listed and isinstance(region, Sequence) else [region]
    if not names or any((frame.columns == name).sum() != 1 for name in names):
        raise UnknownVariable(f"{len(names)} regions are named; expected names that occur once in the frame")
    levels, regions = RegionLevels.of(frame[names])
    return frame.drop(columns=names), levels, regions
