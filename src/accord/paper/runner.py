"""Runs stacks on several cores; what is done stays done, whatever happens next.

A listener receives what is done, what is at work, and how long it will still take.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from accord._checks import check_count
from accord._files import write_whole
from accord._progress import say, shown, silent
from accord._wording import duration
from accord.paper.records import RecordStore
from accord.work import Processes, Workers, workers_of

if TYPE_CHECKING:
    from distributed import Client

    from accord.paper.stacks import Outcome, Stack


_LOST = "its process was ended from outside, twice. Is there enough memory? Try fewer jobs."

Work = Callable[["Stack", RecordStore], "Outcome"]
Arguments = tuple[Any, ...]


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

    Stacks count by their estimated costs; the time left is corrected by how long those done so far
    have really taken.
    """

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._bar = shown(True) if self._is_terminal else silent
        self._total = self._spent = self._done_cost = 0.0
        self._n = self._n_done = 0
        self._jobs = 1
        self._at_work: dict[str, None] = {}  # ordered; a stack tried again is there once

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar(1.0)  # also after an error

    def planned(self, stacks: list["Stack"], *, done: int, jobs: int) -> None:
        self._total, self._n, self._jobs = sum(s.cost for s in stacks), len(stacks), jobs
        again = f", {done} done before" if done else ""
        self.said(f"{self._n} stacks of networks to train{again}, {jobs} at a time.")
        self._show()

    def started(self, stack: "Stack") -> None:
        self._at_work[stack.label] = None
        self._show()

    def finished(self, stack: "Stack", *, seconds: float, networks: int) -> None:
        self._spent += seconds
        self._close(stack)
        if not self._is_terminal:
            self.said(
                f"[{self._n_done}/{self._n}] {stack.label}: {networks} networks in "
                f"{duration(seconds)}, {self._left()}"
            )

    def failed(self, stack: "Stack", reason: str) -> None:
        self._close(stack)
        self.said(f"{stack.label} failed: {reason}")

    def said(self, message: str) -> None:
        say(message)

    def _close(self, stack: "Stack") -> None:
        self._n_done += 1
        self._done_cost += stack.cost
        self._at_work.pop(stack.label, None)
        self._show()

    def _show(self) -> None:
        share = self._done_cost / self._total if self._total else 1.0
        self._bar(share, f"{self._n_done}/{self._n}  {', '.join(self._at_work)}")

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
    left = _Ledger(stacks, listener)
    if client is not None:
        for stack, (outcome, files) in left.done_by(
            workers_of(client), _with_records, lambda stack: (work, stack)
        ):
            for name, content in files.items():
                write_whole(folder / name, content)
            left.finish(stack, outcome)
    store, n_workers = RecordStore(folder), min(jobs, len(stacks))
    while left.waiting:
        # A pool that lost a worker is of no use any more, and the next round has a new one. The
        # stacks that went down with it are tried again alone, since only one of them is to blame.
        for stack in _lost_with_pool(left, n_workers, work, store):
            alone = _Ledger([stack], listener)
            if _lost_with_pool(alone, 1, work, store):
                alone.fail(stack, _LOST)
            left.failed += alone.failed
    return left.failed


class _Ledger:
    """Which stacks wait, which are at work, and which have failed."""

    def __init__(self, stacks: Sequence["Stack"], listener: Listener) -> None:
        self.waiting, self.listener = list(stacks), listener
        self.at_work: dict[int, Stack] = {}
        self.failed: list[Stack] = []

    def done_by(
        self, workers: Workers, unit: Callable[..., Any], arguments: "Callable[[Stack], Arguments]"
    ) -> Iterator[tuple["Stack", Any]]:
        """Hand out all that waits; the stacks that gave no error, with what they gave."""
        for number, value, error in workers.run(unit, self._calls(arguments)):
            stack = self.at_work.pop(number)
            if error is None:
                yield stack, value
            else:
                self.fail(stack, f"{type(error).__name__}: {error}")

    def _calls(self, arguments: "Callable[[Stack], Arguments]") -> Iterator[Arguments]:
        for number in count():
            if not self.waiting:
                return
            stack = self.at_work[number] = self.waiting.pop(0)
            self.listener.started(stack)
            yield arguments(stack)

    def finish(self, stack: "Stack", outcome: "Outcome") -> None:
        self.listener.finished(stack, seconds=outcome.seconds, networks=outcome.networks)

    def fail(self, stack: "Stack", reason: str) -> None:
        self.failed.append(stack)
        self.listener.failed(stack, reason)


def _with_records(work: Work, stack: "Stack") -> tuple["Outcome", dict[str, bytes]]:
    """A stack on another machine: its outcome, and its records as files."""
    with tempfile.TemporaryDirectory() as name:
        store = RecordStore(Path(name))
        outcome = work(stack, store)
        files = {str(path.relative_to(name)): path.read_bytes() for path in store.paths()}
    return outcome, files


def _lost_with_pool(left: _Ledger, jobs: int, work: Work, store: RecordStore) -> list["Stack"]:
    """Run stacks until none waits or a worker dies; those that were at work then."""
    with Processes(jobs, "accord.paper.stacks") as workers:
        try:
            for stack, outcome in left.done_by(workers, work, lambda stack: (stack, store)):
                left.finish(stack, outcome)
        except MemoryError:  # a worker was ended from outside
            lost = list(left.at_work.values())
            left.at_work.clear()
            return lost
    return []
