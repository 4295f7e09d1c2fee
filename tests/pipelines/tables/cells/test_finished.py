"""Tests of finished cells: rounded totals are summed again, inconsistent tables are rejected."""

from __future__ import annotations

import pandas as pd
import pytest
from microguard.pipelines.tables.cells.finished import cells_of_table
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table

TABLE = Table(
    source="cells", value="v", tables=[["code"]], contributors="n", lower_protection="low",
    upper_protection="up", decimals=1, tolerance=0.5,
)  # fmt: skip


def finished(spark, **changes):
    columns = {"code": ["Total", "a", "b", "c"], "v": [6.0, 1.0, 2.0, 3.0], "n": [9.0, 1.0, 4.0, 4.0],
               "low": [0.0, 1.0, 0.0, 0.0], "up": [0.0, 1.0, 0.0, 0.0]}  # fmt: skip
    return spark.createDataFrame(pd.DataFrame(columns | changes))


def test_totals_that_differ_by_rounding_are_summed_again(spark):
    cells = cells_of_table(finished(spark, v=[6.4, 1.0, 2.04, 3.04]), TABLE)
    assert dict(zip(cells.codes["code"], cells.units, strict=True)) == {
        "Total": 60,
        "a": 10,
        "b": 20,
        "c": 30,
    }
    assert cells.input_columns["lower_protection"].max() == 10


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v": [7.0, 1.0, 2.0, 3.0]}, r"1 total\(s\) differ"),
        ({"low": [0.0, -1.0, 0.0, 0.0]}, "negative lower protection"),
        ({"v": [6e18, 1e18, 2e18, 3e18]}, "too many digits"),
        ({"code": ["Total", "a", "b", None]}, "no code"),
    ],
    ids=["beyond the tolerance", "a negative level", "too large", "no code"],
)
def test_finished_table_with_faults_is_rejected(spark, changes, message):
    with pytest.raises(InputRejected, match=message):
        cells_of_table(finished(spark, **changes), TABLE)


def test_refusal_states_that_tables_linked_through_totals_cannot_be_summed_again(spark):
    table = Table(source="cells", value="v", tables=[["a", "b"], ["b", "c"]], contributors="v", tolerance=9.0)
    codes = [("x", "y", "Total"), ("x", "Total", "Total"), ("Total", "y", "z"), ("Total", "Total", "z"),
             ("Total", "y", "Total"), ("Total", "Total", "Total")]  # fmt: skip
    frame = pd.DataFrame(codes, columns=list("abc")).assign(v=[5.0, 5.0, 5.0, 5.0, 5.0, 6.0])
    with pytest.raises(InputRejected, match=r"3 total\(s\).*linked through totals"):
        cells_of_table(spark.createDataFrame(frame), table)
