"""Run whole jobs with random specifications and random inputs.

Each seed draws a file (constant, large, heaped, missing or duplicate values; 3 to 1,500 records) and a
specification (any algorithm, effort, kind, grouping, rule). Three results are permitted:

1. The specification is refused by name.
2. The input or the release is refused with a sentence.
3. The release is published. Then pandas counts its guarantees, and shuffled rows in several files give the
same records.

Any other result is a fault of the software.

Finished cells come as files of several formats, some with a fault that must be refused. Several tables of the
same records must have one value per cell, and updates of an event stream must not publish a unit twice.
Random verbs, some of them killed, are compared with a model.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from microguard.schemas.errors import MicroguardError
from microguard.sdc.errors import SolverFailed
from pyspark.sql import SparkSession

from tests.benchmarks.jobs.adjusting import published_tables
from tests.benchmarks.jobs.cells import CellsJob
from tests.benchmarks.jobs.events import EventsJob
from tests.benchmarks.jobs.overlapping import OverlappingJob
from tests.benchmarks.jobs.records import RecordsJob
from tests.benchmarks.jobs.tables import TableJob
from tests.benchmarks.jobs.verbs import ANSWERS, random_verbs
from tests.benchmarks.registers.agency import warm_session
from tests.benchmarks.table import Table


def run(quick: bool = False) -> Iterator[Table]:
    """Return the results of all jobs (quick: a tenth of the seeds).

    Raises
    ------
    AssertionError
        With the seed of a job with another result or a violated guarantee.
    """
    for what, job, seeds in (
        ("records", _of_records, 300),
        ("tables", _of_table, 500),
        ("cells", _of_cells, 500),
        ("overlapping tables", _of_overlapping_tables, 200),
        ("events", _of_events, 200),
    ):
        with tempfile.TemporaryDirectory() as folder, warm_session(Path(folder)) as spark:
            endings = Counter(
                _ended(job, spark, Path(folder) / str(seed), f"{what}, seed {seed}")
                for seed in range(seeds // 10 if quick else seeds)
            )
        yield Table(f"Random jobs on {what}", ("ended", "jobs"), sorted(endings.items()))
    yield random_verbs(range(10 if quick else 100))


def _ended(
    job: Callable[[SparkSession, Path, int], str | None], spark: SparkSession, folder: Path, who: str
) -> str:
    try:
        ending = job(spark, folder, int(folder.name)) or "published"
    except ANSWERS as error:
        if _no_answer(error):
            raise AssertionError(f"{who}: {error}") from error
        ending = type(error).__name__
    except Exception as error:
        raise AssertionError(f"{who}: {type(error).__name__}: {error}") from error
    print(f"{who}: {ending}", file=sys.stderr, flush=True)
    return ending


def _no_answer(error: MicroguardError) -> bool:
    """Return whether a refusal is caused by a fault of microguard instead of the user's input."""
    return "please report" in str(error) or isinstance(error.__cause__, SolverFailed)


def _of_records(spark: SparkSession, folder: Path, seed: int) -> None:
    job = RecordsJob(seed)
    release = job.publish(spark, folder / "first")
    assert not job.fault(release), job.fault(release)
    if seed % 2 == 0:
        again = job.publish(spark, folder / "again", shuffled=True)
        assert release.equals(again), "shuffled rows give different published records"


def _of_table(spark: SparkSession, folder: Path, seed: int) -> None:
    job = TableJob(seed)
    answer = job.publish(spark, folder)
    assert not job.fault(answer), job.fault(answer)


def _of_cells(spark: SparkSession, folder: Path, seed: int) -> None:
    job = CellsJob(seed)
    answer = job.publish(spark, folder)
    assert not job.fault(answer), job.fault(answer)
    if seed % 3 == 0:
        again = published_tables(job.publish_again(spark, folder))
        same = [one.equals(other) for one, other in zip(published_tables(answer), again, strict=True)]
        assert all(same), "another name gives the same cells different values"


def _of_overlapping_tables(spark: SparkSession, folder: Path, seed: int) -> str:
    job = OverlappingJob(seed)

    def publish(number: int) -> str:
        answer = job.tables[number].publish(spark, folder)
        return job.fault(job.tables[number], answer)

    return _one_after_another(publish, len(job.tables))


def _of_events(spark: SparkSession, folder: Path, seed: int) -> str:
    job = EventsJob(seed)

    def publish(number: int) -> str:
        return job.fault(folder, number, job.publish(spark, folder, number))

    ending = _one_after_another(publish, len(job.nights))
    job.audited(folder)
    return ending


def _one_after_another(publish: Callable[[int], str], number: int) -> str:
    """Return the number of published releases, and the last refusal if there are none.

    Raises
    ------
    AssertionError
        If a release violates its guarantees.
    MicroguardError
    """
    refused: list[MicroguardError] = []
    for place in range(number):
        try:
            fault = publish(place)
        except ANSWERS as error:
            if _no_answer(error):
                raise AssertionError(f"release {place}: {error}") from error
            refused.append(error)
        else:
            assert not fault, f"release {place}: {fault}"
    if len(refused) == number:
        raise refused[-1]
    return f"published, {len(refused)} refused" if refused else "published"
