"""Tests of balances: cancelling amounts and zeros disclose as much as sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit

from tests.pipelines.turnover import records, specification


def profits(planted: list[float]) -> pd.DataFrame:
    """Return profits in four regions; section A has two firms in the east, which know each other."""
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
def test_balance_of_two_cancelling_contributors_discloses_neither(adjusted, tmp_path, planted):
    content = adjusted(specification(tmp_path, profits(planted), dominance={"n": 1, "k": 99.0}))
    table = pq.read_table(next(Path(content["release"]).rglob("table/*.parquet"))).to_pandas()
    (shown,) = table[(table["a21"] == "A") & (table["region"] == "east")]["turnover"]
    others = abs(float(shown) - planted[0] - planted[1])
    assert others >= 0.2 * 599.9, "the safety range of what they contribute, not of what is left of it"


@pytest.mark.spark
def test_zero_turnover_is_not_disclosed_by_a_cell_of_one_firm(adjusted, tmp_path):
    frame = records()
    frame = frame.assign(firm=np.arange(len(frame)).astype(str))
    alone = {"a10": "CE", "a21": "F", "region": "west", "turnover": 0.0}
    several = [alone | {"a21": "G", "firm": f"g{i}"} for i in range(3)]
    frame = pd.concat([frame, pd.DataFrame([alone | {"firm": "z"}, *several])], ignore_index=True)
    content = adjusted(specification(tmp_path, frame))
    release = Path(content["release"])
    table = pq.read_table(next(release.rglob("table/*.parquet"))).to_pandas()
    assert "F" not in set(table["a21"])
    assert (table[table["a21"] == "G"]["turnover"] == 0).all()
    assert set(table[table["a21"] == "G"]["region"]) == {"west", "Total"}
    assert audit(release).passed, audit(release).failures()


@pytest.mark.spark
def test_dominant_contributor_of_three_is_protected_without_a_rule(adjusted, tmp_path):
    frame = records()
    frame = frame[(frame["a21"] != "C") | (frame["region"] != "west")]
    frame = frame.assign(firm=np.arange(len(frame)).astype(str))
    three = {"a10": "CE", "a21": "C", "region": "west", "turnover": [2000.0, 1.0, 1.0], "firm": list("xyz")}
    frame = pd.concat([frame, pd.DataFrame(three)], ignore_index=True)
    content = adjusted(specification(tmp_path, frame, {"firm": {"role": "unit"}}, dominance=None))
    table = pq.read_table(next(Path(content["release"]).rglob("table/*.parquet"))).to_pandas()
    (shown,) = table[(table["a21"] == "C") & (table["region"] == "west")]["turnover"]
    assert abs(float(shown) - 2002) >= 0.1 * 2000 - 1
