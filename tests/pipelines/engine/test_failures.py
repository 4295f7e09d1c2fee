"""Tests of failures: a lost worker is retried, and the message of a failed run contains no value."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from microguard.pipelines.engine.failures import without_values_of_records
from microguard.pipelines.intake.faults import translate_read_errors
from microguard.schemas.errors import InputRejected, MicroguardError
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from tests.pipelines.microdata import specification


def lost(spark, marks: Path, times: int) -> int:
    """Count ten rows in a worker that ends itself a given number of times."""

    def task(batches):
        tries = len(list(marks.iterdir()))
        if tries < times:
            (marks / str(tries)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    return spark.range(10, numPartitions=1).mapInArrow(task, "id long").count()


def test_task_is_retried_if_its_worker_is_killed(spark, tmp_path: Path) -> None:
    assert lost(spark, tmp_path, times=1) == 10


def test_repeatedly_killed_worker_is_named_with_the_remedy(spark, tmp_path: Path) -> None:
    with (
        pytest.raises(MicroguardError, match=r"worker of Spark was killed.*max_records"),
        without_values_of_records(),
    ):
        lost(spark, tmp_path, times=9)
    assert len(list(tmp_path.iterdir())) == 2


def test_ended_java_process_is_named_with_the_remedy() -> None:
    with pytest.raises(MicroguardError, match=r"Java process ended.*memory"), without_values_of_records():
        raise Py4JNetworkError("Answer from Java side is empty: a value")


def test_cause_is_stated_without_the_message_of_spark(spark) -> None:
    with pytest.raises(MicroguardError) as caught, without_values_of_records():
        spark.sql("SELECT CAST('Ilse' AS INT)").collect()
    assert "CAST_INVALID_INPUT" in str(caught.value)
    assert "Ilse" not in str(caught.value)


def test_error_of_a_task_is_named_without_its_message(spark) -> None:
    def task(name: str) -> None:
        raise ValueError(name)

    with pytest.raises(MicroguardError, match=r"\(ValueError\)") as caught, without_values_of_records():
        spark.sparkContext.parallelize(["Ilse"], 1).foreach(task)
    assert "Ilse" not in str(caught.value)

    def batches(found):
        for batch in found:
            yield {}[batch["name"][0].as_py()]

    frame = spark.createDataFrame([("Ilse",)], "name string")
    with pytest.raises(MicroguardError, match=r"\(KeyError\)") as caught, without_values_of_records():
        frame.mapInArrow(batches, "name string").collect()
    assert "Ilse" not in str(caught.value)


def test_error_of_a_task_that_java_waited_for_is_named(spark) -> None:
    def task(batches):
        yield from batches

    frame = spark.range(1, numPartitions=1).mapInArrow(task, "id long")
    failing = frame.selectExpr("java_method('java.util.UUID', 'fromString', concat('Ilse', id)) AS id")
    invocation = pytest.raises(MicroguardError, match=r"\(InvocationTargetException\)")
    with invocation as caught, without_values_of_records():
        failing.toArrow()
    assert "Ilse" not in str(caught.value)


def test_worker_killed_during_input_is_not_reported_as_an_input_error(spark, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    spec = specification(tmp_path)
    with (
        pytest.raises(MicroguardError, match=r"worker of Spark was killed") as caught,
        without_values_of_records(),
        translate_read_errors(spec),
    ):
        lost(spark, marks, times=9)
    assert not isinstance(caught.value, InputRejected)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("ExecutorLostFailure (executor 1 exited)", "executor of Spark was lost"),
        ("java.lang.OutOfMemoryError: Java heap", "memory"),
        (
            "IllegalStateException: Cannot call methods on a stopped SparkContext.",
            "stopped the Spark session",
        ),
        (
            "SparkException: \nError from python worker:\n  ModuleNotFoundError: Ilse\n",
            "could not start Python on a machine",
        ),
        (
            "SparkException: \nBad data in standard output. Invalid port number/socket path:\n  7",
            "could not start Python on a machine",
        ),
    ],
)
def test_executor_lost_during_input_is_not_reported_as_an_input_error(
    tmp_path: Path, told: str, said: str
) -> None:
    spec = specification(tmp_path)
    with (
        pytest.raises(MicroguardError, match=said) as caught,
        without_values_of_records(),
        translate_read_errors(spec),
    ):
        raise PySparkException(
            f"Job aborted due to stage failure: Lost task 0.3 in stage 5.0 (TID 9) (host executor 1): {told}"
        )
    assert not isinstance(caught.value, InputRejected)
    assert "Ilse" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            PySparkException("x: java.nio.file.InvalidPathException: Malformed input: /Ilse"),
            "LC_ALL to C.UTF-8",
        ),
        (
            PySparkException("org.apache.hadoop.security.AccessControlException: Ilse"),
            "has no permission to read it",
        ),
        (
            PySparkException("java.io.FileNotFoundException: /Ilse (Permission denied)"),
            "has no permission to read it",
        ),
        (PermissionError(13, "Ilse"), "has no permission to read it"),
        (PySparkException("Ilse"), "cannot be read as Parquet"),
    ],
)
def test_path_that_cannot_be_opened_is_not_reported_as_a_damaged_file(
    tmp_path: Path, error: Exception, said: str
) -> None:
    with pytest.raises(InputRejected, match=said) as caught, translate_read_errors(specification(tmp_path)):
        raise error
    assert "Ilse" not in str(caught.value)
