"""Cost matrices of nominal variables, from their files: what it costs to publish one category for another."""

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

#: More categories than a person has priced, or a matrix in every task can hold.
MOST_CATEGORIES = 1_000


def cost_matrices(specification: Specification) -> dict[str, CostMatrix]:
    """The matrix of each quasi-identifier that has one.

    Raises
    ------
    SpecificationError
        Where a file cannot be read, or is no cost matrix.
    """
    paths = {name: specification.variables[name].costs for name in specification.nominal}
    return {
        name: _read(specification.resolve(path), f"[variables] {name}.costs")
        for name, path in paths.items()
        if path is not None
    }


def not_in_cost_matrix(frame: DataFrame, specification: Specification) -> Column:
    """Whether a recoded record has a value that is not in the cost matrix of its variable; NULL is in any."""
    strange = f.lit(False)
    for name, matrix in cost_matrices(specification).items():
        text = column(name).cast("string")
        strange = strange | (text.isNotNull() & ~text.isin(list(matrix.categories)))
    return strange


def _read(path: str, key: str) -> CostMatrix:
    """A CSV with a header: a name for the first column, then the categories; below, a line each."""
    rows = code_rows(path, key, "the categories in its header and a line for each of them")
    categories = tuple(rows[0][1:]) if rows else ()
    if len(categories) > MOST_CATEGORIES:
        raise SpecificationError(
            f"{key}: the file has {len(categories):,} categories, expected at most {MOST_CATEGORIES:,}. Give "
            "a hierarchy instead."
        )
    if any(len(row) != len(categories) + 1 for row in rows) or len(rows) != len(categories) + 1:
        raise SpecificationError(
            f"{key}: the file has {len(categories)} categories in its header and {max(len(rows) - 1, 0)} "
            "lines below, expected one line a category with a cost for each."
        )
    if not all(categories) or tuple(row[0] for row in rows[1:]) != categories:
        raise SpecificationError(
            f"{key}: the lines name other categories than the header, or in another order."
        )
    try:
        return CostMatrix(categories, np.array([row[1:] for row in rows[1:]], dtype=np.float64))
    except SdcError as error:  # some are a ValueError, too
        raise SpecificationError(f"{key}: {error}.") from None
    except ValueError:
        raise SpecificationError(f"{key}: a cost is no number; write 2.5 with a point.") from None
