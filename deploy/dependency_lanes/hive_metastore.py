"""Start a Hive metastore from the jars of pyspark, on a Derby database in a folder."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Seconds within which the metastore must answer.
STARTED = 300
_SITE = """<configuration>
<property><name>javax.jdo.option.ConnectionURL</name>
<value>jdbc:derby:;databaseName={folder}/metastore;create=true</value></property>
<property><name>javax.jdo.option.ConnectionDriverName</name>
<value>org.apache.derby.jdbc.EmbeddedDriver</value></property>
<property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
<property><name>datanucleus.connectionPoolingType</name><value>none</value></property>
<property><name>hive.metastore.schema.verification</name><value>false</value></property>
<property><name>hive.metastore.warehouse.dir</name><value>{folder}/warehouse</value></property>
<property><name>hive.async.log.enabled</name><value>false</value></property>
<property><name>hive.in.test</name><value>{creates}</value></property>
</configuration>
"""


@contextmanager
def hive_metastore(folder: Path) -> Iterator[str]:
    """Start the metastore and yield its address, ``thrift://...``.

    The metastore is started twice: only its test mode creates the tables of its locks, on the first request
    for a lock, and this mode then refuses locks.
    """
    from hive_metastore.ttypes import ShowLocksRequest
    from pyiceberg.catalog.hive import HiveCatalog

    with _started(folder, creates=True) as address, HiveCatalog("start", uri=address)._client as client:
        client.show_locks(ShowLocksRequest())
    with _started(folder, creates=False) as address:
        yield address


@contextmanager
def _started(folder: Path, *, creates: bool) -> Iterator[str]:
    import pyspark

    (folder / "hive-site.xml").write_text(_SITE.format(folder=folder, creates=str(creates).lower()))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    options = ["-Xmx512m", f"-Djava.io.tmpdir={folder}", f"-Dderby.stream.error.file={folder}/derby.log"]
    server = ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
    process = subprocess.Popen(
        [Path(os.environ["JAVA_HOME"]) / "bin" / "java", *options, "-cp", f"{folder}:{jars}", *server],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + STARTED
        while time.monotonic() < until and process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
