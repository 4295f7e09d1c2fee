"""The only module that builds the Spark session: quiet, private, bound to this machine in local mode."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
from microguard.pipelines.engine import compat, java_process
from microguard.pipelines.engine.failures import GONE, without_values_of_records
from microguard.pipelines.engine.files import temporary_folder
from microguard.pipelines.engine.java import java_home
from microguard.pipelines.engine.java_process import start_java, without_signal_handler
from microguard.pipelines.engine.jvm import InputSize, input_size, jvm_options
from microguard.pipelines.engine.spark_functions import remember_functions
from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.sql import SparkSession

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

compat.complete()
remember_functions()
#: Environment variables for Spark's scratch folders, which override any setting.
_SCRATCH = ("SPARK_LOCAL_DIRS", "SPARK_EXECUTOR_DIRS")
#: Seconds after which a session that does not stop is killed.
STOPPED_WITHIN = 20.0
#: Number of rows per Arrow batch: large enough for cheap serialisation, small enough for a worker's memory.
ARROW_BATCH = 50_000
#: Spark's value for no limit of bytes; with any other value Spark sums the bytes of a batch after each row.
NO_LIMIT = str(2**31 - 1)

#: Module of the daemon from which Spark forks its Python workers. A worker without it takes seconds to import
#: the methods and to load their compiled code; our daemon does this once per run.
_DAEMON = "spark.python.daemon.module"
_PRELOADED = {_DAEMON: "microguard.pipelines.records.daemon"}

_SETTINGS = {
    "spark.ui.enabled": "false",  # the pages of the UI show literals of query plans
    "spark.eventLog.enabled": "false",  # as above; under spark-submit the submitter decides
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",  # spilled records are not readable after a kill
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",  # as in the process of a command (`jobs.process`)
    "spark.python.worker.reuse": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # call sites are not shown
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH),
    "spark.sql.execution.arrow.maxBytesPerBatch": NO_LIMIT,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    # this rule only adds filters; its cost doubles with each column computed from another
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # for Spark 3.5, which otherwise does not write dates before 1582
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # aggregates sums by region with sampled records in a map, without sorting all records
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # keeps the nanoseconds that pandas writes
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.javaCharsets": "true",  # allows windows-1252 for CSV
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
#: Local mode: other users of the machine can reach loopback ports. Without authentication the block port
#: serves them blocks of records, and the RPC port deserialises their Java objects. Spark draws a secret for
#: each context and keeps it in its memory (Spark, `SecurityManager.initializeAuth`).
_PRIVATE_PORTS = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_LOCAL = {
    **_PRIVATE_PORTS,
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "8",
}
#: For a small input: adaptive planning after each shuffle and more tasks cost more than they save.
_SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}
#: For a tiny input: interpret expressions, in one task, because generating code and starting more tasks takes
#: longer than thousands of records. The number of tasks that solve blocks is set separately.
_TINY = _SMALL | {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
_BY_SIZE = {
    InputSize.LARGE: {},
    InputSize.SMALL: _SMALL,
    InputSize.TINY: _TINY,
}


def submitted() -> bool:
    """Return whether spark-submit started this process, so that its master and settings apply."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def session(
    private: Path, master: str | None, input_path: str | None = None, *, clustering: bool = False
) -> Iterator[SparkSession]:
    """Open a Spark session with its scratch files in a private folder; it stops when the context exits.

    Parameters
    ----------
    private, master, clustering : as in `open_session`
    input_path : str, optional
        The input; the session for a small input starts quickly.

    Raises
    ------
    MicroguardError
        If Spark fails.
    """
    try:
        spark = open_session(master, private, size=input_size(input_path), clustering=clustering)
    except KeyboardInterrupt:  # else Java would start on and write to its folder after its removal
        java_process.end()
        raise
    try:
        with without_values_of_records():
            yield spark
    finally:
        _stop(spark)


def _stop(spark: SparkSession) -> None:
    """Stop the session with its tasks and workers before another run may use its folders.

    A thread stops it over its own connection, because the caller's may be in the middle of a call. If that
    takes too long, Java is killed.
    """

    def stop() -> None:
        with suppress(Py4JError, *GONE):
            spark.stop()

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    thread.join(STOPPED_WITHIN)
    if thread.is_alive():
        java_process.end()


@contextmanager
def our_sql_settings(spark: SparkSession) -> Iterator[None]:
    """Set the SQL settings that affect results in a session of the caller; restore them afterwards."""
    ours = {key: value for key, value in _SETTINGS.items() if key.startswith("spark.sql.")}
    before: dict[str, str | None] = {key: spark.conf.get(key, None) for key in ours}
    try:
        for key, value in ours.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, previous in before.items():
            if previous is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, previous)


