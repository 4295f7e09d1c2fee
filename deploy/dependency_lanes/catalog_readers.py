"""Publish into Iceberg catalogues and read as readers do: catalog_readers.py CHECKOUT RELEASE.toml KEY=VALUE.

It runs in the environment of a lane. For a REST, an SQL and a Hive catalogue it publishes, compares what
DuckDB, polars, pyiceberg and Spark read with the files of the release, withdraws, and looks for what is left.
The REST server is that of the tests of the checkout. Spark is left out, with a line that says why, where its
Iceberg runtime or the driver of an SQL catalogue is not installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = "statistics.persons"
Rows = list[tuple[Any, ...]]
#: Prefix of the variables of the commands; pyiceberg reads the variables once, during its import.
_SETTINGS = "PYICEBERG_CATALOG__DEFAULT__"
_VERB = [sys.executable, "-P", "-m", "microguard"]


def main(checkout: str, specification: str, override: str) -> int:
    """Publish, compare and withdraw in each catalogue; return the exit code."""
    sys.path.append(checkout)
    from microguard.pipelines.engine.java import java_home

    from deploy.dependency_lanes.hive_metastore import hive_metastore
    from deploy.dependency_lanes.spark_catalogs import spark_session
    from tests.pipelines.publication.catalogs.rest_server import TOKEN, rest_catalog

    os.environ |= {"JAVA_HOME": str(java_home()), f"{_SETTINGS}TOKEN": TOKEN}
    os.environ[f"{_SETTINGS}HIVE__HIVE2_COMPATIBLE"] = "true"
    folder, command = Path.cwd(), [*_VERB, "protect", specification, "--set", override, "--quiet"]
    with spark_session() as spark:
        with rest_catalog(folder, []) as address:
            _compared("rest", address, command, spark)
        _compared("sql", f"sqlite:///{folder}/catalog.db", command, spark)
        with hive_metastore(folder) as address:
            _compared("hive", address, command, spark)
    return 0


def _compared(kind: str, catalog: str, command: list[str], spark: Any) -> None:
    import pyarrow.dataset as ds
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    from deploy.dependency_lanes.spark_catalogs import catalog_in

    lake, evidence = Path(f"lake-{kind}").resolve(), Path(f"evidence-{kind}").resolve()
    places = {"path": lake, "evidence": evidence, "format": "iceberg", "catalog": catalog, "table": TABLE}
    settings = [word for key, value in places.items() for word in ("--set", f"publish.{key}={value}")]
    subprocess.run([*command, *settings], check=True)
    [release] = (each.parent for each in lake.glob("*/manifest.json"))
    expected = _rows(ds.dataset(release / "microdata").to_table().to_pylist())
    token = os.environ[f"{_SETTINGS}TOKEN"]
    opened = load_catalog("default", uri=catalog, token=token)
    readers = [*_readers(opened.load_table(TABLE), release.name)]
    in_spark = catalog_in(spark, kind, catalog, token) if spark else None
    if in_spark:
        found = spark.sql(f"select * from `{in_spark}`.{TABLE} version as of '{release.name}'")
        readers.append(("Spark", _rows([row.asDict() for row in found.collect()])))
    for reader, rows in readers:
        same = rows == expected
        print(f"{kind}: {reader} reads {len(rows)} records, {'the' if same else 'NOT THE'} published ones")
        if not same:
            sys.exit(f"{kind}: {reader} does not read the published records")
    subprocess.run([*_VERB, "withdraw", str(evidence / release.name), "--quiet"], check=True)
    if in_spark and spark.catalog.tableExists(f"{in_spark}.{TABLE}"):
        sys.exit(f"{kind}: Spark finds the table after the withdrawal of its only release")
    try:
        opened.load_table(TABLE)
        sys.exit(f"{kind}: the table is left after the withdrawal of its only release")
    except NoSuchTableError:
        left = [path for path in lake.rglob("*") if path.is_file() and path.name != ".area.json"]
        if left:
            sys.exit(f"{kind}: {len(left)} files are left after the withdrawal")
        print(f"{kind}: withdrawn, no snapshot and no file is left")


def _readers(table: Any, tag: str) -> Iterator[tuple[str, Rows]]:
    import duckdb
    import polars

    yield "pyiceberg", _rows(table.scan().use_ref(tag).to_arrow().to_pylist())
    yield "polars", _rows(polars.scan_iceberg(table).collect().to_dicts())
    with duckdb.connect() as engine:
        table.scan().use_ref(tag).to_duckdb("persons", engine)
        yield "DuckDB", _rows(engine.sql("select * from persons").to_arrow_table().to_pylist())


def _rows(records: list[dict[str, Any]]) -> Rows:
    """Return the values of records by sorted names, sorted, because the order differs between engines."""
    return sorted((tuple(record[name] for name in sorted(record)) for record in records), key=repr)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
