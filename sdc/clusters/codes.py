"""Categories of a column as codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def category_codes(column: pa.ChunkedArray) -> np.ndarray:
    """Codes in the order of the values, (n,) int64; NULL is one more category, the last."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    distinct = pc.unique(column).drop_null()
    distinct = distinct.take(pc.array_sort_indices(distinct))
    codes = pc.index_in(column, value_set=distinct).fill_null(len(distinct))
    return np.asarray(pa.chunked_array(codes).to_numpy()).astype(np.int64)
