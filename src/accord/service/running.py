"""The service as processes: its socket, its signals, its end."""

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import final

import uvicorn

from accord.service.application import make_app
from accord.service.service import Service

_LOG = logging.getLogger("accord.service")
# Connections beyond this are refused at once.
_CONNECTIONS = 2_000
_STOP = (signal.SIGINT, signal.SIGTERM)
# Seconds until a worker that ended by itself has a successor.
_PAUSE = 1.0


def serve(
    service: Service, *, host: str = "127.0.0.1", port: int = 8000, key: str | None = None
) -> None:
    """Answer requests until SIGTERM or SIGINT; then finish what has begun, and return.

    SIGHUP loads the model's file again if it has changed. With several workers, this process
    passes signals on to them and replaces one that ends. Call it in the main thread, which alone
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
        limit_concurrency=max(1, _CONNECTIONS // service.workers),
        timeout_graceful_shutdown=int(service.limits.seconds) + 1,
    )
    if service.workers == 1:
        # The server handles both signals while it runs, and raises them again when it has ended.
        _handle_signals(service, signal.SIG_IGN)
        uvicorn.Server(config).run()
    else:
        with config.bind_socket() as listening:
            _Workers(service, config, listening).run()


def _handle_signals(
    service: Service, stop: signal.Handlers | Callable[[int, FrameType | None], None]
) -> None:
    """Load the file again when asked to; ``stop`` is for before the server runs, and after."""

    def reload(number: int, frame: FrameType | None) -> None:
        # loading takes seconds, in which requests are to be answered
        threading.Thread(target=_reload, args=(service,), daemon=True).start()

    if hasattr(signal, "SIGHUP"):  # Windows has none
        signal.signal(signal.SIGHUP, reload)
    for name in _STOP:
        signal.signal(name, stop)


def _reload(service: Service) -> None:
    message = service.reload()
    _LOG.log(logging.ERROR if service.file.failure else logging.INFO, message)


@final
class _Workers:
    """Processes that accept connections from one socket, forked from one that has the model."""

    def __init__(self, service: Service, config: uvicorn.Config, listening: socket.socket) -> None:
        self._service, self._config, self._listening = service, config, listening
        self._numbers: dict[int, int] = {}  # by process
        self._stopping = False
        self._signals = {*_STOP, signal.SIGHUP}
        # It is never written to: it ends for the workers when this process does.
        self._alive, self._held = os.pipe()

    def run(self) -> None:
        """Until all workers have ended."""
        for name in _STOP:
            signal.signal(name, self._stop)
        signal.signal(signal.SIGHUP, lambda *_: self._send(signal.SIGHUP))
        for number in range(self._service.workers):
            self._start(number)
        while self._numbers:
            process, status = os.wait()
            number = self._numbers.pop(process)
            self._service.metrics.ended(number)
            if not self._stopping:
                code = os.waitstatus_to_exitcode(status)
                _LOG.error(f"worker {number + 1} ended with {code}, and is replaced.")
                time.sleep(_PAUSE)
            if not self._stopping:
                self._start(number)

    def _start(self, number: int) -> None:
        # a signal must not find a worker with the handlers of this process
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        process = os.fork()
        if not process:
            try:
                self._work(number)
            except BaseException:
                _LOG.exception("a worker failed")
                os._exit(1)
            os._exit(0)
        self._numbers[process] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._signals)

    def _work(self, number: int) -> None:
        """What a worker does, from beginning to end."""
        os.setpgid(0, 0)  # Ctrl-C reaches the first process only, which asks its workers once
        os.close(self._held)
        threading.Thread(target=self._end_with_parent, daemon=True).start()
        self._service.metrics.take_place(number)
        self._service.reload()  # the file may have changed since the first worker began
        _handle_signals(self._service, lambda *_: os._exit(0))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._signals)
        uvicorn.Server(self._config).run([self._listening])

    def _end_with_parent(self) -> None:
        os.read(self._alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        for process in self._numbers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
