"""Protect records with a session of Spark Connect, in a process without a JVM.

The process is separate because pyspark treats a process that has used Connect as a client permanently.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import microguard
from tests.pipelines.microdata import NOMINAL, persons, specification


def main(url: str, folder: Path) -> None:
    """Check, protect and publish the records, and print the result as one line of JSON."""
    spark = SparkSession.builder.remote(url).getOrCreate()
    spec = specification(folder, NOMINAL, method={"effort": "fast"})
    protection, frame = microguard.Protection(spec), spark.createDataFrame(persons())
    checked = protection.check(frame)
    protected = protection.protect(frame)
    answer = {
        "checked": checked.content["records"],
        "passed": protected.verdicts.passed,
        "records": protected.frame.count(),
        "release": protection.publish(protected).content["release"],
        "goes_on": spark.range(3).count(),
    }
    spark.stop()
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
