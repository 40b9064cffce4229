"""How many threads to compute with: as many as the work is worth, and the process may have.

A small product is done before a second thread has started, and threads that wait for each other
keep their processor busy: beside other work on the machine, a fit took ten times its time.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

from accord._processes import available

# Multiplications in one operation from which a second thread pays, and more by its multiples.
_WORTH_A_THREAD = 2**24


def _after_fork() -> None:
    """One thread in a forked child: OpenMP waits for ever for threads that only its parent has."""
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def one_thread(*, when: bool = True) -> Iterator[None]:
    """Let the numerical libraries compute with one thread where work is small; restored afterwards.

    For scikit-learn's trees and LAPACK on small matrices, which start all threads they may have.
    """
    with threadpool_limits(limits=1 if when else None):
        yield


@contextmanager
def threads_for(multiplications: float) -> Iterator[None]:
    """Compute with as many threads as operations of this size are worth; restored afterwards.

    Never with more than torch was set to.

    >>> with threads_for(100):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    worth = max(1, int(multiplications / _WORTH_A_THREAD) + 1)
    torch.set_num_threads(1 if worth == 1 else max(1, min(before, available(), worth)))
    try:
        yield
    finally:
        torch.set_num_threads(before)
