"""Cost matrices of nominal variables: the cost of publishing one category in place of another."""

from __future__ import annotations

import numpy as np
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.code_file import code_rows
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.sdc.clusters.cost_matrix import CostMatrix
from microguard.sdc.errors import SdcError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Maximum number of categories of a cost matrix. A person does not specify costs for more, and every task
#: stores the matrix in memory.
MOST_CATEGORIES = 1_000


def cost_matrices(specification: Specification) -> dict[str, CostMatrix]:
    """Return the cost matrix of each nominal quasi-identifier that has one.

    Raises
    ------
    SpecificationError
        If a file cannot be read or is not a cost matrix.
    """
    paths = {name: specification.variables[name].costs for name in specification.nominal}
    return {
        name: _read(specification.resolve(path), f"[variables] {name}.costs")
        for name, path in paths.items()
        if path is not None
    }


def not_in_cost_matrix(frame: DataFrame, specification: Specification) -> Column:
    """Return whether a recoded record has a value (not NULL) that its variable's cost matrix does not
    contain.
    """
    unknown = f.lit(False)
    for name, matrix in cost_matrices(specification).items():
        text = column(name).cast("string")
        unknown = unknown | (text.isNotNull() & ~text.isin(list(matrix.categories)))
    return unknown


def _read(path: str, key: str) -> CostMatrix:
    """Read a CSV whose header contains the categories after a first name, followed by one line of costs per
    category.
    """
    rows = code_rows(path, key, "the categories in its header and a line for each of them")
    categories = tuple(rows[0][1:]) if rows else ()
    if len(categories) > MOST_CATEGORIES:
        raise SpecificationError(
            f"{key}: found {len(categories):,} categories, expected at most {MOST_CATEGORIES:,}. Use a "
            "hierarchy instead."
        )
    if any(len(row) != len(categories) + 1 for row in rows) or len(rows) != len(categories) + 1:
        raise SpecificationError(
            f"{key}: expected one line of costs for each category of the header, found {len(categories)} "
            f"categories and {max(len(rows) - 1, 0)} lines. Complete the file."
        )
    if not all(categories) or tuple(row[0] for row in rows[1:]) != categories:
        raise SpecificationError(
            f"{key}: expected one line for each category of the header in the same order, found other "
            "categories or another order. Sort the lines like the header."
        )
    try:
        return CostMatrix(categories, np.array([row[1:] for row in rows[1:]], dtype=np.float64))
    except SdcError as error:  # caught first, because subclasses are also ValueErrors
        raise SpecificationError(f"{key}: {error}.") from None
    except ValueError:
        raise SpecificationError(
            f"{key}: expected numbers as costs, found other text. Write decimals with a point, as in 2.5."
        ) from None
