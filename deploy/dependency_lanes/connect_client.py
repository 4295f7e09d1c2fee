"""Publish the data of the demo with Spark Connect: connect_client.py RELEASE.toml DATA KEY=VALUE.

It runs in the environment of a lane, outside of the checkout, and starts a Connect server of its own. Exit
code 9 means that microguard refused the version of Spark by name; the message is on standard error.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

REFUSED = 9
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
#: Seconds within which the server must answer.
STARTED = 240


def main(specification: str, data: str, override: str) -> int:
    """Publish, and return the exit code."""
    import pyspark
    from microguard.schemas.specification.read import read_specification

    import microguard  # the import is here because the module that lists the jobs runs without microguard

    protection = microguard.Protection(read_specification(Path(specification), [override]))
    if pyspark.__version__ < "4":
        return _refusal(protection)
    from microguard.pipelines.engine.java import java_home
    from pyspark.sql import SparkSession

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    options = [f"--conf={key}={value}" for key, value in settings.items()]
    command = [
        Path(sys.executable).with_name("spark-submit"),
        "--master=local[2]",
        "--class",
        SERVER,
        *options,
    ]
    process = subprocess.Popen(
        [*command, "spark-internal"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable},
    )
    try:
        _wait_for(port, process)
        spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        try:
            frame = spark.read.parquet(str(Path(data).resolve()))
            protection.publish(protection.protect(frame))
        finally:
            spark.stop()  # without the server, the session would retry for minutes when the process ends
    finally:
        process.terminate()
        process.wait(60)
    return 0


def _refusal(protection: Any) -> int:
    """Wrap a frame in a class that lacks the conversion to Arrow, as in earlier versions of Connect."""
    from microguard import MicroguardError

    try:
        protection.protect(type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})())
    except MicroguardError as error:
        print(error, file=sys.stderr)
        return REFUSED
    return 1


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTED
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    sys.exit(f"the Connect server did not start (exit code {process.poll()})")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
