"""Runs stacks on several cores; what is done stays done, whatever happens next.

A listener receives what is done, what is at work, and how long it will still take.
"""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from accord._checks import check_count
from accord._files import write_whole
from accord._wording import duration
from accord.paper.records import RecordStore
from accord.work import workers_of

if TYPE_CHECKING:
    from distributed import Client

    from accord.paper.stacks import Outcome, Stack

__all__ = ["Listener", "Silent", "TerminalProgress", "run"]

_LOST = "its process was ended from outside, twice. Is there enough memory? Try fewer jobs."
# One thread each: the order of a sum, and so its last digit, must not depend on the cores.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Work = Callable[["Stack", RecordStore], "Outcome"]


class Listener(Protocol):
    """Receives what a run does."""

    def planned(self, stacks: list["Stack"], *, done: int, jobs: int) -> None:
        """Before the first stack: those to do, and how many were done in earlier runs."""

    def started(self, stack: "Stack") -> None:
        """A stack is handed to a worker."""

    def finished(self, stack: "Stack", *, seconds: float, networks: int) -> None:
        """A stack's records are on disk."""

    def failed(self, stack: "Stack", reason: str) -> None:
        """A stack gave an error; the others go on."""

    def said(self, message: str) -> None:
        """Something for the user to read."""


class Silent:
    """Says nothing."""

    def planned(self, stacks: list["Stack"], *, done: int, jobs: int) -> None: ...
    def started(self, stack: "Stack") -> None: ...
    def finished(self, stack: "Stack", *, seconds: float, networks: int) -> None: ...
    def failed(self, stack: "Stack", reason: str) -> None: ...
    def said(self, message: str) -> None: ...


