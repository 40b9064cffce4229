"""Runs stacks on several cores; what is done stays done, whatever happens next."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from pathlib import Path

from accord.experiments.plan import Outcome, Stack
from accord.experiments.progress import Listener
from accord.experiments.records import RecordStore

__all__ = ["run"]

_LOST = "its process was ended from outside, twice. Is there enough memory? Try fewer jobs."
# One thread each: the order of a sum, and so its last digit, must not depend on the cores.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Work = Callable[[Stack, RecordStore], Outcome]


def run(
    stacks: Sequence[Stack],
    folder: Path,
    *,
    jobs: int,
    listener: Listener,
    work: Work | None = None,
) -> list[Stack]:
    """Run all stacks, ``jobs`` at a time, each on one thread; returns those that failed.

    Interrupted by Ctrl-C, the workers are stopped and their stacks are lost; all others are on
    disk, and the next run goes on from there. A single job has a process of its own, too, where
    Ctrl-C cannot pass for the end of training.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}.")
    if work is None:
        from accord.experiments.stacks import run_stack  # lazy: it brings torch

        work = run_stack
    failed: list[Stack] = []
    waiting, workers = list(stacks), min(jobs, len(stacks))
    while waiting:
        # A pool that lost a worker is of no use any more, and the next round has a new one. The
        # stacks that went down with it are tried again alone, since only one of them is to blame.
        for stack in _run_pool(waiting, folder, workers, listener, work, failed):
            if _run_pool([stack], folder, 1, listener, work, failed):
                failed.append(stack)
                listener.failed(stack, _LOST)
    return failed


def _run_pool(
    waiting: list[Stack],
    folder: Path,
    jobs: int,
    listener: Listener,
    work: Work,
    failed: list[Stack],
) -> list[Stack]:
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
