"""Test of a release with dates and times of years that Python does not have."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit

from tests.pipelines.microdata import run, specification

pytestmark = pytest.mark.spark

ROLES = {
    "sex": {"role": "quasi_identifier", "kind": "nominal"},
    "until": {"role": "other"},
    "since": {"role": "sensitive"},
    "moment": {"role": "other"},
}


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_days_and_moments_of_any_year_are_published_in_csv_and_each_table_format(spark, tmp_path, form):
    days = pa.array([2_932_897, 2**31 - 1, -(2**31) + 1, None] * 3, pa.int32()).cast(pa.date32())
    moments = pa.array([2**60, -(2**60), None] * 4, pa.int64()).cast(pa.timestamp("us"))
    table = pa.table({"sex": ["f", "m"] * 6, "until": days, "since": days, "moment": moments})
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "a.parquet")
    publish = {"format": form, "csv": True, "accept_dependencies": ["until", "since", "moment"]}
    _, areas = run(spark, specification(tmp_path, ROLES, publish=publish), ())
    folder = areas.public.release(areas.public.current())
    assert audit(folder).failures() == []
    records = pa.concat_tables(map(pq.read_table, sorted((folder / "microdata").glob("*.parquet"))))
    order = [(name, "ascending") for name in ("sex", "until", "moment")]
    found, truth = (each.select(list(ROLES)).sort_by(order) for each in (records, table))
    assert found.cast(truth.schema).equals(truth)
