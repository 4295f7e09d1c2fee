"""Integer codes of the categories of a column."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def category_codes(column: pa.ChunkedArray) -> np.ndarray:
    """Return codes in the order of the values, (n,) int64; NULL is a separate category, the last one."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    distinct = pc.unique(column).drop_null()
    distinct = distinct.take(pc.array_sort_indices(distinct))
    codes = pc.index_in(column, value_set=distinct).fill_null(len(distinct))
    return np.asarray(pa.chunked_array(codes).to_numpy()).astype(np.int64)


def spelled(text: str) -> str:
    """Return the canonical spelling of a category: NFKC, case-folded, without invisible format characters.

    Blanks are stripped and runs of blanks collapse to one, so that "HIV", "hiv" and " HIV " are the same
    category. A text of blanks only becomes "", which counts as missing.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(sign for sign in folded if unicodedata.category(sign) != "Cf").split())


def spelled_codes(column: pa.ChunkedArray) -> np.ndarray:
    """Return one code per canonical spelling, (n,) int64, in no particular order; -1 for missing values."""
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
    """Return two codes per number, (n, 2) int64, such that any two close numbers share at least one of their
    codes.

    Two numbers are close if they differ by less than `apart` and by at most the share `of_number` of the
    larger one. Values are mapped to a scale on which close numbers are less than 1 apart: logarithmic if the
    share decides, linear otherwise. Each column divides the scale into intervals of length 2, and the second
    column is shifted by 1. A range shorter than 1 contains a border of at most one column. A cluster with two
    distinct codes in both columns therefore contains two numbers that are not close.

    Parameters
    ----------
    values : (n,) float array
        NaN is missing and gets the code -1. Zero is a separate category.
    of_number : float
        Relative closeness, above 0 and below 1.
    apart : float
        Absolute closeness, above 0.
    """
    sizes, turn = np.abs(values), apart / of_number
    # a difference equal to the allowed share counts as close
    logarithm = -np.log1p(-of_number) * (1.0 + 1e-9)
    inside = (sizes > 0) & (sizes < turn)
    scale = np.where(sizes >= turn, (sizes - turn) / apart, 0.0)
    scale[inside] = np.log(sizes[inside] / turn) / logarithm
    kind = np.where(np.isnan(values), 2.0, np.sign(values))
    scale[np.isnan(values)] = 0.0
    columns = [np.stack([kind, np.floor((scale + shift) / 2.0)], axis=1) for shift in (0.0, 1.0)]
    codes = [np.unique(each, axis=0, return_inverse=True)[1].ravel() for each in columns]
    return np.where(np.isnan(values)[:, np.newaxis], -1, np.stack(codes, axis=1)).astype(np.int64)
