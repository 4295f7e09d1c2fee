"""Tests of listed codes: in tables of counts, a listed code discloses no more than its count."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit

from tests.pipelines.turnover import records, specification

RARE = [f"R{i}" for i in range(6)]


def with_rare_codes() -> pd.DataFrame:
    """Return firms in two sections, in six branches with one firm each, and the same firms in another
    grouping.
    """
    frame = records()
    of_other = frame["a21"].isin(["A", "C"]).map({True: "p", False: "q"})
    frame = frame.assign(firm=range(len(frame)), other=of_other)
    alone = frame.head(len(RARE)).assign(a10="CE", a21=RARE, other="p", firm=[f"r{i}" for i in range(6)])
    return pd.concat([frame.astype({"firm": str}), alone], ignore_index=True)


@pytest.mark.spark
@pytest.mark.parametrize(
    "method",
    [{"zeros": "all"}, {"zeros": "omit"}, {"method": "rounding", "base": 5}, {"method": "cell_key"}],
)
def test_code_whose_only_firm_is_published_as_zero_is_not_listed(adjusted, tmp_path, method):
    keys = {"kind": "frequency", "value": None, "dominance": None, "decimals": None, "effort": None}
    keys |= {"tables": [["a21", "region"], ["other", "region"]]}
    keys |= {"hierarchies": [["a10", "a21"], ["other", "a21"]]}
    keys |= {"quality": {"max_posterior": 1.0, "max_determined": 1000}}
    variables = {"firm": {"role": "unit"}, "other": {"role": "other"}}
    content = adjusted(specification(tmp_path, with_rare_codes(), variables, **(keys | method)))
    release = Path(content["release"])
    frame = pq.read_table(min(release.rglob("table/*.parquet"))).to_pandas()
    hidden = [code for code in RARE if code not in set(frame["a21"])]
    assert hidden, "fewer than one in a hundred keys publish every code above 0"
    texts = [path.read_text() for each in ("*.json", "*.html", "sdmx/*") for path in release.glob(each)]
    assert not [code for code in hidden if any(code in text for text in texts)]
    of_codes = frame[(frame["a21"] != "Total") & (frame["region"] == "Total")]
    assert "method" in method or (of_codes["frequency"] > 0).all()
    assert audit(release).passed, audit(release).failures()
