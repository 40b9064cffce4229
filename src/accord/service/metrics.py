"""Counts and times of the service, in Prometheus' text format (version 0.0.4)."""

from bisect import bisect_left
from collections import Counter
from threading import Lock
from typing import final

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


@final
class Histogram:
    """How often values were at most each of some bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: str = "") -> list[str]:
        total, found = 0, []
        comma = "," if labels else ""
        for bound, n in zip([*self._bounds, "+Inf"], self._counts, strict=True):
            total += n
            found.append(f'{name}_bucket{{{labels}{comma}le="{bound}"}} {total}')
        braced = f"{{{labels}}}" if labels else ""
        return [*found, f"{name}_sum{braced} {self._sum:.6f}", f"{name}_count{braced} {total}"]


@final
class Metrics:
    """What is counted; paths are the service's own, so that no client can invent labels."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, Histogram] = {}
        self._batches = Histogram(_ROWS)
        self._rows: Counter[str] = Counter()

    def request(self, path: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[path, status] += 1
            self._seconds.setdefault(path, Histogram(_SECONDS)).add(seconds)

    def batch(self, rows: int) -> None:
        with self._lock:
            self._batches.add(rows)

    def rows(self, *, predicted: int = 0, unusual: int = 0, explained: int = 0) -> None:
        with self._lock:
            self._rows += Counter(predicted=predicted, unusual=unusual, explained=explained)

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """All figures; ``gauges`` map further names to a description and the value at hand."""
        with self._lock:
            lines = _head("accord_requests_total", "counter", "Requests answered.")
            lines += [
                f'accord_requests_total{{path="{path}",status="{status}"}} {n}'
                for (path, status), n in sorted(self._requests.items())
            ]
            lines += _head("accord_request_seconds", "histogram", "Time to the answer.")
            for path, histogram in sorted(self._seconds.items()):
                lines += histogram.lines("accord_request_seconds", f'path="{path}"')
            lines += _head("accord_batch_rows", "histogram", "Rows predicted together.")
            lines += self._batches.lines("accord_batch_rows")
            for sort in ("predicted", "unusual", "explained"):
                name = f"accord_rows_{sort}_total"
                lines += [*_head(name, "counter", f"Rows {sort}."), f"{name} {self._rows[sort]}"]
        for name, (about, value) in gauges.items():
            lines += [*_head(name, "gauge", about), f"{name} {float(value)!r}"]
        return "\n".join([*lines, ""])


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
