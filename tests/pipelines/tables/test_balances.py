"""Tables of amounts of either sign: what nearly cancels says as much as what adds up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.pipelines.turnover import records, specification


def profits(planted: list[float]) -> pd.DataFrame:
    """Profits in four regions; of section A in the east two firms, which know each other."""
    frame = records()
    rng = np.random.default_rng(4)
    frame["region"] = rng.choice(["north", "south", "west", "east"], len(frame))
    frame["turnover"] = np.round(rng.normal(0, 500, len(frame)), 1)
    frame["firm"] = np.arange(len(frame)).astype(str)
    frame = frame[(frame["a21"] != "E") & ((frame["a21"] != "A") | (frame["region"] != "east"))]
    two = {"a10": "AB", "a21": "A", "region": "east", "turnover": planted, "firm": ["x", "y"]}
    return pd.concat([frame, pd.DataFrame(two)], ignore_index=True)


@pytest.mark.spark
@pytest.mark.parametrize("planted", [[300.0, -299.9], [300.0, -300.0]])
def test_of_two_that_cancel_neither_knows_the_other_from_the_balance(adjusted, tmp_path, planted):
    content = adjusted(specification(tmp_path, profits(planted), dominance=None))
    table = pq.read_table(next(Path(content["release"]).rglob("table/*.parquet"))).to_pandas()
    (shown,) = table[(table["a21"] == "A") & (table["region"] == "east")]["turnover"]
    others = abs(float(shown) - planted[0] - planted[1])
    assert others >= 0.2 * 599.9, "the safety range of what they contribute, not of what is left of it"