class TerminalProgress:
    """A bar with the time left on a terminal; a line per stack elsewhere.

    The time left comes from the stacks' estimated costs, corrected by how long those done so far
    have really taken.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task("", total=1.0, count="", left="", start=False)
        self._total = self._spent = self._done_cost = 0.0
        self._n = self._n_done = 0
        self._jobs = 1
        self._at_work: dict[str, None] = {}  # ordered; a stack tried again is there once

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def planned(self, stacks: list["Stack"], *, done: int, jobs: int) -> None:
        self._total, self._n, self._jobs = sum(s.cost for s in stacks), len(stacks), jobs
        again = f", {done} done before" if done else ""
        self.said(f"{self._n} stacks of networks to train{again}, {jobs} at a time.")
        self._bar.start_task(self._task)
        self._show()

    def started(self, stack: "Stack") -> None:
        self._at_work[stack.label] = None
        self._show()

    def finished(self, stack: "Stack", *, seconds: float, networks: int) -> None:
        self._spent += seconds
        self._close(stack)
        if not self.console.is_terminal:
            self.said(
                f"[{self._n_done}/{self._n}] {stack.label}: {networks} networks in "
                f"{duration(seconds)}, {self._left()}"
            )

    def failed(self, stack: "Stack", reason: str) -> None:
        self._close(stack)
        self.said(f"{stack.label} failed: {reason}")

    def said(self, message: str) -> None:
        self.console.print(message, highlight=False, markup=False, soft_wrap=True)

    def _close(self, stack: "Stack") -> None:
        self._n_done += 1
        self._done_cost += stack.cost
        self._at_work.pop(stack.label, None)
        self._show()

    def _show(self) -> None:
        self._bar.update(
            self._task,
            description=", ".join(self._at_work) or "…",
            completed=self._done_cost,
            total=self._total or 1.0,
            count=f"{self._n_done}/{self._n}",
            left=self._left(),
        )

    def _left(self) -> str:
        # One stack's worth of trust in the estimates, so that the first one done does not swing it.
        prior = self._total / max(self._n, 1)
        pace = (self._spent + prior) / (self._done_cost + prior) if prior else 1.0
        seconds = (self._total - self._done_cost) * pace / self._jobs
        about = seconds if seconds < 60 else 60 * round(seconds / 60)
        return f"about {duration(about)} left" if self._n_done < self._n else "done"


def run(
    stacks: Sequence["Stack"],
    folder: Path,
    *,
    jobs: int,
    listener: Listener,
    work: Work | None = None,
    client: "Client | None" = None,
) -> list["Stack"]:
    """Run all stacks, ``jobs`` at a time, each on one thread; returns those that failed.

    With a Dask ``client`` its workers run them, and need no disk in common: their records come back
    and are written here.

    Interrupted by Ctrl-C, the workers are stopped and their stacks are lost; all others are on
    disk, and the next run goes on from there. A single job has a process of its own, too, where
    Ctrl-C cannot pass for the end of training.
    """
    check_count("jobs", jobs)
    if work is None:
        from accord.paper.stacks import run_stack  # lazy: it brings torch

        work = run_stack
    failed: list[Stack] = []
    if client is not None:
        return _run_on_cluster(stacks, folder, listener, work, client)
    waiting, workers = list(stacks), min(jobs, len(stacks))
    while waiting:
        # A pool that lost a worker is of no use any more, and the next round has a new one. The
        # stacks that went down with it are tried again alone, since only one of them is to blame.
        for stack in _run_pool(waiting, folder, workers, listener, work, failed):
            if _run_pool([stack], folder, 1, listener, work, failed):
                failed.append(stack)
                listener.failed(stack, _LOST)
    return failed


def _run_on_cluster(
    stacks: Sequence["Stack"], folder: Path, listener: Listener, work: Work, client: "Client"
) -> list["Stack"]:
    failed: list[Stack] = []

    def calls() -> Iterator[tuple[Work, "Stack"]]:
        for stack in stacks:
            listener.started(stack)
            yield work, stack

    for number, found, error in workers_of(client).run(_with_records, calls()):
        stack = stacks[number]
        if error is not None:
            failed.append(stack)
            listener.failed(stack, f"{type(error).__name__}: {error}")
            continue
        outcome, files = found
        for name, content in files.items():
            write_whole(folder / name, content)
        listener.finished(stack, seconds=outcome.seconds, networks=outcome.networks)
    return failed


def _with_records(work: Work, stack: "Stack") -> tuple["Outcome", dict[str, bytes]]:
    """A stack on another machine: its outcome, and its records as files."""
    with tempfile.TemporaryDirectory() as name:
        store = RecordStore(Path(name))
        outcome = work(stack, store)
        files = {str(path.relative_to(name)): path.read_bytes() for path in store.paths()}
    return outcome, files


def _run_pool(
    waiting: list["Stack"],
    folder: Path,
    jobs: int,
    listener: Listener,
    work: Work,
    failed: list["Stack"],
) -> list["Stack"]:
    """Take stacks from ``waiting`` until it is empty or a worker dies; the stacks lost with it."""
    from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor

    pool = ProcessPoolExecutor(
        max_workers=jobs,
        initializer=_prepare,
        initargs=(os.getpid(),),
        env=dict.fromkeys(_THREADS, "1"),
    )
    at_work: dict[Future[Outcome], Stack] = {}
    lost: list[Stack] = []
    with ExitStack() as cleanup:
        cleanup.callback(pool.shutdown, wait=True, kill_workers=True)
        while at_work or (waiting and not lost):
            while waiting and not lost and len(at_work) < jobs:
                stack = waiting.pop(0)
                at_work[pool.submit(work, stack, RecordStore(folder))] = stack
                listener.started(stack)
            for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                stack, error = at_work.pop(future), future.exception()
                if error is None:
                    outcome = future.result()
                    listener.finished(stack, seconds=outcome.seconds, networks=outcome.networks)
                elif isinstance(error, BrokenProcessPool):
                    lost.append(stack)
                else:
                    failed.append(stack)
                    listener.failed(stack, f"{type(error).__name__}: {error}")
    return lost


def _prepare(parent: int) -> None:
    """A worker leaves Ctrl-C to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
