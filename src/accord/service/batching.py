"""One thread that answers all questions which have gathered since it last looked."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from accord.service.limits import Limits, busy, stopping

Q = TypeVar("Q", bound=Sized)
A = TypeVar("A")


@dataclass(frozen=True)
class _Waiting(Generic[Q, A]):
    question: Q
    future: asyncio.Future[A]
    loop: asyncio.AbstractEventLoop
    since: float


@final
class Batcher(Generic[Q, A]):
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
        work: Callable[[Sequence[Q]], Sequence[A | Exception]],
        limits: Limits,
        *,
        watch: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._work, self._limits, self._watch = work, limits, watch
        self._waiting: deque[_Waiting[Q, A]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self.waiting_rows = 0
        self._thread = threading.Thread(target=self._run, name="predictions", daemon=True)
        self._thread.start()

    async def ask(self, question: Q) -> A:
        """The answer, once its batch has been computed."""
        loop = asyncio.get_running_loop()
        item = _Waiting[Q, A](question, loop.create_future(), loop, time.monotonic())
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

    def _answers(self, questions: Sequence[Q]) -> Sequence[A | Exception]:
        try:
            return self._work(questions)
        except Exception as error:  # whatever it is, the thread must live on
            return [error] * len(questions)

    def _next(self) -> list[_Waiting[Q, A]]:
        """The next batch; empty once the batcher is closed and nothing waits."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            while self._waiting and not self._closing and (left := self._left()) > 0:
                self._changed.wait(left)
            batch: list[_Waiting[Q, A]] = []
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

    def _deliver(self, batch: Sequence[_Waiting[Q, A]], answers: Sequence[A | Exception]) -> None:
        """Hand over the answers, one wake-up per event loop: waking it up is what costs."""
        for loop in {id(item.loop): item.loop for item in batch}.values():
            own = [pair for pair in zip(batch, answers, strict=True) if pair[0].loop is loop]
            try:
                loop.call_soon_threadsafe(_hand_over, own)
            except RuntimeError:  # the loop was closed: nobody waits any more
                continue


def _hand_over(pairs: Sequence[tuple[_Waiting[Q, A], A | Exception]]) -> None:
    for item, answer in pairs:
        if item.future.done():  # cancelled: the client's time was up
            continue
        if isinstance(answer, Exception):
            item.future.set_exception(answer)
        else:
            item.future.set_result(answer)
