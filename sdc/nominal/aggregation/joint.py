"""Joint choice of the representatives of all clusters such that errors of the control tables are small.

If every cluster publishes its mode, rare values disappear from every cluster and the errors add up (Cost
2023, Example 5.1.2). Here all clusters of a clustering, over all blocks, form one aggregation problem. Each
cluster publishes one of its own key combinations, so that k and diversity are preserved, and the errors of
different clusters compensate each other. The input is the distinct key combinations of each cluster, which
are far fewer than the records.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.arguments import check_name
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from microguard.sdc.nominal.aggregation.aggregate import (
    MOVES_PER_CHOICE,
    PROVABLE_CHOICES,
    choose_representatives,
)
from microguard.sdc.nominal.aggregation.problem import AggregationProblem
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import collapse
from microguard.sdc.nominal.frequency_search.objective import check_kept_dimension
from microguard.sdc.nominal.region_levels import RegionLevels
from microguard.sdc.stop import Deadline, StoppedBy


@dataclass(frozen=True)
class JointRepresentatives:
    """Chosen key combination of each cluster, and the resulting errors of the control tables.

    Attributes
    ----------
    labels : (c,) int64 array
        Sorted labels of the clusters.
    codes : (c, a) int32 array
        Published values of each cluster: the key combination of one of its records.
    chi2 : float
        Chi-square over the cells of the control tables, including those by region.
    stopped_by : "proof", "work" or "time"
    """

    labels: np.ndarray
    codes: np.ndarray
    chi2: float
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
    """Choose the representatives of all clusters jointly.

    Parameters
    ----------
    codes : (n, a) int array
        Codes from 0 of the nominal variables. A row is a record or, with `records`, the equal records of a
        cluster. The order of the rows does not matter.
    labels : (n,) int array
        Cluster of each row, unique over all blocks.
    names : tuple of a labels
        Names of the variables.
    control_tables : int or sequence of tuples of names
        All tables up to this dimension, or tables given by their variables.
    records : (n,) int array, optional
        Number of records of each row; 1 by default.
    regions : (n,) int array, optional
        Region of each row. A cluster must not cross regions.
    levels, region_dimension
        See `ControlTables`.
    k, kept_dimension : int
        The search avoids emptying cells with at least k original records in tables with at most
        `kept_dimension` variables, not counting a region. With 1 every category is kept; with 0 any cell may
        be emptied.
    effort : {"fast", "standard", "thorough", "exact"}
        Determines the number of local search moves per choice. The solver proves problems with few choices,
        unless the effort is "fast" or cells must be kept.
    seed : int
        Seed of the local search.
    deadline : Deadline, optional
        Wall-clock limit of the solver, as a safety net.

    Raises
    ------
    ShapeMismatch
        If the arrays have different lengths.
    InvalidParameter
        If a cluster crosses regions, or the effort or a control table is invalid.
    UnknownVariable
        If a control table names an unknown variable.

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
        raise InvalidParameter(
            "clusters: expected each cluster inside one region, found one that covers two regions; its "
            "representative would move records between regions"
        )
    sizes = codes.max(axis=0, initial=0) + 1
    frequencies, combination = collapse(codes, sizes, tuple(names), regions=regions, counts=rows)
    tables = ControlTables.of(frequencies, control_tables, levels=levels, region_dimension=region_dimension)
    kept = tables.kept(k, kept_dimension) if kept_dimension else None
    problem = AggregationProblem.from_clustering(combination, cluster, tables, rows, kept)
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
    return JointRepresentatives(
        labels=distinct.astype(np.int64),
        codes=frequencies.codes[representative],
        chi2=tables.chi2(counts),
        stopped_by=choices.stopped_by,
    )


def _checked(
    codes: np.ndarray,
    labels: np.ndarray,
    names: Sequence[Hashable],
    records: np.ndarray | None,
    regions: np.ndarray | None,
) -> np.ndarray:
    """Validate the arrays and return the number of records of each row."""
    if codes.ndim != 2 or not len(codes) or codes.shape[1] != len(names):
        raise ShapeMismatch(
            f"codes: expected at least one row and {len(names)} variables, found shape {codes.shape}"
        )
    rows = np.ones(len(codes), np.int64) if records is None else np.asarray(records, np.int64)
    for what, given in (("labels", labels), ("records", rows), ("regions", regions)):
        if given is not None and np.shape(given) != (len(codes),):
            raise ShapeMismatch(f"{what}: expected shape ({len(codes)},), found {np.shape(given)}")
    if not np.issubdtype(np.asarray(labels).dtype, np.integer) or (rows < 1).any():
        raise InvalidParameter(
            "labels and records: expected integer labels and at least one record in every row, found others"
        )
    return rows
