"""The service over HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any, TypeVar, final

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from accord import __version__
from accord._wording import byte_size, json_text
from accord.service.bodies import (
    MEDIA,
    BodyFormat,
    BodyRows,
    answer_format,
    body_format,
    compact_json,
    encode,
    read_rows,
    warning_header,
)
from accord.service.limits import Refused, has_key
from accord.service.model import Question, Served
from accord.service.openapi import describe
from accord.service.service import CONTENT_TYPE, OPEN_PATHS, Service
from accord.tables import TableError

_A = TypeVar("_A")

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
]
# A body longer than this is read in another thread, so that others need not wait for it.
_SHORT_BODY = 64 << 10
_MOST_COVERAGES = 10

Share = Annotated[float, Query(gt=0, lt=1)]
Coverages = Annotated[
    list[Share],
    Query(
        max_length=_MOST_COVERAGES,
        description="Share of the values that intervals should contain; may be repeated. By "
        "default the model's.",
    ),
]
Strict = Annotated[
    bool,
    Query(
        description="Refuse infinite and extreme values, words among numbers and unknown "
        "categories."
    ),
]
ByName = Annotated[
    bool, Query(description="Match columns by name alone: any order, further columns ignored.")
]


# --- what every request passes: key, size, counting, safe headers --------------------------------


@final
class Gate:
    """The outermost layer of the application.

    The usual question, ``POST /predict`` without options, is answered here: by FastAPI's own way,
    reading and writing it takes two to three times as long.
    """

    def __init__(self, app: ASGIApp, *, key: str | None, service: Service) -> None:
        self._app, self._key, self._service = app, key, service

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
                await _refusal(problem)(scope, receive, watched)
            elif scope["path"] == "/predict" and _is_plain_post(scope):
                await (await self._predicted(scope, receive))(scope, receive, watched)
            else:
                await self._app(scope, receive, watched)
        finally:
            self._service.metrics.request(scope["path"], status, time.perf_counter() - start)

    async def _predicted(self, scope: Scope, receive: Receive) -> Response:
        try:
            answer = _predictions(Request(scope, receive), self._service)
            return await _in_time(self._service, answer)
        except (Refused, TableError) as error:
            return _refusal(error)

    def _problem(self, scope: Scope) -> Refused | None:
        headers = dict(scope["headers"])
        if (
            self._key is not None
            and scope["path"] not in OPEN_PATHS
            and not has_key(headers, self._key)
        ):
            return Refused(
                401,
                "this needs the API key. Send it as 'Authorization: Bearer KEY' or 'X-API-Key: "
                "KEY'.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        length = headers.get(b"content-length", b"0")
        most = self._service.limits.body_bytes
        if length.isdigit() and int(length) > most:
            return too_large(most)
        if headers.get(b"content-encoding", b"identity") != b"identity":
            return Refused(415, "the body must not be compressed. Send it as it is.")
        return None


def too_large(limit: int) -> Refused:
    return Refused(413, f"the body may have at most {byte_size(limit)}. Send fewer rows at a time.")


def _is_plain_post(scope: Scope) -> bool:
    return scope["method"] == "POST" and not scope["query_string"]


# --- the application -----------------------------------------------------------------------------


def make_app(service: Service, *, key: str | None = None) -> FastAPI:
    """The application; ``key`` is what requests must name, None lets all in.

    It opens the service when it starts, and closes it when it stops.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.open()
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(
        title="Accord",
        version=__version__,
        lifespan=lifespan,
        # pages and description are routes of their own: the usual ones load scripts from elsewhere
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_middleware(Gate, key=key, service=service)
    _add_questions(app, service)
    _add_state(app, service)
    _add_pages(app, service)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(TableError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _no_such_page)
    app.add_exception_handler(Exception, _failed)
    return app


# --- questions ---------------------------------------------------------------------------------


def _add_questions(app: FastAPI, service: Service) -> None:
    @app.post("/predict", summary="Mean, interval, parts of the uncertainty and a flag per row")
    async def predict(
        request: Request,
        coverage: Coverages = [],  # noqa: B006  FastAPI copies it
        strict: Strict = False,
        by_name: ByName = False,
    ) -> Response:
        coverages = tuple(dict.fromkeys(coverage))
        answer = _predictions(request, service, coverages, strict=strict, by_name=by_name)
        return await _in_time(service, answer)

    @app.post("/explain", summary="Why each interval is as wide as it is")
    async def explain(
        request: Request,
        coverage: Annotated[
            Share | None, Query(description="That of the intervals. By default the model's.")
        ] = None,
        permutations: Annotated[
            int,
            Query(ge=0, le=64, description="Orders of columns to draw: splits all parts by column"),
        ] = 0,
        strict: Strict = False,
        by_name: ByName = False,
    ) -> Response:
        async def found() -> dict[str, Any]:
            served = service.model
            rows, _ = await _rows_of(request, service, served, by_name=by_name)
            question = Question(served, rows, (coverage or served.model.coverage,), strict)
            return await service.explain(question, permutations=permutations)

        return Response(json_text(await _in_time(service, found())), media_type=MEDIA["json"])


async def _predictions(
    request: Request,
    service: Service,
    coverages: tuple[float, ...] = (),
    *,
    strict: bool = False,
    by_name: bool = False,
) -> Response:
    served = service.model
    rows, kind = await _rows_of(request, service, served, by_name=by_name)
    coverages = coverages or (served.model.coverage,)
    answer = await service.predict(served, rows, coverages=coverages, strict=strict)
    wanted = answer_format(request.headers.get("accept", ""), kind)
    headers = {} if wanted == "json" else warning_header(answer)
    return Response(encode(answer, wanted, coverages), media_type=MEDIA[wanted], headers=headers)


async def _in_time(service: Service, answer: Awaitable[_A]) -> _A:
    seconds = service.limits.seconds
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise Refused(
            504, f"a request may take at most {seconds:g} s, and this one did. Send fewer rows."
        ) from None


async def _rows_of(
    request: Request, service: Service, served: Served, *, by_name: bool
) -> tuple[BodyRows, BodyFormat]:
    kind = body_format(request.headers.get("content-type", ""))
    body = await _body(request, service.limits.body_bytes)

    def read() -> BodyRows:
        return read_rows(body, kind, served.records, by_name=by_name, most=service.limits.rows)

    return (read() if len(body) <= _SHORT_BODY else await asyncio.to_thread(read)), kind


async def _body(request: Request, most: int) -> bytes:
    """The body, as long as it is not too long, whatever its declared length."""
    chunks, size = [], 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise too_large(most)
            chunks.append(chunk)
    except ClientDisconnect:
        raise Refused(400, "the body ended too early. Send it again.") from None
    return b"".join(chunks)


# --- state -------------------------------------------------------------------------------------


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/health", summary="Whether the process answers")
    async def health() -> Response:
        return _document({"status": "alive"})

    @app.get("/ready", summary="Whether rows can be predicted")
    async def ready() -> Response:
        if service.is_ready:
            return _document({"status": "ready"})
        return _document({"status": "not ready"}, status=503)

    @app.get("/metrics", summary="Counts and times, for Prometheus")
    async def metrics() -> Response:
        return Response(service.figures(), headers={"content-type": CONTENT_TYPE})

    @app.get("/model", summary="The model's card, its columns and where it comes from")
    async def model() -> Response:
        return Response(json_text(service.model.about()), media_type=MEDIA["json"])


# --- pages -------------------------------------------------------------------------------------


def _add_pages(app: FastAPI, service: Service) -> None:
    described: tuple[Served, bytes] | None = None

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        nonlocal described
        if described is None or described[0] is not service.model:
            served = service.model
            document = describe(app, served, service.limits)
            described = served, json_text(document).encode()
        return Response(described[1], media_type=MEDIA["json"])

    for path, name in (("/", "try.html"), ("/docs", "docs.html")):
        app.get(path, include_in_schema=False)(_page(name))


def _page(name: str) -> Callable[[], Any]:
    text = (files("accord.service") / "pages" / name).read_bytes()

    async def page() -> Response:
        return Response(text, media_type="text/html")

    return page


# --- refusals ----------------------------------------------------------------------------------


def _document(
    document: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    return Response(compact_json(document), status, headers, MEDIA["json"])


async def _refused(request: Request, error: Exception) -> Response:
    return _refusal(error)


def _refusal(error: Exception) -> Response:
    """The answer to a request that is not served, or whose rows do not fit."""
    if isinstance(error, Refused):
        return _document({"error": error.message}, status=error.status, headers=error.headers)
    return _document({"error": " ".join(str(error).split())}, status=422)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [
        f"{problem['loc'][1] if len(problem['loc']) > 1 else problem['loc'][0]}: {problem['msg']}"
        for problem in error.errors()
    ]
    return _document({"error": f"the request is not valid. {'; '.join(problems)}."}, status=422)


async def _no_such_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _document(
        {"error": f"{error.detail}. The paths are listed at /docs."},
        status=error.status_code,
        headers=dict(error.headers or {}),
    )


async def _failed(request: Request, error: Exception) -> Response:
    return _document(
        {"error": "the service failed on this request; its log says more."}, status=500
    )
