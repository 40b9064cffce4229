"""What every request passes: the API key, the size of its body, counting, and safe headers."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from accord.service.answers import compact_json
from accord.service.keys import has_key
from accord.service.limits import Limits, Refused
from accord.service.metrics import Metrics

# Open to all: a balancer has no key, and the pages hold nothing but what they ask for with one.
_OPEN = ("/health", "/ready", "/", "/docs")
PATHS = (*_OPEN, "/predict", "/explain", "/metrics", "/model", "/openapi.json")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
]


@final
class Gate:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, *, key: str | None, limits: Limits, metrics: Metrics) -> None:
        self._app, self._key, self._limits, self._metrics = app, key, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        try:
            if problem := self._problem(scope):
                await _refuse(problem, watched)
            else:
                await self._app(scope, receive, watched)
        finally:
            path = scope["path"] if scope["path"] in PATHS else "other"
            self._metrics.request(path, status, time.perf_counter() - start)

    def _problem(self, scope: Scope) -> Refused | None:
        headers = dict(scope["headers"])
        if self._key is not None and scope["path"] not in _OPEN and not has_key(headers, self._key):
            return Refused(
                401,
                "this needs the API key. Send it as 'Authorization: Bearer KEY' or 'X-API-Key: "
                "KEY'.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._limits.body_bytes:
            return too_large(self._limits.body_bytes)
        if headers.get(b"content-encoding", b"identity") != b"identity":
            return Refused(415, "the body must not be compressed. Send it as it is.")
        return None


def too_large(limit: int) -> Refused:
    shown = f"{limit / 2**20:.3g} MB" if limit >= 2**20 else f"{limit:,} bytes"
    return Refused(413, f"the body may have at most {shown}. Send fewer rows at a time.")


async def _refuse(problem: Refused, send: Callable[[Any], Awaitable[None]]) -> None:
    body = compact_json({"error": problem.message})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
