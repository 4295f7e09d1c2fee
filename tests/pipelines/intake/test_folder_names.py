"""Names of folders that other programs escaped: the column has the values that were written."""

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from microguard.pipelines.intake.read import read
from microguard.schemas.errors import InputRejected

from tests.pipelines.microdata import specification

pytestmark = pytest.mark.spark
ROLES = {"sex": {"role": "quasi_identifier", "kind": "nominal"}, "region": {"role": "region"}}
REGIONS = ["ü/x", "Zürich Süd", "Žilina", "日本", "a=b", "50%", "north"]


def _pyarrow(frame, folder):
    table = pa.Table.from_pandas(frame)
    ds.write_dataset(table, folder, format="parquet", partitioning=["region"], partitioning_flavor="hive")


def _duckdb(frame, folder):
    duckdb.sql(f"COPY (SELECT * FROM frame) TO '{folder}' (FORMAT parquet, PARTITION_BY (region))")


@pytest.mark.parametrize("write", [_pyarrow, _duckdb])
def test_read_decodes_names_of_folders_that_another_program_escaped(spark, tmp_path, write):
    write(pd.DataFrame({"sex": "f", "region": REGIONS}), tmp_path / "data")
    rows = read(spark, specification(tmp_path, ROLES)).frame.collect()
    assert sorted(row["region"] for row in rows) == sorted(REGIONS)


def test_read_keeps_names_of_folders_that_spark_wrote(spark, tmp_path):
    frame = spark.createDataFrame([("f", region) for region in REGIONS], "sex string, region string")
    frame.write.partitionBy("region").parquet(str(tmp_path / "data"))
    rows = read(spark, specification(tmp_path, ROLES)).frame.collect()
    assert sorted(row["region"] for row in rows) == sorted(REGIONS)


def test_read_decodes_no_column_whose_name_occurs_above_the_input(spark, tmp_path):
    above = tmp_path / "region=%C3%BC"
    above.mkdir()
    pd.DataFrame({"sex": "f", "region": REGIONS}).to_parquet(above / "data", index=False)
    rows = read(spark, specification(above, ROLES)).frame.collect()
    assert sorted(row["region"] for row in rows) == sorted(REGIONS)


def test_read_refuses_names_of_folders_that_are_escaped_in_two_ways(spark, tmp_path):
    for name in ("region=Z%C3%BCrich", "region=Züri"):
        (tmp_path / "data" / name).mkdir(parents=True)
        pd.DataFrame({"sex": ["f"]}).to_parquet(tmp_path / "data" / name / "0.parquet")
    with pytest.raises(InputRejected, match="1 folder"):
        read(spark, specification(tmp_path, ROLES))
