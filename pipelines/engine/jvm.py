"""Options of the JVM that this process starts, so that a short run is short.

Most of a run on a small file is the JVM's: it reads the classes of Spark, and compiles what is called a few
times only. A small file gets the quick compiler alone; and classes come from an archive, where one was made:
``python -m pipelines.engine.jvm``, once per environment. The archive is the JVM's own (class data sharing);
one that does not fit Java, Spark or memory settings is not used, and nothing is said.
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Bytes of input up to which the thorough compiler costs more than it gives.
SMALL_INPUT = 64 * 2**20
ARCHIVE = Path(sys.prefix) / "share" / "microguard" / "spark-classes.jsa"
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: Of the making of an archive: a session, and queries of the kinds that a run has.
_TRAINING = """
import sys
import pyarrow as pa
from pathlib import Path
from pyspark.sql import functions as f
from pipelines.engine.session import open_session
folder = Path(sys.argv[1])
options = {"spark.driver.extraJavaOptions": sys.argv[2]}
spark = open_session("local[2]", folder, options)
frame = spark.createDataFrame(pa.table({"a": ["x", "y"] * 50, "b": list(range(100)), "c": [0.5] * 100}))
path = str(folder / "records")
frame.write.mode("overwrite").option("compression", "lz4").parquet(path)
read = spark.read.parquet(path).withColumn("d", f.when(f.col("b") > 5, "p").otherwise(f.col("a")))
read.agg(f.count_if(f.col("c").isNull()), f.bit_xor(f.xxhash64("a")), f.approx_count_distinct("a")).first()
read.groupBy("a").agg(f.count_distinct("b"), f.max("c")).toArrow()
read.join(read.groupBy("a").agg(f.count("b").alias("n")), "a").where("n > 1").orderBy("b").collect()
read.repartition(2, "a").sortWithinPartitions("b").mapInArrow(lambda batches: batches, read.schema).count()
gateway = spark.sparkContext._gateway
spark.stop()
gateway.proc.stdin.close()  # the JVM ends, and writes its archive
gateway.proc.wait()
"""


def jvm_options(input_path: str | None) -> tuple[str, ...]:
    """Options for a run on the file, folder or glob of this name; None for an input of unknown size."""
    quick = _QUICK if input_path is not None and _size(input_path) <= SMALL_INPUT else ()
    archived = (f"-XX:SharedArchiveFile={ARCHIVE}", "-Xlog:disable") if ARCHIVE.exists() else ()
    return (*quick, *archived)


def _size(input_path: str) -> int:
    """Bytes of all files behind a path; none for what cannot be looked at, which is refused soon after."""
    files = (
        Path(folder) / name
        for found in glob.iglob(input_path)
        for folder, _, names in (os.walk(found) if os.path.isdir(found) else [("", [], [found])])
        for name in names
    )
    return sum(path.stat().st_size for path in files if path.is_file())


def make_archive(environment: Mapping[str, str] = os.environ) -> bool:
    """Start a session that writes down its classes as it ends; whether there is an archive now.

    It is put in place whole or not at all. Some builds of Java cannot make one.
    """
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        fresh = Path(folder) / ARCHIVE.name
        options = " ".join([*_QUICK, f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:disable"])
        command: Sequence[str] = [sys.executable, "-c", _TRAINING, folder, options]
        with open(Path(folder) / "output", "wb") as output:
            done = subprocess.run(command, env=dict(environment), stdout=output, stderr=output)
        if done.returncode or not fresh.exists():
            return False
        fresh.replace(ARCHIVE)
    return True


if __name__ == "__main__":
    made = make_archive()
    sys.stderr.write("" if made else "This Java makes no class archive; runs start without one.\n")
