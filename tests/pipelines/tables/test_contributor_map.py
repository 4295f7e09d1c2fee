"""Tests of the map of contributors that the joint audit of tables reads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.tables.contributor_map import CONTRIBUTORS, UNITS, write_contributors
from microguard.schemas.errors import GateRefused

from tests.pipelines.turnover import records, specification

VARIABLES = {"firm": {"role": "unit"}, "group": {"role": "other"}, "size": {"role": "other"}}


@pytest.mark.spark
def test_map_has_a_row_for_each_record_and_a_record_without_unit_is_its_own_unit(spark, tmp_path, areas):
    frame = records(2, 60).assign(group=None, size="small")
    frame.loc[:5, "firm"] = None
    frame.loc[6:8, ["firm", "turnover"]] = ["0", 7.5]
    frame.loc[7, "group"] = "H"
    chosen = specification(tmp_path, frame, VARIABLES, holding="group")
    write_contributors(spark.createDataFrame(frame).repartition(3), chosen, "r", areas)
    found = pq.read_table(areas.record("r") / CONTRIBUTORS / UNITS, partitioning=None).to_pandas()
    assert len(found) == found["record"].nunique() == 60
    assert found["unit"].nunique() == 6 + frame["firm"].nunique()
    assert found["holding"].notna().sum() == (frame["firm"] == "0").sum()  # all records of its unit


@pytest.mark.spark
@pytest.mark.parametrize("who", ["unit", "holding"])
def test_tables_with_and_without_one_contributor_in_several_cells_are_refused(adjusted, tmp_path, who):
    """Its total is the difference of the grand totals, although no cell of either table shows it."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a21": list("ABC") * 20,
            "size": random.choice(["small", "big"], 60),
            "turnover": random.lognormal(4, 0.4, 60).round(1) + 50,
            "firm": [f"f{i}" for i in range(60)],
            "group": [None] * 59 + ["other"],
        }
    )
    frame.loc[:3, {"unit": "firm", "holding": "group"}[who]] = "one"
    rest = frame.drop(index=range(4))
    specs = []
    for name, part, source in (("a21", frame, "whole"), ("size", rest, "rest")):
        (tmp_path / source).mkdir()
        chosen = specification(
            tmp_path / source, part.assign(a10="AC", region="all"), VARIABLES,
            {"name": source, "source": source},
            tables=[[name]], hierarchies=None, dominance=None, holding="group",
        )  # fmt: skip
        places = {"path": str(tmp_path / "lake" / source), "evidence": str(tmp_path / "evidence")}
        specs.append(chosen.model_copy(update={"publish": chosen.publish.model_copy(update=places)}))
    adjusted(specs[0])
    with pytest.raises(
        GateRefused, match=r"1 of [0-9]+ secrets are known within 1 % to the attacker 'outsider'"
    ):
        adjusted(specs[1])
