"""Categories of a column as codes."""

from __future__ import annotations

import unicodedata

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


def spelled(text: str) -> str:
    """A text as it tells a category: blanks, case and signs of format that nobody sees tell none.

    "HIV", "hiv" and " HIV " are one, in whatever form of Unicode (NFKC, with full case folding). Of blanks
    alone nothing is left: such a text is missing.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(sign for sign in folded if unicodedata.category(sign) != "Cf").split())


def spelled_codes(column: pa.ChunkedArray) -> np.ndarray:
    """Codes of which only equality counts, (n,) int64: one for all spellings of a text, -1 where missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    distinct = pc.unique(column).drop_null()
    if pa.types.is_string(distinct.type) or pa.types.is_large_string(distinct.type):
        spellings = [spelled(text) for text in distinct.to_pylist()]
        of_distinct = np.unique(np.array(spellings, dtype=object), return_inverse=True)[1].ravel()
        of_distinct[np.array([not each for each in spellings], dtype=np.bool_)] = -1
    else:
        of_distinct = np.arange(len(distinct))
    places = np.asarray(pc.index_in(column, value_set=distinct).fill_null(len(distinct)).to_numpy())
    return np.append(of_distinct, -1).astype(np.int64)[places]


def close_codes(values: np.ndarray, of_number: float, apart: float) -> np.ndarray:
    """Codes of numbers, (n, 2) int64: of numbers that are close, all are equal in one of both columns.

    Numbers are close that differ by less than `apart`, and by no more than a share of the larger. On a scale
    on which close ones are less than 1 apart (logarithmic where the share decides, else linear), the columns
    are intervals of length 2, those of the second shifted by 1: what is shorter than 1 has the end of at most
    one of them inside. So who asks for two codes in both has two numbers that are not close.

    Parameters
    ----------
    values : (n,) float array
        NaN is missing, code -1; 0 is a category of its own.
    of_number : float
        The share, above 0 and below 1.
    apart : float
        Above 0.
    """
    sizes, turn = np.abs(values), apart / of_number
    logarithm = -np.log1p(-of_number) * (1.0 + 1e-9)  # differences of just the share are close, too
    inside = (sizes > 0) & (sizes < turn)
    scale = np.where(sizes >= turn, (sizes - turn) / apart, 0.0)
    scale[inside] = np.log(sizes[inside] / turn) / logarithm
    kind = np.where(np.isnan(values), 2.0, np.sign(values))
    scale[np.isnan(values)] = 0.0
    columns = [np.stack([kind, np.floor((scale + shift) / 2.0)], axis=1) for shift in (0.0, 1.0)]
    codes = [np.unique(each, axis=0, return_inverse=True)[1].ravel() for each in columns]
    return np.where(np.isnan(values)[:, np.newaxis], -1, np.stack(codes, axis=1)).astype(np.int64)
