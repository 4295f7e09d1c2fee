"""Read Iceberg catalogues with Spark, through the Iceberg runtime in a Python package.

An SQL catalogue also needs a JDBC driver, here that of Debian's libxerial-sqlite-jdbc-java.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

RUNTIMES = "snowpark_connect_deps_iceberg"
DRIVER = Path("/usr/share/java/sqlite-jdbc.jar")
NATIVE = "libsqlitejdbc.so"


@contextmanager
def spark_session() -> Iterator[Any]:
    """Yield a session with the Iceberg runtime, or None if the environment has none for its Spark."""
    jar = _runtime()
    if jar is None:
        print("Spark does not read: no package in this environment has the Iceberg runtime for its version")
        yield None
        return
    from pyspark.sql import SparkSession

    native = next(Path("/usr/lib").glob(f"*/jni/{NATIVE}"), Path(NATIVE))
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": f"{jar}{os.pathsep}{DRIVER}",
        "spark.driver.extraJavaOptions": (
            f"-Dorg.sqlite.lib.path={native.parent} -Dorg.sqlite.lib.name={NATIVE}"
        ),
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def catalog_in(spark: Any, kind: str, address: str, token: str) -> str | None:
    """Add a catalogue to a session, and return its name; None if its driver is not installed."""
    # Spark finds the tables of an SQL catalogue only under the name that pyiceberg gives it.
    name = "default" if kind == "sql" else kind
    settings = {
        "rest": {"type": "rest", "uri": address, "token": token},
        "sql": {
            "type": "jdbc",
            # otherwise the table search of Spark would keep SQLite locked for writers
            "jdbc.init-catalog-tables": "false",
            "uri": address.replace("sqlite:///", "jdbc:sqlite:"),
            "warehouse": str(Path.cwd()),
        },
        "hive": {"type": "hive", "uri": address},
    }[kind]
    if kind == "sql" and not DRIVER.exists():
        print(f"{kind}: Spark does not read: {DRIVER} is not installed")
        return None
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {**settings, "cache-enabled": "false"}.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    return name


def _runtime() -> Path | None:
    import pyspark

    if find_spec(RUNTIMES) is None:
        return None
    [scala] = (Path(pyspark.__file__).parent / "jars").glob("scala-library-*.jar")
    versions = [pyspark.__version__, scala.stem.removeprefix("scala-library-")]
    spark, scala_binary = (".".join(version.split(".")[:2]) for version in versions)
    jars = Path(str(resources.files(RUNTIMES))) / "jars"
    return next(jars.glob(f"iceberg-spark-runtime-{spark}_{scala_binary}-*.jar"), None)
