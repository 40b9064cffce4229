"""The service as a process: its socket, its signals, its end."""

import logging
import signal
import threading
from types import FrameType

import uvicorn

from accord.service.application import make_app
from accord.service.service import Service

_LOG = logging.getLogger("accord.service")
# Connections beyond this are refused at once.
_CONNECTIONS = 2_000


def serve(
    service: Service, *, host: str = "127.0.0.1", port: int = 8000, key: str | None = None
) -> None:
    """Answer requests until SIGTERM or SIGINT; then finish what has begun, and return.

    SIGHUP loads the model's file again if it has changed. Call it in the main thread, which alone
    receives signals.
    """
    config = uvicorn.Config(
        make_app(service, key=key),
        host=host,
        port=port,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # nothing here asks who the client is
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=int(service.limits.seconds) + 1,
    )

    def reload(number: int, frame: FrameType | None) -> None:
        # loading takes seconds, in which requests are to be answered
        threading.Thread(target=_reload, args=(service,), daemon=True).start()

    if hasattr(signal, "SIGHUP"):  # Windows has none
        signal.signal(signal.SIGHUP, reload)
    # The server handles both signals while it runs, and raises them again when it has ended.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    uvicorn.Server(config).run()


def _reload(service: Service) -> None:
    message = service.file.reload()
    _LOG.log(logging.ERROR if service.file.failure else logging.INFO, message)
