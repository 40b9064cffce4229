"""Counts and times of all workers, in Prometheus' text format (version 0.0.4)."""

import mmap
from bisect import bisect_left
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, Literal, final

import numpy as np

from accord._types import Floats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Open to all: a balancer has no key, and the pages hold nothing but what they ask for with one.
OPEN_PATHS = ("/health", "/ready", "/", "/docs")
_OTHER = "other"
_PATHS = (
    *(*OPEN_PATHS, "/predict", "/explain", "/metrics", "/model", "/openapi.json"),
    _OTHER,
)
_FIRST_STATUS, _STATUSES = 100, 500
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_SORTS = ("predicted", "unusual", "explained")

Gauge = Literal["waiting_rows", "ready", "model_loaded", "model_reloads", "model_reload_failed"]
# Figures of the moment: their names, what they say, and how those of several workers make one.
_GAUGES: dict[Gauge, tuple[str, str, Callable[[Floats], Any]]] = {
    "waiting_rows": ("accord_waiting_rows", "Rows that wait to be predicted.", np.sum),
    "ready": ("accord_ready", "Whether all workers can predict rows.", np.min),
    "model_loaded": (
        "accord_model_loaded_timestamp_seconds",
        "When the oldest model in use was loaded.",
        np.min,
    ),
    "model_reloads": ("accord_model_reloads", "How often another model was loaded.", np.max),
    "model_reload_failed": (
        "accord_model_reload_failed",
        "Whether the last changed file could not be loaded.",
        np.max,
    ),
}
# What a worker counts; a histogram has a count for each bound and beyond, then the sum of values.
_FIGURES = np.dtype(
    [
        ("requests", np.float64, (len(_PATHS), _STATUSES)),
        ("seconds", np.float64, (len(_PATHS), len(_SECONDS) + 2)),
        ("batches", np.float64, len(_ROWS) + 2),
        ("rows", np.float64, len(_SORTS)),
        ("gauges", np.float64, len(_GAUGES)),
    ]
)


@final
class Metrics:
    """What is counted; paths are the service's own, so that no client can invent labels.

    The figures of all workers lie beside each other, in memory that forked processes share: each
    writes its own, and whichever is asked tells those of all.
    """

    def __init__(self, workers: int = 1) -> None:
        memory = mmap.mmap(-1, workers * _FIGURES.itemsize)
        self._all = np.frombuffer(memory, _FIGURES)
        self._own = self._all[0]
        self._lock = Lock()

    def take_place(self, worker: int) -> None:
        """Count as this worker from now on; what was counted in its place stays."""
        self._own = self._all[worker]

    def request(self, path: str, status: int, seconds: float) -> None:
        place = _PATHS.index(path if path in _PATHS else _OTHER)
        with self._lock:
            self._own["requests"][place, status - _FIRST_STATUS] += 1
            _add(self._own["seconds"][place], _SECONDS, seconds)

    def batch(self, rows: int) -> None:
        with self._lock:
            _add(self._own["batches"], _ROWS, rows)

    def rows(self, *, predicted: int = 0, unusual: int = 0, explained: int = 0) -> None:
        with self._lock:
            self._own["rows"] += (predicted, unusual, explained)

    def now(self, gauges: dict[Gauge, float]) -> None:
        """What this worker's figures of the moment are."""
        for place, name in enumerate(_GAUGES):
            self._own["gauges"][place] = gauges[name]

    def ended(self, worker: int) -> None:
        """A worker is no more: it is not ready, and nothing waits for it."""
        self._all[worker]["gauges"][: list(_GAUGES).index("ready") + 1] = 0

    def text(self) -> str:
        """All figures of all workers."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        requests, seconds, batches, rows = (
            self._all[name].sum(axis=0) for name in ("requests", "seconds", "batches", "rows")
        )
        yield from _head("accord_requests_total", "counter", "Requests answered.")
        for place, status in np.argwhere(requests):
            labels = f'path="{_PATHS[place]}",status="{status + _FIRST_STATUS}"'
            yield f"accord_requests_total{{{labels}}} {requests[place, status]:.0f}"
        yield from _head("accord_request_seconds", "histogram", "Time to the answer.")
        for place in np.flatnonzero(requests.any(axis=1)):
            labels = f'path="{_PATHS[place]}"'
            yield from _histogram("accord_request_seconds", _SECONDS, seconds[place], labels)
        yield from _head("accord_batch_rows", "histogram", "Rows predicted together.")
        yield from _histogram("accord_batch_rows", _ROWS, batches)
        for sort, n in zip(_SORTS, rows, strict=True):
            yield from _head(f"accord_rows_{sort}_total", "counter", f"Rows {sort}.")
            yield f"accord_rows_{sort}_total {n:.0f}"
        of_all = self._all["gauges"].T
        for (name, about, together), values in zip(_GAUGES.values(), of_all, strict=True):
            yield from _head(name, "gauge", about)
            yield f"{name} {float(together(values))!r}"


def _add(histogram: Floats, bounds: tuple[float, ...], value: float) -> None:
    histogram[bisect_left(bounds, value)] += 1
    histogram[-1] += value


def _histogram(
    name: str, bounds: tuple[float, ...], figures: Floats, labels: str = ""
) -> Iterator[str]:
    counts, comma, braced = np.cumsum(figures[:-1]), labels and f"{labels},", f"{{{labels}}}"
    for bound, n in zip([*bounds, "+Inf"], counts, strict=True):
        yield f'{name}_bucket{{{comma}le="{bound}"}} {n:.0f}'
    yield f"{name}_sum{labels and braced} {figures[-1]:.6f}"
    yield f"{name}_count{labels and braced} {counts[-1]:.0f}"


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
