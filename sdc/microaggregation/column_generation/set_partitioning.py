"""Set-partitioning program: choose candidate clusters of minimal cost such that each record is in exactly
one.

Equation (9) of Gentile et al. (2020) over given columns. Its linear relaxation is the master problem of
column generation. As an integer program, it gives the best partition into these columns.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.solver import INFINITY, Program
from scipy import sparse

#: Column values below this are rounding errors of the linear program.
PRESENT = 1e-6


def set_partitioning(
    costs: np.ndarray,
    incidence: sparse.spmatrix,
    cuts: sparse.spmatrix | None = None,
    limits: np.ndarray | None = None,
    *,
    integer: bool = False,
    upper: float = 1.0,
) -> Program:
    """Build the program over given columns.

    Parameters
    ----------
    costs : (columns,) array
        SSE of each cluster.
    incidence : sparse (n, columns)
        Incidence matrix of records and columns.
    cuts : sparse (cuts, columns), optional
        Coefficients of valid inequalities.
    limits : (cuts,) array, optional
        Right-hand sides of the inequalities.
    integer : bool
        Whether the columns are integer variables.
    upper : float
        Upper bound of each column. The equations imply 1.
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
    """Return the incidence matrix of n records and the clusters `members` (padded with -1), (n, columns)."""
    present = members >= 0
    pointers = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return sparse.csc_matrix((np.ones(pointers[-1]), members[present], pointers), shape=(n, len(members)))
