"""Kill runs whose areas are object stores: readers see complete releases, and reruns are identical.

A run is forked from this process, so that all imports are done. At a random request to the store, it is
killed with its JVM and tasks, or one of its Python workers is killed. Its lease is then removed, as after a
minute without renewal. A run that finishes is compared with the undisturbed one, and the areas are emptied.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import multiprocessing
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pandas as pd
from microguard.pipelines.publication.key import KEY_VARIABLE
from microguard.pipelines.publication.stored_evidence import VARIABLE

import microguard
from tests.benchmarks.table import Table
from tests.system.command import ACCEPTED
from tests.system.ports import free_port, wait_for

RECORDS, K, SEED = 400, 3, 11
KINDS = {
    "numeric": 'age = { role = "quasi_identifier", kind = "numeric" }\n'
    'income = { role = "quasi_identifier", kind = "numeric" }',
    "nominal": 'sex = { role = "quasi_identifier", kind = "nominal" }\n'
    'job = { role = "quasi_identifier", kind = "nominal" }',
}
#: Number of runs in which a worker is killed instead of the driver.
WORKERS = 0.2
TIMEOUT = 900.0
#: Seconds to wait for the last request of a killed run, which may renew its lease.
LAST_REQUEST = 1.0


def run(quick: bool = False) -> Iterator[Table]:
    """Kill runs of each kind, and check current releases and reruns after each kill."""
    number = 4 if quick else 100
    for module in ("great_expectations", "microguard.jobs.command", "microguard.pipelines.protect"):
        importlib.import_module(module)
    port, requests = free_port(), multiprocessing.get_context("fork").Value("L", 0)
    server = multiprocessing.get_context("fork").Process(target=_serve, args=[port, requests], daemon=True)
    server.start()
    wait_for(port)
    rows = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for kind in KINDS:
                store = _Store(kind, Path(folder), f"http://127.0.0.1:{port}", requests)
                rows.append(_killed(store, number))
    finally:
        server.terminate()
    columns = ("kind", "requests of a run", "drivers killed", "workers killed", "runs finished")
    yield Table(
        f"Kills of runs in an object store, {RECORDS} records, k = {K}",
        columns,
        rows,
        "Asserted after each kill: every release that stands is whole; `current.json` is not there, or names "
        "one that is the undisturbed one file by file. After each run that gets through: it is there, and no "
        "object of its work is left. A driver is killed with its JVM and its tasks.",
    )


@dataclass
class _Store:
    """A specification with both areas in a store, and the state of these areas."""

    kind: str
    folder: Path
    endpoint: str
    requests: Any
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(SEED)
        frame = pd.DataFrame(
            {
                "region": rng.choice(["north", "south"], RECORDS),
                "sex": rng.choice(["f", "m"], RECORDS),
                "job": rng.choice([f"j{i}" for i in range(6)], RECORDS),
                "age": rng.integers(0, 100, RECORDS),
                "income": rng.lognormal(10, 1, RECORDS).round(2),
            }
        )
        named = KINDS[self.kind]
        frame[["region", *[name for name in frame if f"{name} =" in named]]].to_parquet(self.input)
        key = self.folder / "key"
        key.write_text(secrets.token_hex(32))
        key.chmod(0o600)
        self.specification.write_text(
            f'[release]\nname = "persons"\nk = {K}\nseed = 7\n[input]\npath = "{self.input}"\n'
            f'[variables]\nregion = {{ role = "region" }}\n{named}\n{ACCEPTED}\n'
            f'[publish]\npath = "s3://{self.lake}/persons"\nevidence = "s3://{self.agency}/persons"\n'
        )
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            KEY_VARIABLE: str(key),
        }
        self.client = boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1")
        for bucket in (self.lake, self.agency):
            self.client.create_bucket(Bucket=bucket)

    @property
    def input(self) -> Path:
        return self.folder / f"{self.kind}.parquet"

    @property
    def specification(self) -> Path:
        return self.folder / f"{self.kind}.toml"

    @property
    def outcome(self) -> Path:
        """Return the result of the last completed run."""
        return self.folder / "outcome.json"

    @property
    def lake(self) -> str:
        return f"lake-{self.kind}"

    @property
    def agency(self) -> str:
        return f"agency-{self.kind}"

    def names(self, bucket: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def content(self, bucket: str, name: str) -> bytes:
        return bytes(self.client.get_object(Bucket=bucket, Key=name)["Body"].read())

    def current(self) -> dict[str, str] | None:
        """Return the checksums of the current release, after checking that every release is complete.

        Raises
        ------
        AssertionError
        """
        names, whole = self.names(self.lake), {}
        for name in names:
            if name.endswith("/manifest.json"):
                release = name.removesuffix("manifest.json")
                files = json.loads(self.content(self.lake, name))["files"]
                for file, named in files.items():
                    content = self.content(self.lake, f"{release}{file}")
                    assert hashlib.sha256(content).hexdigest() == named["sha256"], "a partial release"
                whole[release.split("/")[-2]] = {file: named["sha256"] for file, named in files.items()}
        if "persons/current.json" not in names:
            return None
        served = json.loads(self.content(self.lake, "persons/current.json"))["release_id"]
        assert served in whole, "current.json names no complete release"
        return {file: checksum for file, checksum in whole[served].items() if file.endswith(".parquet")}

    def release(self) -> None:
        """Remove the leases of a killed run after its last request."""
        time.sleep(LAST_REQUEST)
        for bucket in (self.lake, self.agency):
            self.client.delete_object(Bucket=bucket, Key="persons/.lease")

    def left(self) -> list[str]:
        """Return staging objects that no run needs."""
        return [name for name in self.names(self.agency) if "/.work/" in name]

    def empty(self) -> None:
        for bucket in (self.lake, self.agency):
            for name in self.names(bucket):
                self.client.delete_object(Bucket=bucket, Key=name)

    def attempt(self, machine: str, at: int | None, *, worker: bool = False) -> tuple[bool, int]:
        """Run and kill at a request; return whether a process was killed, and the exit code."""
        begun, killed = self.requests.value, False
        self.outcome.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            _protect(self.specification, self.folder / machine, self.outcome)
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return killed, os.waitstatus_to_exitcode(status)
            if at is not None and not killed and self.requests.value - begun >= at:
                if worker:
                    killed = _kill_worker(pid)
                    at = at if killed else at + 1
                else:
                    os.killpg(pid, signal.SIGKILL)
                    killed = True
            time.sleep(0.001)
        os.killpg(pid, signal.SIGKILL)
        raise AssertionError("a run did not end")


def _killed(store: _Store, number: int) -> tuple[object, ...]:
    random, machine = np.random.default_rng(SEED), f"{store.kind} 0"
    before = store.requests.value
    _, code = store.attempt(machine, None)
    assert code == 0, f"an undisturbed run ended with {code}"
    total, undisturbed = store.requests.value - before, store.current()
    assert undisturbed
    drivers = workers = finished = 0
    store.empty()
    while drivers + workers < number:
        machine = f"{store.kind} {secrets.token_hex(4)}"  # every rerun simulates another machine
        worker = random.random() < WORKERS
        killed, code = store.attempt(machine, int(random.integers(1, total)), worker=worker)
        drivers += killed and not worker
        workers += killed and worker
        current = store.current()
        assert current in (None, undisturbed), "the release differs from the undisturbed one"
        if code == 0:
            assert current == undisturbed, "a run ended and published nothing"
            assert not store.left(), "a run ended and left staging objects"
            finished += 1
            store.empty()
        else:
            said = store.outcome.read_text() if store.outcome.exists() else "and said nothing"
            assert killed, f"a run without a kill ended with {code}: {said}"
            assert not worker, f"a run with a killed worker ended with {code}: {said}"
            store.release()
        print(f"{store.kind}: {drivers} + {workers} of {number} kills, {finished} finished", file=sys.stderr)
    _, code = store.attempt(f"{store.kind} last", None)
    assert code == 0
    assert store.current() == undisturbed
    assert not store.left(), "a run ended and left staging objects"
    return store.kind, total, drivers, workers, finished + 1


def _protect(specification: Path, machine: Path, outcome: Path) -> None:
    """Run the command in a child process."""
    code = 1
    with suppress(BaseException):
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.environ[VARIABLE] = str(machine)
        ends = ["--quiet", "--outcome", str(outcome)]
        code = _exit_code(["protect", str(specification), *ends, "--master", "local[1]"])
    os._exit(code)


def _exit_code(arguments: list[str]) -> int:
    try:
        return int(microguard.main(arguments) or 0)
    except SystemExit as ended:
        return int(ended.code or 0) if not isinstance(ended.code, str) else 1


def _kill_worker(session: int) -> bool:
    """Kill a Python worker of a session, but not the daemon that forks workers."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            command = (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            forked = (
                b"microguard.pipelines.records.daemon"
                in (Path("/proc") / str(parent) / "cmdline").read_bytes()
            )
            if (
                b"microguard.pipelines.records.daemon" in command
                and forked
                and os.getsid(int(process.name)) == session
            ):
                os.kill(int(process.name), signal.SIGKILL)
                return True
    return False


def _serve(port: int, requests: Any) -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, run_simple

    application = DomainDispatcherApplication(create_backend_app)

    class Silent(WSGIRequestHandler):
        def log(self, *_: object) -> None:
            pass

    def counted(environ: Any, start: Any) -> Any:
        with requests.get_lock():
            requests.value += 1
        return application(environ, start)

    run_simple("127.0.0.1", port, counted, threaded=True, request_handler=Silent)
