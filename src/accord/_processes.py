"""How many processors and threads to compute with, and where processes that train come from.

As many threads as the work is worth: a small product is done before a second thread has started,
and threads that wait for each other keep their processor busy: beside other work on the machine, a
fit took ten times its time. Nothing heavy is imported here before it is needed: the command asks
before anything else is loaded.
"""

import ctypes
import math
import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from pathlib import Path

# Multiplications in one operation from which a second thread pays, and more by its multiples.
_WORTH_A_THREAD = 2**24
# glibc's names for what of freed memory is given back: blocks of their own, and the end of a heap.
_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1
# What its own rule comes to by itself, at most.
_KEPT_BYTES = 32 << 20


def available() -> int:
    """Processors that this process may use: its affinity, and its share of the machine."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, math.ceil(min(count, _quota())))


def _quota() -> float:
    """Processors that the control group grants, infinite where it grants all."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return float(quota) / float(period)
    except (OSError, ValueError):  # no such limit: "max", or another system
        return math.inf


def server_of(module: str) -> BaseContext:
    """How processes are started: where possible by a fork server, which imports ``module`` once.

    A fork of this process would have its locks, but not the threads that hold them.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # the script, which the server loads anyway, and once for all processes
    context.set_forkserver_preload(["__main__", module])
    return context


def start_server(module: str) -> bool:
    """Let the server import ``module`` while this process goes on; whether there is a server."""
    if server_of(module).get_start_method() != "forkserver":
        return False
    from multiprocessing.forkserver import ensure_running

    ensure_running()
    return True


def _after_fork() -> None:
    """One thread in a forked child: OpenMP waits for ever for threads that only its parent has."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def keep_freed_memory() -> None:
    """Use memory again that was freed, where the system's C library can be told so.

    By itself, glibc learns to do so, slowly. In the workers of a Dask cluster it may not: these are
    told to give memory back at once, so that each step of a training asks for its pages anew, and
    takes up to twice its time.
    """
    if sys.platform == "linux":
        tell = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have no such thing
        if tell is not None:
            tell(_M_MMAP_THRESHOLD, _KEPT_BYTES)
            tell(_M_TRIM_THRESHOLD, 2 * _KEPT_BYTES)


@contextmanager
def one_thread(*, when: bool = True) -> Iterator[None]:
    """Let the numerical libraries compute with one thread where work is small; restored afterwards.

    For scikit-learn's trees and LAPACK on small matrices, which start all threads they may have.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1 if when else None):
        yield


@contextmanager
def threads_for(multiplications: float) -> Iterator[None]:
    """Compute with as many threads as operations of this size are worth; restored afterwards.

    Never with more than torch was set to.

    >>> import torch
    >>> with threads_for(100):
    ...     torch.get_num_threads()
    1
    """
    import torch

    before = torch.get_num_threads()
    worth = max(1, int(multiplications / _WORTH_A_THREAD) + 1)
    torch.set_num_threads(1 if worth == 1 else max(1, min(before, available(), worth)))
    try:
        yield
    finally:
        torch.set_num_threads(before)
