"""How many processors there are, and where processes that train come from.

Nothing heavy is imported here: the command asks before anything else is loaded.
"""

import math
import multiprocessing
import os
from multiprocessing.context import BaseContext
from pathlib import Path


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


def start_server(module: str) -> None:
    """Let the server, where there is one, import ``module`` while this process does so itself."""
    if server_of(module).get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        ensure_running()
