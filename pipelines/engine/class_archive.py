"""Make the class data archives of the JVM, once per environment: ``python -m
microguard.pipelines.engine.class_archive``.

Java first dumps its own classes. Then a Spark session runs the kinds of queries that a run has, and its JVM
dumps Spark's classes when it ends.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from microguard.pipelines.engine.java import java_home
from microguard.pipelines.engine.jvm import ARCHIVE, JAVA_ARCHIVE, QUICK, InputSize
from microguard.pipelines.engine.session import open_session
from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def make_archive() -> bool:
    """Write both archives atomically; return whether this Java could make them."""
    ARCHIVE.unlink(missing_ok=True)  # the archive fits only the base archive with which it was made
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        fresh = Path(folder) / ARCHIVE.name
        java = str(java_home() / "bin" / "java")
        dump = [java, "-Xshare:dump", f"-XX:SharedArchiveFile={fresh}", "-Xlog:disable"]
        if subprocess.run(dump, capture_output=True).returncode or not fresh.exists():
            return False
        fresh.replace(JAVA_ARCHIVE)
        below = f"-XX:SharedArchiveFile={JAVA_ARCHIVE}"
        jvm = (*QUICK, below, f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:disable")
        spark = open_session("local[2]", Path(folder), jvm=jvm, size=InputSize.SMALL)
        _typical_queries(spark, Path(folder) / "records")
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        spark.stop()
        gateway.proc.stdin.close()  # the JVM ends and then dumps its classes
        gateway.proc.wait()
        if not fresh.exists():
            return False
        fresh.replace(ARCHIVE)
    return True


def _typical_queries(spark: SparkSession, path: Path) -> None:
    rows = pa.table({"a": ["x", "y"] * 50, "b": list(range(100)), "c": [0.5] * 100})
    spark.createDataFrame(rows).write.option("compression", "lz4").parquet(str(path))
    frame = spark.read.parquet(str(path))
    frame = frame.withColumn("d", f.when(f.col("b") > 5, "p").otherwise(f.col("a")))
    frame.agg(
        f.count_if(f.col("c").isNull()), f.bit_xor(f.xxhash64("a")), f.approx_count_distinct("a")
    ).first()
    frame.groupBy("a").agg(f.count_distinct("b"), f.max("c")).toArrow()
    counts = frame.groupBy("a").agg(f.count("b").alias("n"))
    frame.join(counts, "a").where("n > 1").orderBy("b").collect()
    together = frame.repartition(2, "a").sortWithinPartitions("b")
    together.mapInArrow(lambda batches: batches, frame.schema).count()


if __name__ == "__main__":
    if not make_archive():
        sys.stderr.write("This Java cannot create a class archive; runs start without an archive.\n")
