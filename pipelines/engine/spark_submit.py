"""Output through the JVM of spark-submit, which started this process: its log and its standard error.

spark-submit merges both outputs of a Python script into its standard output. The JVM therefore writes the
lines that the user must see on standard error. The log is silenced before Spark starts a context.
"""

from __future__ import annotations

from typing import Any

from microguard.pipelines.engine.session import LOG_CONFIGURATION


def silence() -> None:
    """Apply our log configuration in the JVM after Spark has applied its own; Spark does this only once."""
    jvm = _jvm()
    jvm.org.apache.spark.SparkConf().initializeLogIfNecessary(False)
    address = jvm.java.net.URI(LOG_CONFIGURATION.as_uri())
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(address)


def say(text: str) -> None:
    """Write a line to the standard error of spark-submit."""
    _jvm().java.lang.System.err.println(text)


def _jvm() -> Any:
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    return SparkContext._jvm
