"""Firms with a turnover, and the specification of their table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from microguard.schemas.specification.read import build_specification

RECORDS = {
    "path": "records.parquet",
    "table": {
        "value": "turnover",
        "tables": [["a21", "region"]],
        "hierarchies": [["a10", "a21"]],
        "dominance": {"n": 1, "k": 80.0},
        "decimals": 1,
        "effort": "fast",
    },
}


def records(seed: int = 1, count: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a21 = rng.choice(["A", "B", "C", "D", "E"], count, p=[0.4, 0.3, 0.2, 0.09, 0.01])
    return pd.DataFrame(
        {
            "a10": np.where(np.isin(a21, ["A", "B"]), "AB", "CE"),
            "a21": a21,
            "region": rng.choice(["north", "south", "west"], count),
            "turnover": np.round(rng.lognormal(4, 1.2, count), 3),
            "firm": rng.integers(0, count // 2, count).astype(str),
        }
    )


def specification(folder: Path, frame: pd.DataFrame, variables=(), release=None, **table):
    """Return a specification of the table of `records`; further variables and keys of [table], None omits a
    key.
    """
    frame.to_parquet(folder / "records.parquet", index=False)
    content = {
        "release": {"name": "turnover", "k": 3, **(release or {})},
        "input": {"path": "records.parquet", "unmentioned": "drop"},
        "variables": {
            "a10": {"role": "other"},
            "a21": {"role": "other"},
            "region": {"role": "region"},
            "turnover": {"role": "sensitive", "kind": "numeric"},
            **dict(variables),
        },
        "table": {key: value for key, value in (RECORDS["table"] | table).items() if value is not None},
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    return build_specification(content, folder)
