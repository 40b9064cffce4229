"""Runs stacks on several cores; what is done stays done, whatever happens next."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord._checks import check_count
from accord._files import write_whole
from accord._progress import Progress, silent
from accord.paper.stacks import RecordStore, Stack, run_stack
from accord.work import Processes, Workers, workers_of

if TYPE_CHECKING:
    from distributed import Client


_LOST = "its process was ended from outside, twice. Is there enough memory? Try fewer jobs."

Work = Callable[[Stack, RecordStore], None]
Arguments = tuple[Any, ...]


def run(
    stacks: Sequence[Stack],
    folder: Path,
    *,
    jobs: int,
    progress: Progress = silent,
    work: Work = run_stack,
    client: "Client | None" = None,
) -> dict[str, str]:
    """Run all stacks, ``jobs`` at a time, each on one thread; why some failed, by their labels.

    With a Dask ``client`` its workers run them, and need no disk in common: their records come back
    and are written here.

    Interrupted by Ctrl-C, the workers are stopped and their stacks are lost; all others are on
    disk, and the next run goes on from there. A single job has a process of its own, too, where
    Ctrl-C cannot pass for the end of training.
    """
    check_count("jobs", jobs)
    left = _Ledger(stacks, progress)
    if client is not None:
        for files in left.done_by(workers_of(client), _with_records, lambda stack: (work, stack)):
            for name, content in files.items():
                write_whole(folder / name, content)
    store, n_workers = RecordStore(folder), min(jobs, len(stacks))
    while left.waiting:
        # A pool that lost a worker is of no use any more, and the next round has a new one. The
        # stacks that went down with it are tried again alone, since only one of them is to blame.
        for stack in _lost_with_pool(left, n_workers, work, store):
            others, left.waiting = left.waiting, [stack]
            if _lost_with_pool(left, 1, work, store):
                left.close(stack, _LOST)
            left.waiting = others
    return left.failed


class _Ledger:
    """Which stacks wait, which are at work, and why some have failed; says how far all are.

    Stacks count by their estimated costs.
    """

    def __init__(self, stacks: Sequence[Stack], progress: Progress) -> None:
        self.waiting = list(stacks)
        self.at_work: dict[int, Stack] = {}
        self.failed: dict[str, str] = {}
        self._progress = progress
        self._n, self._total = len(stacks), sum(stack.cost for stack in stacks)
        self._n_done, self._done = 0, 0.0

    def done_by(
        self, workers: Workers, unit: Callable[..., Any], arguments: Callable[[Stack], Arguments]
    ) -> Iterator[Any]:
        """Hand out all that waits; what the stacks gave that ended without an error."""
        for number, value, error in workers.run(unit, self._calls(arguments)):
            stack = self.at_work.pop(number)
            if error is None:
                yield value
            self.close(stack, f"{type(error).__name__}: {error}" if error else "")

    def _calls(self, arguments: Callable[[Stack], Arguments]) -> Iterator[Arguments]:
        for number in count():
            if not self.waiting:
                return
            stack = self.at_work[number] = self.waiting.pop(0)
            labels = ", ".join(each.label for each in self.at_work.values())
            self._progress(self._done / self._total, f"{self._n_done}/{self._n}  {labels}")
            yield arguments(stack)

    def close(self, stack: Stack, failure: str = "") -> None:
        """A stack's records are on disk, or it has failed."""
        if failure:
            self.failed[stack.label] = failure
        self._n_done += 1
        self._done += stack.cost
        self._progress(self._done / self._total)


def _with_records(work: Work, stack: Stack) -> dict[str, bytes]:
    """A stack on another machine: its records as files."""
    with tempfile.TemporaryDirectory() as name:
        store = RecordStore(Path(name))
        work(stack, store)
        return {str(path.relative_to(name)): path.read_bytes() for path in store.paths()}


def _lost_with_pool(left: _Ledger, jobs: int, work: Work, store: RecordStore) -> list[Stack]:
    """Run stacks until none waits or a worker dies; those that were at work then."""
    with Processes(jobs, "accord.paper.stacks") as workers:
        try:
            for _ in left.done_by(workers, work, lambda stack: (stack, store)):
                pass  # its records are on disk
        except MemoryError:  # a worker was ended from outside
            lost = list(left.at_work.values())
            left.at_work.clear()
            return lost
    return []
