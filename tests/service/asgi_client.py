"""Requests to an application without a socket: what comes back, as a browser would get it."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from accord.service import Service, make_app


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


@dataclass(frozen=True)
class Call:
    """A request; ``rows`` are sent as JSON, ``body`` as it is."""

    path: str = "/predict"
    rows: Any = None
    body: bytes = b""
    media: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def content(self) -> bytes:
        return self.body if self.rows is None else json.dumps(self.rows).encode()


async def reply_to(app: Any, call: Call) -> Reply:
    post = bool(call.content)
    headers = [("content-type", call.media)] if post else []
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST" if post or call.path in ("/predict", "/explain") else "GET",
        "path": call.path,
        "query_string": urlencode(call.options).encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in [*headers, *call.headers]],
    }
    sent = [{"type": "http.request", "body": call.content, "more_body": False}]
    received: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        received.append(message)

    try:
        await app(scope, receive, send)
    except Exception:
        if not received:  # what failed inside is answered with 500 first, and raised then
            raise
    start, *rest = received
    named = {name.decode(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], named, b"".join(message.get("body", b"") for message in rest))


def ask(service: Service, *calls: Call, key: str | None = None) -> list[Reply]:
    """The replies to calls that are made at the same time."""

    async def all_of_them() -> list[Reply]:
        app = make_app(service, key=key)
        return await asyncio.gather(*(reply_to(app, call) for call in calls))

    return asyncio.run(all_of_them())
