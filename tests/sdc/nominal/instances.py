"""Difficult random frames for nominal methods, and a check of results that shares no code with them."""

from __future__ import annotations

from collections import Counter

import pandas as pd
from hypothesis import strategies as st


@st.composite
def nominal_frames(draw: st.DrawFn, most_records: int = 24) -> pd.DataFrame:
    """Generate frames of one to four variables with missing values, constants, small and large domains."""
    records = draw(st.integers(3, most_records))
    columns = {}
    for j in range(draw(st.integers(1, 4))):
        values = draw(
            st.sampled_from(
                [
                    st.just("only"),
                    st.integers(0, 1),
                    st.one_of(st.none(), st.sampled_from("abc")),
                    st.integers(0, 9_999),
                ]
            )
        )
        columns[f"v{j}"] = draw(st.lists(values, min_size=records, max_size=records))
    return pd.DataFrame(columns)


def rows(frame: pd.DataFrame) -> Counter:
    """Count each distinct row; missing values are equal."""
    return Counter(
        tuple("<missing>" if pd.isna(value) else value for value in row)
        for row in frame.itertuples(index=False)
    )


def assert_protected(original: pd.DataFrame, protected: pd.DataFrame, k: int) -> None:
    """Assert k-anonymity, equal numbers of records and columns, and only key combinations of the original."""
    assert protected.index.equals(original.index)
    assert list(protected.columns) == list(original.columns)
    assert (protected.dtypes == original.dtypes).all()
    published = rows(protected)
    assert min(published.values()) >= k
    assert sum(published.values()) == len(original)
    assert set(published) <= set(rows(original))
