"""The service over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from accord._version import __version__
from accord._wording import json_text
from accord.service.answers import compact_json, encode, warning_header
from accord.service.bodies import MEDIA, BodyFormat, BodyRows, answer_format, body_format, read_rows
from accord.service.gate import Gate, too_large
from accord.service.limits import Refused
from accord.service.metrics import CONTENT_TYPE
from accord.service.openapi import describe
from accord.service.predictions import Question
from accord.service.served import Served
from accord.service.service import Service
from accord.tables import TableError

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
    bool, Query(description="Refuse infinite and extreme values and unknown categories.")
]
ByName = Annotated[
    bool, Query(description="Match columns by name alone: any order, further columns ignored.")
]


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
    app.add_middleware(Gate, key=key, limits=service.limits, metrics=service.metrics)
    _add_questions(app, service)
    _add_state(app, service)
    _add_pages(app, service)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(TableError, _unfit)
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
        async with _time_limit(service):
            served = service.model
            rows, kind = await _rows_of(request, service, served, by_name=by_name)
            coverages = tuple(dict.fromkeys(coverage)) or (served.model.coverage,)
            answer = await service.predict(served, rows, coverages=coverages, strict=strict)
        wanted = answer_format(request.headers.get("accept", ""), kind)
        headers = {} if wanted == "json" else warning_header(answer)
        return Response(
            encode(answer, wanted, coverages), media_type=MEDIA[wanted], headers=headers
        )

    @app.post("/explain", summary="Why each interval is as wide as it is")
    async def explain(
        request: Request,
        coverage: Share | None = None,
        permutations: Annotated[
            int,
            Query(ge=0, le=64, description="Orders of columns to draw: splits all parts by column"),
        ] = 0,
        strict: Strict = False,
        by_name: ByName = False,
    ) -> Response:
        async with _time_limit(service):
            served = service.model
            rows, _ = await _rows_of(request, service, served, by_name=by_name)
            question = Question(served, rows, (coverage or served.model.coverage,), strict)
            found = await service.explain(question, permutations=permutations)
        return Response(json_text(found), media_type=MEDIA["json"])


@asynccontextmanager
async def _time_limit(service: Service) -> AsyncIterator[None]:
    seconds = service.limits.seconds
    try:
        async with asyncio.timeout(seconds):
            yield
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
        return Response(
            service.metrics.text(service.gauges()), headers={"content-type": CONTENT_TYPE}
        )

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
    assert isinstance(error, Refused)
    return _document({"error": error.message}, status=error.status, headers=error.headers)


async def _unfit(request: Request, error: Exception) -> Response:
    message = " ".join(str(error).split())
    return _document({"error": message.replace("--by-name", "by_name=true")}, status=422)


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
