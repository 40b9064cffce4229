"""What the service does, behind HTTP: rows in, answers out, within limits, and counted.

Counts and times of all workers are in Prometheus' text format (version 0.0.4).
"""

import asyncio
import mmap
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal, final

import numpy as np

from accord._checks import check_count
from accord._types import Floats
from accord.service.bodies import BODY, BodyRows, ServiceAnswer
from accord.service.limits import Limits, Refused, busy, stopping, too_many_rows
from accord.service.model import ModelFile, Question, Served, explain, predict_together

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
# Explanations that may wait for the one that is being made.
_WAITING_EXPLANATIONS = 8


# --- counts and times ----------------------------------------------------------------------------


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


# --- batches -------------------------------------------------------------------------------------


Outcome = ServiceAnswer | Exception
Work = Callable[[Sequence[Question]], Sequence[Outcome]]


@dataclass(frozen=True)
class _Waiting:
    question: Question
    future: asyncio.Future[ServiceAnswer]
    since: float


@final
class Batcher:
    """Answers questions in batches, in the order in which they came.

    While a batch is computed, the next one gathers: the busier the service, the longer its batches
    and the cheaper each row. An idle service waits ``limits.gather_seconds`` for company.

    Args:
        work: From questions to as many answers; an exception in place of an answer is raised to
            whoever asked. It runs in the batcher's own thread.
        limits: Rows of a batch, rows that may wait, and for how long to gather.
        watch: Called after each batch with the number of its rows.
    """

    def __init__(
        self,
        work: Work,
        limits: Limits,
        *,
        watch: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._work, self._limits, self._watch = work, limits, watch
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self.waiting_rows = 0
        self._thread = threading.Thread(target=self._run, name="predictions", daemon=True)
        self._thread.start()

    async def ask(self, question: Question) -> ServiceAnswer:
        """The answer, once its batch has been computed."""
        future = asyncio.get_running_loop().create_future()
        item = _Waiting(question, future, time.monotonic())
        with self._changed:
            if self._closing:
                raise stopping()
            if self.waiting_rows + len(question) > self._limits.waiting_rows:
                raise busy()
            self._waiting.append(item)
            self.waiting_rows += len(question)
            self._changed.notify()
        return await item.future

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """Answer what has been asked, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next():
            asked = [item for item in batch if not item.future.cancelled()]
            if asked:
                self._deliver(asked, self._answers([item.question for item in asked]))
                self._watch(sum(len(item.question) for item in asked))

    def _answers(self, questions: Sequence[Question]) -> Sequence[Outcome]:
        try:
            return self._work(questions)
        except Exception as error:  # whatever it is, the thread must live on
            return [error] * len(questions)

    def _next(self) -> list[_Waiting]:
        """The next batch; empty once the batcher is closed and nothing waits."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            while self._waiting and not self._closing and (left := self._left()) > 0:
                self._changed.wait(left)
            batch: list[_Waiting] = []
            rows = 0
            while self._waiting:
                rows += len(self._waiting[0].question)
                if batch and rows > self._limits.batch_rows:
                    break
                batch.append(self._waiting.popleft())
            self.waiting_rows -= sum(len(item.question) for item in batch)
        return batch

    def _left(self) -> float:
        """Seconds for which it is worth to wait for more."""
        if self.waiting_rows >= self._limits.batch_rows:
            return 0.0
        return self._waiting[0].since + self._limits.gather_seconds - time.monotonic()

    def _deliver(self, batch: Sequence[_Waiting], answers: Sequence[Outcome]) -> None:
        """Hand over the answers, one wake-up per event loop: waking it up is what costs."""
        pairs = list(zip(batch, answers, strict=True))
        for loop in {item.future.get_loop() for item in batch}:
            own = [pair for pair in pairs if pair[0].future.get_loop() is loop]
            try:
                loop.call_soon_threadsafe(_hand_over, own)
            except RuntimeError:  # the loop was closed: nobody waits any more
                continue


def _hand_over(pairs: Sequence[tuple[_Waiting, Outcome]]) -> None:
    for item, answer in pairs:
        if item.future.done():  # cancelled: the client's time was up
            continue
        if isinstance(answer, Exception):
            item.future.set_exception(answer)
        else:
            item.future.set_result(answer)


# --- the service ---------------------------------------------------------------------------------


@final
class Service:
    """A model file that answers questions until it is closed.

    Args:
        path: A file that ``accord fit`` or :meth:`accord.TableRegressor.save` wrote.
        limits: What a request may cost.
        workers: Processes that will answer together, each with its share of the rows that may wait.
    """

    def __init__(self, path: str | Path, *, limits: Limits | None = None, workers: int = 1) -> None:
        check_count("workers", workers)
        limits = limits or Limits()
        self.limits = replace(limits, waiting_rows=max(1, limits.waiting_rows // workers))
        self.workers = workers
        self.file = ModelFile(Path(path))
        self.metrics = Metrics(workers)
        self._batcher: Batcher | None = None
        self._explainer: ThreadPoolExecutor | None = None
        self._explaining = 0

    @property
    def model(self) -> Served:
        """The model in use."""
        return self.file.current

    def open(self) -> None:
        """Start the threads that compute."""
        self._batcher = Batcher(predict_together, self.limits, watch=self._predicted)
        self._explainer = ThreadPoolExecutor(1, thread_name_prefix="explanations")
        self._note_state()

    def close(self) -> None:
        """Finish what has been asked, and refuse what is asked from now on."""
        batcher, explainer = self._batcher, self._explainer
        self._batcher = self._explainer = None
        if batcher is not None:
            batcher.close()
        if explainer is not None:
            explainer.shutdown()
        self._note_state()

    def reload(self) -> str:
        """Load the model's file again if it has changed; what was done, in a sentence."""
        message = self.file.reload()
        self._note_state()
        return message

    @property
    def is_ready(self) -> bool:
        """Whether rows can be predicted now."""
        return self._batcher is not None and self._batcher.alive

    async def predict(
        self, served: Served, rows: BodyRows, *, coverages: tuple[float, ...], strict: bool
    ) -> ServiceAnswer:
        """Predictions of all rows; many rows go piece by piece, so that others get their turn."""
        parts, size = [], self.limits.batch_rows
        for start in range(0, len(rows), size):
            piece = rows[start : start + size]
            question = Question(served, piece, coverages, strict, first_row=start + 1)
            parts.append(await self._asked().ask(question))
        answer = ServiceAnswer.joined(parts)
        answer.surprises.check(source=BODY)
        self.metrics.rows(predicted=len(rows), unusual=answer.n_unusual)
        return answer

    async def explain(self, question: Question, *, permutations: int) -> dict[str, Any]:
        """Receipts of the rows, in a thread of their own: predictions do not wait for them."""
        most = max(1, self.limits.explained_rows // max(1, permutations))
        if len(question) > most:
            raise too_many_rows(most, len(question))
        if self._explainer is None:
            raise _closed()
        if self._explaining > _WAITING_EXPLANATIONS:
            raise busy()
        self._explaining += 1
        work = self._explainer.submit(explain, question, permutations=permutations)
        loop = asyncio.get_running_loop()
        # what nobody waits for any more still takes its time, and counts until it is over
        work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._explained))
        found = await asyncio.wrap_future(work)
        self.metrics.rows(explained=len(question))
        return found

    def _explained(self) -> None:
        self._explaining -= 1

    def figures(self) -> str:
        """Counts, times and the state of all workers; of others, as of their last batch."""
        self._note_state()
        return self.metrics.text()

    def _predicted(self, rows: int) -> None:
        self.metrics.batch(rows)
        self._note_state()

    def _note_state(self) -> None:
        batcher = self._batcher
        self.metrics.now(
            {
                "waiting_rows": batcher.waiting_rows if batcher is not None else 0,
                "ready": self.is_ready,
                "model_loaded": self.model.loaded.timestamp(),
                "model_reloads": self.file.reloads,
                "model_reload_failed": bool(self.file.failure),
            }
        )

    def _asked(self) -> Batcher:
        if self._batcher is None:
            raise _closed()
        return self._batcher


def _closed() -> Refused:
    return Refused(503, "the service is not running. Try again in a moment.")
