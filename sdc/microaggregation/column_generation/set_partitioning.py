"""The set-partitioning program: of candidate clusters, those of least cost that hold each record once.

Equation (9) of Gentile et al. (2020), over the columns at hand: as a linear program the master problem of
column generation, as an integer program the best partition that can be put together from them.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.solver import INFINITY, Program
from scipy import sparse


def set_partitioning(
    costs: np.ndarray,
    incidence: sparse.spmatrix,
    cuts: sparse.spmatrix | None = None,
    limits: np.ndarray | None = None,
    *,
    integer: bool = False,
    upper: float = 1.0,
) -> Program:
    """The program over some columns.

    Parameters
    ----------
    costs : (columns,) array
        SSE of each cluster.
    incidence : sparse (n, columns)
        1 where a record belongs to a column.
    cuts : sparse (cuts, columns), optional
    limits : (cuts,) array, with them
        What these rows are at most in every partition.
    integer : bool
        Whether columns are chosen or not; else they are chosen to a share.
    upper : float
        Upper bound of each column; the rows imply 1.
    """
    n, columns = incidence.shape
    above = np.ones(n) if limits is None else np.concatenate([np.ones(n), limits])
    return Program(
        costs=costs,
        matrix=incidence if cuts is None else sparse.vstack([incidence, cuts]).tocsc(),
        row_lower=np.concatenate([np.ones(n), np.full(len(above) - n, -INFINITY)]),
        row_upper=above,
        lower=np.zeros(columns),
        upper=np.full(columns, upper),
        integer=np.ones(columns, dtype=bool) if integer else None,
    )


def incidence_of(members: np.ndarray, n: int) -> sparse.csc_matrix:
    """(n, columns) matrix: 1 where one of n records belongs to a cluster of `members`, -1 as filler."""
    present = members >= 0
    pointers = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return sparse.csc_matrix((np.ones(pointers[-1]), members[present], pointers), shape=(n, len(members)))
