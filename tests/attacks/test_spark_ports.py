"""Tests that an unauthenticated client gets nothing from the ports of a local session, and everything without
authentication.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.spark_ports import deserialises, fetched_block

SECRET = "a diagnosis that nobody may read"


@pytest.fixture(name="block")
def _block(spark) -> Iterator[str]:
    """Cache a partition that contains `SECRET`; return its name."""
    rdd = spark.sparkContext.parallelize([SECRET], 1).cache()
    assert rdd.count() == 1
    yield f"rdd_{rdd.id()}_0"
    rdd.unpersist(blocking=True)


def test_block_port_of_a_local_session_refuses_an_unauthenticated_client(spark, block: str) -> None:
    port = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().blockManager().blockManagerId().port()
    assert fetched_block(port, block) == b""


def test_control_block_port_without_authentication_serves_any_client(spark, block: str) -> None:
    jvm = spark.sparkContext._jvm.org.apache.spark
    env = jvm.SparkEnv.get()
    conf = env.conf().clone().set("spark.authenticate", "false")
    service = jvm.network.netty.NettyBlockTransferService(
        conf, _open_security(spark, conf), env.serializerManager(), "127.0.0.1", "127.0.0.1", 0, 1, None
    )
    try:
        service.init(env.blockManager())
        assert SECRET.encode() in fetched_block(service.port(), block)
    finally:
        service.close()


def test_rpc_port_of_a_local_session_deserialises_no_object_of_an_unauthenticated_client(spark) -> None:
    env = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get()
    assert not deserialises(env.rpcEnv().address().port())


def test_control_rpc_port_without_authentication_deserialises_objects_of_any_client(spark) -> None:
    jvm = spark.sparkContext._jvm.org.apache.spark
    conf = jvm.SparkEnv.get().conf().clone().set("spark.authenticate", "false")
    env = jvm.rpc.RpcEnv.create("open", "127.0.0.1", 0, conf, _open_security(spark, conf), False)
    try:
        assert deserialises(env.address().port())
    finally:
        env.shutdown()


def test_local_session_keeps_its_secret_out_of_arguments_environment_and_settings(spark) -> None:
    jvm = spark.sparkContext._jvm
    secret = jvm.org.apache.spark.SparkEnv.get().securityManager().getSecretKey()
    assert len(secret) >= 32
    process = Path("/proc") / str(jvm.java.lang.ProcessHandle.current().pid())
    readable = [(process / name).read_bytes() for name in ("cmdline", "environ")]
    readable += [repr(os.environ).encode(), repr(spark.sparkContext.getConf().getAll()).encode()]
    assert not any(secret.encode() in each for each in readable)


def test_local_session_listens_only_on_loopback(spark) -> None:
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    listening = _listening(pid)
    assert listening
    assert {address for address in listening if not _loopback(address)} == set()


def _open_security(spark, conf):
    jvm = spark.sparkContext._jvm
    secret_file = getattr(
        getattr(jvm.org.apache.spark.internal.config, "package$"), "MODULE$"
    ).AUTH_SECRET_FILE()
    return jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.apply(None), secret_file)


def _listening(pid: int) -> set[str]:
    """Return the addresses on which a process listens, in hexadecimal as the kernel writes them."""
    links = (os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if os.path.lexists(each))
    sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and line[9] in sockets}


def _loopback(address: str) -> bool:
    """Return whether an address is 127.0.0.1, also as an IPv6 address, or ::1."""
    return address in ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
