"""Check, in the kernel's list of sockets, whether the peer process of a connection belongs to this user."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from microguard.pipelines.workbench.guard import ADDRESS

CONNECTIONS = Path("/proc/net/tcp")


class Peers:
    """Processes that connect to a port of the loopback address.

    The kernel lists the user of each socket, and user 0 for a socket that its process has closed. Root is
    therefore refused too: otherwise a process could send a request and close its socket to hide its user. A
    connection that is not listed is refused, unless the system lists no sockets (not even that of the
    server).

    Parameters
    ----------
    port : int
        Port on which this process listens already.
    listed : Path
        The kernel's list of sockets.
    """

    def __init__(self, port: int, listed: Path = CONNECTIONS) -> None:
        self._port, self._listed = port, listed
        self.is_known = self._user((ADDRESS, port), ("0.0.0.0", 0)) == os.getuid()

    def __call__(self, peer: tuple[str, int]) -> bool:
        """Return whether the process of a peer belongs to this user; True if the system lists no sockets."""
        return not self.is_known or self._user(peer, (ADDRESS, self._port)) == os.getuid()

    def _user(self, end: tuple[str, int], other: tuple[str, int]) -> int | None:
        """Return the user of the socket at `end` of a connection; None if the system does not list it."""
        try:
            wanted = [_written(end), _written(other)]
            lines = self._listed.read_text().splitlines()
        except OSError:
            return None
        users = [int(fields[7]) for line in lines if (fields := line.split())[1:3] == wanted]
        return users[0] if len(users) == 1 else None


def _written(end: tuple[str, int]) -> str:
    """Format an address in the same way as the kernel."""
    host = int.from_bytes(socket.inet_aton(end[0]), sys.byteorder)
    return f"{host:08X}:{end[1]:04X}"
