"""Tests that the counts of tasks add up to the tables of the file for any batch size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from microguard.pipelines.measures import frequency_tables
from microguard.pipelines.measures.frequency_tables import _Counting

TABLES = [["v0"], ["v1"], ["v0", "v1"], ["v0", "v1", "v2"]]


def records(n: int = 200) -> pa.Table:
    random = np.random.default_rng(3)
    texts = pa.array([None if code == 0 else f"T{code}" for code in random.integers(0, 5, n)])
    weights = pa.array([None if code == 0 else float(code) for code in random.integers(0, 4, n)])
    days = pa.array(random.integers(0, 3, n).astype("datetime64[D]"))
    return pa.table({"v0": texts, "v1": random.integers(0, 30, n), "v2": days, "w": weights})


@pytest.mark.parametrize("at_once", [7, 60, 500_000])
def test_cells_of_batches_add_up_to_the_cells_of_the_file(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(frequency_tables, "AT_ONCE", at_once)
    table = records()
    counting = _Counting(TABLES, ["w"], table.schema)
    counts, frame = counting.begin(), table.to_pandas().assign(frequency=1)
    for batch in table.to_batches(max_chunksize=5):
        counts.add(pa.Table.from_batches([batch]))
    pieces = list(counts.parts())
    for number, names in enumerate(TABLES):
        of_table = counting.combined(pa.concat_tables([cells for key, cells in pieces if key == number]))
        assert of_table.column_names == [*names, "frequency", "w"]
        found, expected = (
            each[[*names, "frequency", "w"]].groupby(names, dropna=False).sum()
            for each in (of_table.select([*names, "frequency", "w"]).to_pandas(), frame)
        )
        pd.testing.assert_frame_equal(found, expected)
    assert (len(pieces) == len(TABLES)) == (at_once > len(table))