def open_session(
    master: str | None = None,
    private: Path | None = None,
    settings: dict[str, str] | None = None,
    jvm: Sequence[str] | None = None,
    *,
    size: InputSize = InputSize.LARGE,
    clustering: bool = False,
) -> SparkSession:
    """Open the session of one job.

    Parameters
    ----------
    master : str, optional
        Spark master, by default ``local[*]``. Ignored under spark-submit.
    private : Path, optional
        Folder of mode 0700 for Spark's scratch files.
    settings : dict, optional
        Further Spark settings, which override ours.
    jvm : sequence of str, optional
        Options of the JVM, by default those of `jvm_options`. Ignored under spark-submit.
    size : InputSize
        Size class of the input: a session for a smaller input starts and plans faster.
    clustering : bool
        Whether records are clustered: Python workers of this machine then preload the methods.

    Raises
    ------
    MicroguardError
        If another package has replaced files of pyspark.
    """
    compat.refuse_overlaid()
    chosen = _settings(master, size, jvm)
    if not submitted() and private is not None:
        chosen["spark.local.dir"] = str(private)
    if clustering and _on_this_machine(master):
        chosen |= _PRELOADED
    chosen |= settings or {}
    start_java(chosen)
    if submitted() and _is_local(SparkConf().get("spark.master", "")):
        chosen |= _PRIVATE_PORTS
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with without_signal_handler():
        spark = builder.getOrCreate()
    _silence(spark)
    _prestart_workers(spark)
    return spark


def session_of_this_process() -> SparkSession:
    """Return the active Spark session, or open a local one, which stops when this process ends."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    spark = open_session(private=temporary_folder(), clustering=True)
    atexit.register(_stop, spark)  # called before the folder is removed
    return spark


def prestart_java(master: str | None, input_path: str) -> None:
    """Start Java in a thread during the imports, which take as long.

    If Java cannot start, the session tries again and raises the reason.
    """

    def starts() -> None:
        with suppress(Exception):
            start_java(_settings(master, input_size(input_path)))

    threading.Thread(target=starts).start()


def _settings(master: str | None, size: InputSize, jvm: Sequence[str] | None = None) -> dict[str, str]:
    """Return the settings of a session without its folder; set Java and Python in the environment."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    chosen = {"spark.app.name": "microguard", **_SETTINGS}
    if submitted():
        del chosen["spark.eventLog.enabled"]
        return chosen
    os.environ["JAVA_HOME"] = str(java_home())
    if os.environ.get("SPARK_CONF_DIR") == str(LOG_CONFIGURATION.parent):
        del os.environ["SPARK_CONF_DIR"]  # for spark-submit; a class archive excludes folders of files
    for name in _SCRATCH:
        os.environ.pop(name, None)
    logs = f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"
    options = jvm_options(size) if jvm is None else jvm
    chosen["spark.master"] = _with_a_second_try(master or "local[*]")
    chosen["spark.driver.extraJavaOptions"] = shlex.join([logs, *options])
    return chosen | (_LOCAL | _BY_SIZE[size] if _on_this_machine(master) else {})


def _on_this_machine(master: str | None) -> bool:
    return not submitted() and (master or "local").startswith("local")


def _is_local(master: str | None) -> bool:
    """Return whether a master runs all tasks in the driver's process."""
    return re.fullmatch(r"local(\[.*\])?", master or "") is not None


def warn_without_authentication(spark: SparkSession) -> None:
    """Warn if a session of the caller allows every user of its network to fetch blocks of records.

    The session is not changed, because its ports are already open.
    """
    if spark.conf.get("spark.authenticate", "false") != "true":
        warnings.warn(
            "spark.authenticate of this session: expected true, found false. Anyone who can connect to its "
            "ports, including every user of this machine, can read records from its memory. Start the "
            "session with spark.authenticate=true (in local mode Spark draws the secret).",
            stacklevel=2,
        )


def _with_a_second_try(master: str) -> str:
    """Return the master; in local mode allow a second attempt for a task whose worker was killed."""
    cores = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return master if cores is None else f"local[{cores[1] or 1},2]"


def _silence(spark: SparkSession) -> None:
    """Apply the log configuration to a running JVM (spark-submit's), and silence pyspark.

    pyspark logs exceptions with the JVM's traceback if it knows the query, and its accumulator server prints
    a traceback if the JVM is killed.
    """
    compat.silence_pyspark()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(
        jvm.java.net.URI(LOG_CONFIGURATION.as_uri())
    )


def _prestart_workers(spark: SparkSession) -> None:
    """Start the daemon in a thread if the session uses ours.

    If the daemon cannot start, the first stage that needs a worker fails and reports this.
    """
    if spark.conf.get(_DAEMON, None) != _PRELOADED[_DAEMON]:
        return
    threading.Thread(target=_first_worker, args=[spark], daemon=True).start()


def _first_worker(spark: SparkSession) -> None:
    def nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    with suppress(Exception):  # a run that ends early stops the session
        spark.range(1, numPartitions=1).mapInArrow(nothing, "id long").collect()
