"""Attacks on the workbench by other hosts, users and origins. Each attack succeeds without the guard."""

import asyncio
import os
import socket

import pytest
from microguard.pipelines.workbench.guard import Guard
from microguard.pipelines.workbench.peer_process import CONNECTIONS, Peers

PORT = 4711
HOST = f"127.0.0.1:{PORT}"
OWN = f"http://{HOST}"


async def open_app(scope, receive, send):
    """Accept every request, as NiceGUI does."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"the records"})


@pytest.fixture
def guard():
    return Guard(open_app, PORT, lambda _: True)


def answer(app, kind="http", path="/", query="", method="GET", client=None, **headers):
    """Send a request with these headers and return the messages of the response."""
    sent = []

    async def receive():
        return {"type": f"{kind}.connect" if kind == "websocket" else "http.request", "body": b""}

    async def send(message):
        sent.append(message)

    scope = {"type": kind, "path": path, "client": client, "query_string": query.encode(), "headers": [
        (name.encode(), value.encode()) for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]} | ({"method": method} if kind == "http" else {})  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent


def is_served(sent):
    return sent[0].get("status") == 200 or sent[0]["type"] == "websocket.accept"


def token(guard):
    return guard.address.partition("token=")[2]


def cookie(guard):
    return f"{guard.cookie}={token(guard)}"


def test_guard_serves_the_person_with_the_token(guard):
    assert is_served(answer(guard, host=HOST, cookie=cookie(guard)))
    assert is_served(answer(guard, method="POST", host=HOST, cookie=cookie(guard), origin=OWN))
    assert is_served(answer(guard, "websocket", host=HOST, cookie=cookie(guard), origin=OWN))


ATTACKS = {
    "another host name that resolves to this address": {"host": f"attacker.example:{PORT}"},
    "the host of another port": {"host": "127.0.0.1:80"},
    "the name localhost, which cookies of other servers share": {"host": f"localhost:{PORT}"},
    "no host": {"host": []},
    "two hosts": {"host": [HOST, "attacker.example"]},
    "a page in another tab": {"origin": "http://attacker.example"},
    "a page of another port of this machine": {"origin": "http://127.0.0.1:8000"},
    "a page without an origin": {"origin": "null"},
    "two origins": {"origin": [OWN, "http://attacker.example"]},
    "another user of the machine, without a token": {"cookie": []},
    "a guessed token": {"cookie": f"microguard-{PORT}=guessed"},
    "an empty token": {"cookie": f"microguard-{PORT}="},
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=list(ATTACKS))
@pytest.mark.parametrize(("kind", "method"), [("http", "GET"), ("http", "POST"), ("websocket", "")])
def test_guard_refuses_an_attack_that_succeeds_without_the_guard(guard, kind, method, attack):
    headers = {"host": HOST, "cookie": cookie(guard), "origin": OWN} | attack
    assert is_served(answer(open_app, kind, method=method, **headers))
    sent = answer(guard, kind, method=method, **headers)
    assert not is_served(sent)
    assert b"records" not in sent[-1].get("body", b"")


def test_guard_refuses_post_and_websocket_without_origin(guard):
    assert not is_served(answer(guard, method="POST", host=HOST, cookie=cookie(guard)))
    assert not is_served(answer(guard, "websocket", host=HOST, cookie=cookie(guard)))


def test_guard_exchanges_the_token_for_a_cookie_that_scripts_and_other_sites_cannot_read(guard):
    sent = answer(guard, query=f"token={token(guard)}", host=HOST)
    headers = dict(sent[0]["headers"])
    given = headers[b"set-cookie"].decode()
    assert given.startswith(cookie(guard))
    assert {"HttpOnly", "SameSite=Strict"} <= set(given.split("; "))
    assert token(guard).encode() not in sent[1]["body"]
    assert headers[b"referrer-policy"] == b"no-referrer"


@pytest.mark.parametrize("query", ["token=", "token=guessed", "token=a&token=b", "tok=1"])
def test_guard_refuses_an_address_with_another_token(guard, query):
    assert not is_served(answer(guard, query=query, host=HOST))


def test_guard_accepts_the_token_only_in_the_address_of_the_first_page(guard):
    query = f"token={token(guard)}"
    assert not is_served(answer(guard, path="/release/0", query=query, host=HOST))
    assert not is_served(answer(guard, method="POST", query=query, host=HOST, origin=OWN))
    assert not is_served(answer(guard, query=query, host=f"attacker.example:{PORT}"))


def test_guard_forbids_resources_of_other_servers(guard):
    for path in ("/", "/release/0"):
        headers = dict(answer(guard, path=path, host=HOST, cookie=cookie(guard))[0]["headers"])
        policy = headers[b"content-security-policy"].decode()
        assert "default-src" in policy
        assert "http:" not in policy
        assert "*" not in policy


LINE = "   {n}: {end} {other} 01 00000000:00000000 00:00000000 00000000 {user} 0 1 1 0 20 4 30 10 -1\n"
SERVER, PEER, CLOSED = "0100007F:1267", "0100007F:9C40", "0100007F:9C41"


def test_guard_refuses_the_cookie_from_a_process_of_another_user(tmp_path, monkeypatch):
    """A server of another user on the same address receives the cookie with each page that it serves."""
    own, other = os.getuid(), os.getuid() + 1
    monkeypatch.setattr("sys.byteorder", "little")
    listed = tmp_path / "tcp"
    rows = [(SERVER, "00000000:0000", own), (PEER, SERVER, other), (CLOSED, SERVER, 0), (SERVER, PEER, own)]
    rows.append(("0100007F:9C42", SERVER, own))
    lines = [LINE.format(n=n, end=a, other=b, user=user) for n, (a, b, user) in enumerate(rows)]
    listed.write_text("  sl  local_address rem_address\n" + "".join(lines))
    peers = Peers(PORT, listed)
    for port, served in ((40_000, False), (40_001, own == 0), (40_002, True), (40_003, False)):
        for guard, expected in (
            (Guard(open_app, PORT, lambda _: True), True),
            (Guard(open_app, PORT, peers), served),
        ):
            sent = answer(guard, client=("127.0.0.1", port), host=HOST, cookie=cookie(guard))
            assert is_served(sent) == expected
    listed.unlink()
    assert Peers(PORT, listed)(("127.0.0.1", 40_000))  # this system does not list connections


@pytest.mark.skipif(not CONNECTIONS.exists(), reason="this system does not list connections")
def test_guard_accepts_a_connection_from_the_process_of_the_test():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        peers = Peers(port)
        with socket.create_connection(("127.0.0.1", port)) as peer:
            assert peers(peer.getsockname())
        assert not peers.is_known or not peers(("127.0.0.1", 1))
