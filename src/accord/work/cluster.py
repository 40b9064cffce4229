"""Units of work on a Dask cluster: on this machine's processors, or on many machines."""

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, final

from accord._code import code_digest
from accord._files import OptionError
from accord._wording import quoted

if TYPE_CHECKING:
    from distributed import Client, Future

# How often a unit is sent again when what it needs went down with a worker.
_TRIES = 4
_WAIT_SECONDS, _CLOSE_SECONDS = 60, 10
_LOST_REASONS = ("scheduler-connection-lost", "scheduler-restart")


Unit = Callable[..., Any]
Calls = Iterable[tuple[Any, ...]]
# Of each call its number, and its value or its error.
Outcomes = Iterator[tuple[int, Any, Exception | None]]


class LostSchedulerError(ConnectionError):
    """The scheduler of a cluster that does not answer any more."""


class _OtherCodeError(RuntimeError):
    """A worker whose results would not be those of this process."""


@final
class OnCluster:
    """The workers of a Dask client.

    A worker that is lost costs the units that it was at: Dask gives them to another one. Each unit
    has one thread, so that the order of a sum, and so its last digit, is the same everywhere.
    """

    in_process = False

    def __init__(self, client: "Client") -> None:
        self.client = client
        self.address = str(getattr(client.scheduler, "address", ""))

    @property
    def count(self) -> int:
        try:
            return max(1, int(sum(self.client.nthreads().values())))
        except (OSError, ValueError, RuntimeError) as error:  # a client that was closed
            raise self._lost() from error

    def share(self, value: Any) -> Any:
        return _Shared(value, self.client)

    def run(self, unit: Unit, calls: Calls, *, ahead: int | None = None) -> Outcomes:
        from distributed import as_completed

        waiting = enumerate(calls)
        at_work: dict[Future, _Sent] = {}
        ended = as_completed(loop=self.client.loop)

        def send(sent: _Sent) -> None:
            future = self._submit(unit, sent)
            at_work[future] = sent
            ended.add(future)

        more = True
        try:
            while more or at_work:
                count = self.count if more else 0
                numbers = [sent.number for sent in at_work.values()]
                while more and len(numbers) < count and is_near(numbers, ahead):
                    call = next(waiting, None)
                    more = call is not None
                    if call is not None:
                        send(_Sent(*call))
                        numbers.append(call[0])
                if not at_work:
                    continue
                future = next(ended)
                sent = at_work.pop(future)
                outcome = self._outcome(sent, future)
                if outcome is None:
                    self._renew(sent, future)
                    send(sent)
                else:
                    yield outcome
        finally:
            # who stops listening does not leave work behind
            if at_work and self.client.status == "running":
                self.client.cancel(list(at_work))

    def _submit(self, unit: Unit, sent: "_Sent") -> "Future":
        try:
            arguments = [
                argument.future() if isinstance(argument, _Shared) else argument
                for argument in sent.arguments
            ]
            with warnings.catch_warnings():
                # what only one unit needs goes with its call, however large
                warnings.filterwarnings("ignore", "Sending large graph")
                return self.client.submit(_alone, code_digest(), unit, *arguments, pure=False)
        except (OSError, RuntimeError, AttributeError) as error:
            raise self._lost() from error

    def _renew(self, sent: "_Sent", future: "Future") -> None:
        """Make a unit ready to be sent again that was lost with what it needs."""
        reason = getattr(future.exception(), "reason", "")
        sent.tries += 1
        if reason in _LOST_REASONS or self.client.status != "running" or sent.tries >= _TRIES:
            raise self._lost()
        for argument in sent.arguments:
            if isinstance(argument, _Shared):
                argument.renew()

    def _outcome(self, sent: "_Sent", future: "Future") -> tuple[int, Any, Exception | None] | None:
        """Number, value and error of a unit; None if it was lost with what it needs."""
        from distributed import CancelledError, KilledWorker

        try:
            error = future.exception()
            value = future.result() if error is None else None
        except CancelledError:
            return None
        except OSError as broken:
            raise self._lost() from broken
        if isinstance(error, CancelledError):
            return None
        if isinstance(error, _OtherCodeError):
            raise OptionError(str(error))
        if isinstance(error, KilledWorker):
            error = MemoryError(
                "the workers that had this unit were ended from outside, one after the other. "
                "Is there enough memory? Use fewer workers per machine."
            )
        return sent.number, value, error

    def _lost(self) -> LostSchedulerError:
        where = f" at {self.address}" if self.address else ""
        return LostSchedulerError(
            f"the scheduler{where} must be there until the work is done, but does not answer any "
            "more. Start it again and repeat the same call: what was kept is not done again."
        )


