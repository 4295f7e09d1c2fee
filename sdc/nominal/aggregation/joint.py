"""Representatives of all clusters of any clustering, chosen together on the errors of the control tables.

The mode, cluster by cluster, drops every rare value in every cluster: errors add up (Cost 2023, Example
5.1.2). Here the clusters of a mixed, household or diverse clustering, of all blocks, are one aggregation
problem: each cluster publishes one of its own combinations, so that k and diversity are as they were, and
the choices make up for each other. It works on the distinct combinations of each cluster, so that a
reconcile step collects those instead of records.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.arguments import check_name
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.nominal.aggregation.aggregate import (
    MOVES_PER_CHOICE,
    PROVABLE_CHOICES,
    choose_representatives,
)
from microguard.sdc.nominal.aggregation.problem import AggregationProblem
from microguard.sdc.nominal.bounds import nested_bound
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import collapse
from microguard.sdc.nominal.frequency_search.objective import check_kept_dimension
from microguard.sdc.nominal.protected_counts import Certificate
from microguard.sdc.nominal.region_levels import RegionLevels
from microguard.sdc.stop import Deadline, StoppedBy


@dataclass(frozen=True)
class JointRepresentatives:
    """One combination per cluster, and what the choices do to the control tables.

    Attributes
    ----------
    labels : (c,) int64 array, sorted
        The clusters.
    codes : (c, a) int32 array
        Values that each cluster publishes: a combination of one of its records.
    chi2 : float
        Over the cells of the control tables, regions included.
    errors : dict
        Largest absolute error of a cell of the whole file by dimension.
    region_errors : dict
        The same of a cell of a region, by level of regions and dimension.
    certificate : Certificate
        Bound on the chi-square of every choice for these clusters; None only where one is of one record.
    stopped_by : "proof", "work" or "time"
    """

    labels: np.ndarray
    codes: np.ndarray
    chi2: float
    errors: dict[int, int]
    region_errors: dict[Hashable, dict[int, int]]
    certificate: Certificate
    stopped_by: StoppedBy


def joint_representatives(
    codes: np.ndarray,
    labels: np.ndarray,
    names: Sequence[Hashable],
    control_tables: int | Sequence[Sequence[Hashable]],
    *,
    records: np.ndarray | None = None,
    regions: np.ndarray | None = None,
    levels: RegionLevels | None = None,
    region_dimension: int = 0,
    k: int = 1,
    kept_dimension: int = 0,
    effort: str = "standard",
    seed: int = 0,
    deadline: Deadline | None = None,
) -> JointRepresentatives:
    """Choose the representatives of all clusters together.

    Parameters
    ----------
    codes : (n, a) int array
        Values of the nominal variables, coded 0, 1, ...: one row a record, or one a cluster and
        combination with `records`. The order of rows does not matter.
    labels : (n,) int array
        Cluster of each row, over all blocks; clusters in order of their labels.
    names : a labels
        Names of the variables.
    control_tables : int or sequence of tuples of names
        All tables up to a dimension, or those named.
    records : (n,) int array, optional
        Records that each row stands for; 1 each by default.
    regions : (n,) int array, optional
        Region of each row, fixed: a cluster lies in one.
    levels, region_dimension : as of `ControlTables.of`
    k, kept_dimension : int
        Cells that at least k records hold, of tables of up to so many variables (a region is none), are not
        emptied where the search finds a way: 1 keeps categories, 0 none.
    effort : {"fast", "standard", "thorough", "exact"}
        Moves of the local search per choice; few choices are proved by the solver at every effort but
        fast, where no cell is to be kept.
    seed : int
    deadline : Deadline, optional
        A safety net for the solver.

    Raises
    ------
    ShapeMismatch, InvalidParameter, UnknownVariable
        Arrays of other lengths; a cluster in two regions; a bad effort or control table.

    References
    ----------
    Cost 2023, chapter 5: problem (5.2.1)-(5.2.3) over all clusters at once.
    """
    check_name("effort", effort, MOVES_PER_CHOICE)
    check_kept_dimension(kept_dimension)
    rows = _checked(codes, labels, names, records, regions)
    distinct, cluster = np.unique(labels, return_inverse=True)
    cluster = cluster.ravel()
    if regions is not None and len(np.unique(np.column_stack([cluster, regions]), axis=0)) > len(distinct):
        raise InvalidParameter("a cluster lies in two regions; representatives would move records")
    sizes = codes.max(axis=0, initial=0) + 1
    frequencies, combination = collapse(codes, sizes, tuple(names), regions=regions, counts=rows)
    tables = ControlTables.of(frequencies, control_tables, levels=levels, region_dimension=region_dimension)
    kept = tables.kept(k, kept_dimension) if kept_dimension else None
    problem = AggregationProblem.of(combination, cluster, tables, rows, kept)
    provable = effort != "fast" and not kept_dimension and problem.choices <= PROVABLE_CHOICES
    choices = choose_representatives(
        problem,
        "exact" if provable else "local-search",
        seed=seed,
        deadline=deadline or Deadline.after(None),
        effort=effort,
    )
    representative = problem.representatives(choices.chosen)
    masses = np.bincount(cluster, weights=rows)
    counts = np.bincount(representative, weights=masses, minlength=len(frequencies)).astype(np.int64)
    chi2 = tables.chi2(counts)
    least = int(masses.min())
    if least > 1:
        # A cell holds no cluster, or at least the smallest one: a bound for every clustering into such.
        bound = max(nested_bound(tables, least), choices.lower_bound or 0.0)
        choices = replace(choices, lower_bound=min(bound, chi2))
    return JointRepresentatives(
        labels=distinct.astype(np.int64),
        codes=frequencies.codes[representative],
        chi2=chi2,
        errors=tables.max_absolute_error(counts),
        region_errors=tables.region_errors(counts),
        certificate=Certificate.of("aggregation", "chi-square", chi2, choices, heuristic=not provable),
        stopped_by=choices.stopped_by,
    )


def _checked(
    codes: np.ndarray,
    labels: np.ndarray,
    names: Sequence[Hashable],
    records: np.ndarray | None,
    regions: np.ndarray | None,
) -> np.ndarray:
    """Records of each row, where everything fits together."""
    if codes.ndim != 2 or not len(codes) or codes.shape[1] != len(names):
        raise ShapeMismatch(f"codes of shape {codes.shape} for {len(names)} variables and at least one row")
    rows = np.ones(len(codes), np.int64) if records is None else np.asarray(records, np.int64)
    for what, given in (("labels", labels), ("records", rows), ("regions", regions)):
        if given is not None and np.shape(given) != (len(codes),):
            raise ShapeMismatch(f"{what} have shape {np.shape(given)}, expected ({len(codes)},)")
    if not np.issubdtype(np.asarray(labels).dtype, np.integer) or (rows < 1).any():
        raise InvalidParameter("labels are integers, and every row stands for at least one record")
    return rows
