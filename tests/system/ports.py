"""Find ports for processes that a test starts."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

import pytest


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(port: int) -> None:
    """Wait until a process listens on a port."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    pytest.fail("the process that was started does not answer")
