"""Start servers of object stores on this machine and create empty buckets in them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate

import pytest
from moto.server import ThreadedMotoServer

from tests.system.ports import free_port, wait_for

_ACCOUNT, _KEY = "devstoreaccount1", base64.b64encode(b"a key of this test alone").decode()
_VERSION = "2021-08-06"


class S3:
    """Amazon S3, simulated by moto."""

    environment = ("AWS_",)

    @staticmethod
    @contextmanager
    def started() -> Iterator[str]:
        moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        moto.start()
        host, port = moto.get_host_and_port()
        yield f"http://{host}:{port}"
        moto.stop()

    @staticmethod
    def settings(server: str) -> dict[str, str]:
        credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        return credentials | {"AWS_ENDPOINT_URL": server, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}

    @staticmethod
    def make(server: str, name: str) -> str:
        urllib.request.urlopen(urllib.request.Request(f"{server}/{name}", method="PUT")).close()
        return f"s3://{name}"


class Azure:
    """Azure Blob Storage, simulated by Azurite (npm): on the path, or named in MICROGUARD_AZURITE."""

    environment = ("AZURE_", "AZURITE_")

    @staticmethod
    @contextmanager
    def started() -> Iterator[str]:
        command = os.environ.get("MICROGUARD_AZURITE") or shutil.which("azurite-blob")
        if command is None:
            pytest.skip("Azurite is not installed")
        port = free_port()
        options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        process = subprocess.Popen(
            [command, "--blobHost", "127.0.0.1", "--blobPort", str(port), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_KEY}"},
        )
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)

    @staticmethod
    def settings(server: str) -> dict[str, str]:
        return {
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
            "AZURITE_BLOB_STORAGE_URL": server,
        }

    @staticmethod
    def make(server: str, name: str) -> str:
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        named = [f"{key}:{value}" for key, value in headers.items()]
        text = ["PUT", *[""] * 11, *named, f"/{_ACCOUNT}/{_ACCOUNT}/{name}", "restype:container"]
        signed = hmac.digest(base64.b64decode(_KEY), "\n".join(text).encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(signed).decode()}"
        address = f"{server}/{_ACCOUNT}/{name}?restype=container"
        urllib.request.urlopen(urllib.request.Request(address, method="PUT", headers=headers)).close()
        return f"abfss://{name}@{_ACCOUNT}.dfs.core.windows.net"


CLOUDS = {"s3": S3, "abfss": Azure}
