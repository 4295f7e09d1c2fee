"""Random specifications on random inputs, through the whole job.

Each seed draws a file (constant, huge, heaped, missing, duplicate values; 3 to 1,500 records) and a
specification (any algorithm, effort, kind, grouping, rule). Either the specification is refused by name, or
the input or the release is, with a sentence; or it is published, and then the promise is counted again with
pandas, and shuffled rows in several files give the same records. Anything else is a fault of the software.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from schemas.errors import GateRefused, InputRejected, ProtectionFailed, SpecificationError
from tests.benchmarks.jobs.records import RecordsJob
from tests.benchmarks.jobs.tables import TableJob
from tests.benchmarks.registers.agency import warm_session
from tests.benchmarks.table import Table

#: Errors that say to the user why nothing is published.
ANSWERS = (SpecificationError, InputRejected, GateRefused, ProtectionFailed)


def run(quick: bool = False) -> Iterator[Table]:
    """How each job ended (quick: a tenth of the seeds).

    Raises
    ------
    AssertionError
        Naming the seed of a job that ended otherwise, or broke its promise.
    """
    for what, job, seeds in (("records", _of_records, 300), ("tables", _of_table, 500)):
        with tempfile.TemporaryDirectory() as folder, warm_session(Path(folder)) as spark:
            endings = Counter(
                _ended(job, spark, Path(folder) / str(seed), f"{what}, seed {seed}")
                for seed in range(seeds // 10 if quick else seeds)
            )
        yield Table(f"Random jobs on {what}", ("ended", "jobs"), sorted(endings.items()))


def _ended(
    job: Callable[[SparkSession, Path, int], None], spark: SparkSession, folder: Path, who: str
) -> str:
    try:
        job(spark, folder, int(folder.name))
    except ANSWERS as error:
        if "please report" in str(error):
            raise AssertionError(f"{who}: {error}") from error
        ending = type(error).__name__
    except Exception as error:
        raise AssertionError(f"{who}: {type(error).__name__}: {error}") from error
    else:
        ending = "published"
    print(f"{who}: {ending}", file=sys.stderr, flush=True)
    return ending


def _of_records(spark: SparkSession, folder: Path, seed: int) -> None:
    job = RecordsJob(seed)
    release = job.publish(spark, folder / "first")
    assert not job.fault(release), job.fault(release)
    if seed % 2 == 0:
        again = job.publish(spark, folder / "again", shuffled=True)
        assert release.equals(again), "shuffled rows give other records"


def _of_table(spark: SparkSession, folder: Path, seed: int) -> None:
    job = TableJob(seed)
    answer = job.publish(spark, folder)
    assert not job.fault(answer), job.fault(answer)
