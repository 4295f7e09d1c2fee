"""Access guard: refuse every request that does not come from the browser of the user who started the
workbench.

The server listens on the loopback address, which all users of the machine and all pages in a browser can
reach. A request is answered only if all of three conditions hold. Its host is this address: this excludes
pages of another host name that resolves to the address (DNS rebinding). It carries the token, which other
users do not have. A page of the workbench sent it, not a page in another tab. NiceGUI checks none of the
three. Cookies and SameSite ignore ports: another user's server on this address gets the token if the browser
opens one of its pages. Therefore the process that sends the request must belong to this user, if the system
lists processes (`peer_process`).
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

ADDRESS = "127.0.0.1"
TOKEN_BYTES = 32
READING = ("GET", "HEAD")
#: Content policy of all pages: load nothing from another server, and show no page in a frame.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self' ws://{host}; frame-src 'self'; "
    "frame-ancestors 'self'; form-action 'self'; base-uri 'self'"
)
#: Content policy of the page of a release, which has no script and loads nothing.
POLICY_OF_REPORTS = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
REPORTS = "/release/"
_ENTERED = b"""<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>microguard</title>
<meta http-equiv="refresh" content="0;url=/"><p><a href="/">To the workbench</a></p></html>"""


class Guard:
    """ASGI application that serves requests of this machine's user, and refuses all others.

    The token is in the address that `start` prints. The first response sets it as a cookie and redirects to
    the same page without the token. Scripts cannot read the cookie, and requests of other sites do not carry
    it.

    Parameters
    ----------
    app : ASGI application
    port : int
        Port of the loopback address.
    is_own : callable
        Returns whether the process at the address of a peer belongs to this user.
    """

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        port: int,
        is_own: Callable[[tuple[str, int]], bool],
    ) -> None:
        self.app, self._is_own = app, is_own
        self.host = f"{ADDRESS}:{port}"
        self.cookie = f"microguard-{port}"
        self._token = secrets.token_urlsafe(TOKEN_BYTES)

    @property
    def address(self) -> str:
        """Return the address to open, with the token."""
        return f"http://{self.host}/?token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, refuse or forward one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = _headers(scope)
        entering = self._enters(scope)
        reason = self.refusal(scope, headers, entering)
        if reason:
            await _refuse(scope, receive, send, reason)
        elif entering:
            await self._enter(send)
        else:
            await self.app(scope, receive, self._with_policy(scope, send))

    def refusal(self, scope: Scope, headers: dict[str, list[str]], entering: bool) -> str:
        """Return the reason for refusing a request; an empty text if it is accepted."""
        if headers.get("host") != [self.host]:
            return "another host name"
        origins = headers.get("origin", [])
        reads = scope["type"] == "http" and scope.get("method") in READING
        if origins != [f"http://{self.host}"] and (origins or not reads):
            return "a page of another origin"
        if not entering and not self._knows_token(headers):
            return "no token: open the address that `microguard start` printed"
        if not self._is_own(tuple(scope.get("client") or ("", 0))):
            return "a process of another user"
        return ""

    def _enters(self, scope: Scope) -> bool:
        """Return whether this request opens the first page with the token in its address."""
        if scope["type"] != "http" or scope["path"] != "/" or scope.get("method") not in READING:
            return False
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        return len(given) == 1 and self._is_token(given[0])

    def _knows_token(self, headers: dict[str, list[str]]) -> bool:
        for line in headers.get("cookie", []):
            try:
                cookies = SimpleCookie(line)
            except CookieError:
                continue
            if self.cookie in cookies and self._is_token(cookies[self.cookie].value):
                return True
        return False

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())

    async def _enter(self, send: Send) -> None:
        cookie = f"{self.cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"set-cookie", cookie.encode()),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": _ENTERED})

    def _with_policy(self, scope: Scope, send: Send) -> Send:
        """Return a `send` function that adds headers by which a page cannot load anything from other
        servers.
        """
        report = scope["path"].startswith(REPORTS)
        policy = POLICY_OF_REPORTS if report else POLICY.format(host=self.host)
        added = [
            (b"content-security-policy", policy.encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        return sent


def _headers(scope: Scope) -> dict[str, list[str]]:
    """Return the values of each header; a header that was sent twice has two values."""
    found: dict[str, list[str]] = {}
    for name, value in scope.get("headers", []):
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


async def _refuse(scope: Scope, receive: Receive, send: Send, reason: str) -> None:
    """Refuse a request before its body is read."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": f"Refused: {reason}.\n".encode()})
