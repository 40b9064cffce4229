"""What the service does, apart from HTTP: rows in, answers out, within limits."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, final

from accord.service.answers import ServiceAnswer
from accord.service.batching import Batcher
from accord.service.bodies import BodyRows
from accord.service.explanations import explain
from accord.service.limits import Limits, Refused, busy, too_many_rows
from accord.service.metrics import Metrics
from accord.service.predictions import Question, predict_together
from accord.service.served import ModelFile, Served

# Explanations that may wait for the one that is being made.
_WAITING_EXPLANATIONS = 8


@final
class Service:
    """A model file that answers questions until it is closed.

    Args:
        path: A file that ``accord fit`` or :meth:`accord.TableRegressor.save` wrote.
        limits: What a request may cost.
    """

    def __init__(self, path: str | Path, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.file = ModelFile(Path(path))
        self.metrics = Metrics()
        self._batcher: Batcher[Question, ServiceAnswer] | None = None
        self._explainer: ThreadPoolExecutor | None = None
        self._explaining = 0

    @property
    def model(self) -> Served:
        """The model in use."""
        return self.file.current

    def open(self) -> None:
        """Start the threads that compute."""
        self._batcher = Batcher(predict_together, self.limits, watch=self.metrics.batch)
        self._explainer = ThreadPoolExecutor(1, thread_name_prefix="explanations")

    def close(self) -> None:
        """Finish what has been asked, and refuse what is asked from now on."""
        batcher, explainer = self._batcher, self._explainer
        self._batcher = self._explainer = None
        if batcher is not None:
            batcher.close()
        if explainer is not None:
            explainer.shutdown()

    @property
    def is_ready(self) -> bool:
        """Whether rows can be predicted now."""
        return self._batcher is not None and self._batcher.alive

    async def predict(
        self, served: Served, rows: BodyRows, *, coverages: tuple[float, ...], strict: bool
    ) -> ServiceAnswer:
        """Predictions of all rows; many rows go piece by piece, so that others get their turn."""
        parts, done = [], 0
        for piece in rows.pieces(self.limits.batch_rows):
            question = Question(served, piece, coverages, strict, first_row=done + 1)
            parts.append(await self._asked().ask(question))
            done += len(piece)
        answer = ServiceAnswer.joined(parts)
        self.metrics.rows(predicted=done, unusual=answer.n_unusual)
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

    def gauges(self) -> dict[str, tuple[str, float]]:
        """Figures of the moment."""
        waiting = self._batcher.waiting_rows if self._batcher is not None else 0
        return {
            "accord_waiting_rows": ("Rows that wait to be predicted.", waiting),
            "accord_ready": ("Whether rows can be predicted.", float(self.is_ready)),
            "accord_model_loaded_timestamp_seconds": (
                "When the model in use was loaded.",
                self.model.loaded.timestamp(),
            ),
            "accord_model_reloads": ("How often another model was loaded.", self.file.reloads),
            "accord_model_reload_failed": (
                "Whether the last changed file could not be loaded.",
                float(bool(self.file.failure)),
            ),
        }

    def _asked(self) -> Batcher[Question, ServiceAnswer]:
        if self._batcher is None:
            raise _closed()
        return self._batcher


def _closed() -> Refused:
    return Refused(503, "the service is not running. Try again in a moment.")
