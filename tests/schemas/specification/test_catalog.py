"""Tests of `publish.catalog` and `publish.table`: required keys, and messages without credentials."""

from __future__ import annotations

import pytest
from microguard.schemas.errors import SpecificationError

from tests.pipelines.microdata import specification

CATALOG = {"format": "iceberg", "catalog": "https://catalogue.example/api", "table": "statistics.persons"}


def test_catalogue_needs_a_table_and_the_format_iceberg(tmp_path):
    assert specification(tmp_path, publish=CATALOG).catalog_table == "statistics.persons"
    assert specification(tmp_path, publish=CATALOG | {"path": "s3://bucket/persons"}).catalog
    for change, message in (
        ({"format": "parquet"}, r"\[publish\] format: found \"parquet\", allowed: iceberg"),
        ({"table": None}, r"\[publish\] table: found nothing"),
        ({"catalog": None}, r"\[publish\] table: .* not applicable without publish.catalog"),
        ({"table": "persons"}, r'such as "statistics.persons"'),
        ({"table": "statistics/persons.a"}, r'such as "statistics.persons"'),
    ):
        publish = {key: value for key, value in (CATALOG | change).items() if value is not None}
        with pytest.raises(SpecificationError, match=message):
            specification(tmp_path, publish=publish)


def test_path_of_an_sqlite_catalogue_is_relative_to_the_specification(tmp_path):
    for given, found in (("lake/c.db", tmp_path / "lake" / "c.db"), ("/srv/c.db", "/srv/c.db")):
        spec = specification(tmp_path, publish=CATALOG | {"catalog": f"sqlite:///{given}"})
        assert spec.catalog == f"sqlite:///{found}"
    assert specification(tmp_path, publish=CATALOG | {"catalog": "lake"}).catalog == "lake"
    assert specification(tmp_path).catalog is None


@pytest.mark.parametrize(
    "address",
    ["postgresql://office:CANARY@host/lake", "https://host/api?token=CANARY", "https://CANARY@host"],
)
def test_address_with_credentials_is_refused_and_not_repeated(address, tmp_path):
    with pytest.raises(SpecificationError, match="without user, password and parameters") as refused:
        specification(tmp_path, publish=CATALOG | {"catalog": address})
    assert "CANARY" not in str(refused.value)
    assert "host" not in str(refused.value)