class _Sent:
    """A call that was handed to the cluster, and how often."""

    def __init__(self, number: int, arguments: tuple[Any, ...]) -> None:
        self.number, self.arguments, self.tries = number, arguments, 0


class _Shared:
    """A value that is sent to every worker once, when the first unit needs it."""

    def __init__(self, value: Any, client: "Client") -> None:
        self.value, self.client = value, client
        self._future: Future | None = None

    def future(self) -> "Future":
        for tried in range(1, _TRIES + 1):
            if self._future is not None:
                break
            try:
                self._future = self.client.scatter(self.value, broadcast=True, hash=False)
            except OSError:  # a worker was lost while it received
                if tried == _TRIES or self.client.status != "running":
                    raise
                time.sleep(tried)  # Dask may start another one
        return self._future

    def renew(self) -> None:
        """Send it again if no worker has it any more."""
        if self._future is not None and self._future.status != "finished":
            self._future = None


def is_near(numbers: Sequence[int], ahead: int | None) -> bool:
    """Whether a further unit is not too far after the first unfinished one, of those at work."""
    return ahead is None or not numbers or max(numbers) - min(numbers) < ahead


def _alone(code: str, unit: Unit, *arguments: Any) -> Any:
    """A unit on a worker: with the code of the process that asks, and one thread."""
    import torch

    from accord._processes import keep_freed_memory, one_thread

    if code_digest() != code:
        raise _OtherCodeError(
            "workers must have the accord and the numerical libraries of this process, got others. "
            "Install the same versions everywhere."
        )
    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_thread():
            return unit(*arguments)
    finally:
        torch.set_num_threads(before)


@contextmanager
def connected(
    *, scheduler: str | None = None, workers: int | None = None
) -> Iterator["Client | None"]:
    """A client of the scheduler at an address, or of processes on this machine; None for neither.

    Args:
        scheduler: For instance ``"tcp://10.0.0.5:8786"``.
        workers: Processes of one thread each, which end with the block.
    """
    if scheduler is None and workers is None:
        yield None
        return
    if scheduler is not None and workers is not None:
        raise OptionError(
            f"workers are either those of a scheduler or new ones, got {quoted(scheduler)} and "
            f"{workers}. Give one of --scheduler and --workers."
        )
    try:
        from distributed import Client
    except ImportError:
        raise OptionError(
            "work on several processes or machines needs Dask, which is not installed. "
            "Run: pip install 'accord[distributed]'"
        ) from None
    with ExitStack() as ends, _without_logs():
        address = scheduler if scheduler is not None else ends.enter_context(_processes(workers))
        try:
            client = Client(address, timeout=_WAIT_SECONDS, set_as_default=False)
            ends.callback(_closed, client)
            client.wait_for_workers(1, timeout=_WAIT_SECONDS)
        except (OSError, ValueError) as error:
            raise OptionError(
                f"a Dask scheduler with workers must answer at {quoted(scheduler)}, got "
                f"{type(error).__name__}. Start 'dask scheduler' and 'dask worker', or use "
                "--workers."
            ) from None
        yield client


@contextmanager
def _processes(count: int | None) -> Iterator[Any]:
    from distributed import LocalCluster

    cluster = LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",  # any port: several commands may run at a time
        memory_limit=0,  # a table is needed whole: there is nothing to move to the disk
        silence_logs=logging.CRITICAL,
    )
    try:
        yield cluster
    finally:
        _closed(cluster)


def _closed(what: Any) -> None:
    """Close a client or a cluster; who is slow to close takes nothing from what was done."""
    with suppress(OSError):  # a timeout is one, too
        what.close(timeout=_CLOSE_SECONDS)


@contextmanager
def _without_logs() -> Iterator[None]:
    """Dask's log says in tracebacks what errors of this package say in words."""
    logs = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
