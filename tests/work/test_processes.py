"""Processes of this machine do what this process would do."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from accord import PortfolioRegressor
from accord.portfolio import units
from accord.work import InProcess, Processes, Workers, local_workers


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with Processes(2, "accord.work") as workers:
        yield workers


def inverse(value: float) -> float:
    return 1 / value


def threads() -> int:
    return torch.get_num_threads()


def ended() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_script(folder: Path, script: str, module: str) -> str:
    """What a script prints; its processes import the module ``imported_by_workers``."""
    (folder / "imported_by_workers.py").write_text(module)
    (folder / "script.py").write_text(script)
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def outcomes(workers: Workers) -> list[tuple[int, float | None, str]]:
    found = workers.run(inverse, [(4.0,), (0.0,), (2.0,)])
    return sorted((number, value, type(error).__name__) for number, value, error in found)


def test_values_and_errors_are_those_of_this_process(processes: Processes) -> None:
    assert outcomes(processes) == outcomes(InProcess())


def test_each_has_one_thread(processes: Processes) -> None:
    assert [value for _, value, _ in processes.run(threads, [()] * 4)] == [1] * 4


def test_calls_are_taken_when_somebody_is_free(processes: Processes) -> None:
    taken: list[int] = []

    def calls() -> Iterator[tuple[float]]:
        for number in range(6):
            taken.append(number)
            yield (1.0,)

    for done, _ in enumerate(processes.run(inverse, calls()), 1):
        assert len(taken) <= done + processes.count


_STARTED = """
from accord.work import Processes
if __name__ == "__main__":
    for _ in range(2):
        with Processes(1, "imported_by_workers") as workers:
            list(workers.run(pow, [(2, 3)]))
"""


@pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(), reason="has no fork server"
)
def test_the_module_is_imported_once_for_all(tmp_path: Path) -> None:
    assert run_script(tmp_path, _STARTED, "print('imported', flush=True)") == "imported"


_IMPORTING = """
import time
from pathlib import Path
late = time.monotonic() + 60
while not Path("entered").exists() and time.monotonic() < late:
    time.sleep(0.01)
ENTERED = Path("entered").exists()
def entered():
    return ENTERED
"""
_ENTERING = """
from pathlib import Path
from accord.work import Processes
if __name__ == "__main__":
    with Processes(1, "imported_by_workers") as workers:
        Path("entered").touch()
        import imported_by_workers
        print(list(workers.run(imported_by_workers.entered, [()])))
"""


def test_who_asks_goes_on_while_the_module_is_imported(tmp_path: Path) -> None:
    assert run_script(tmp_path, _ENTERING, _IMPORTING) == "[(0, True, None)]"


def test_a_process_that_is_lost_is_named() -> None:
    """Also to who asks for the next units: a fit has several rounds of them."""
    with Processes(1, "accord.work") as workers:
        for unit in (ended, threads):
            with pytest.raises(MemoryError, match="one was ended from outside"):
                list(workers.run(unit, [()]))


def test_they_end_with_the_block() -> None:
    before = set(multiprocessing.active_children())
    with Processes(2, "accord.work") as workers:
        list(workers.run(inverse, [(1.0,), (2.0,)]))
        own = set(multiprocessing.active_children()) - before
    for process in own:
        process.join(30)
    assert len(own) == 2
    assert not any(process.is_alive() for process in own)


_WAITING = """
import multiprocessing, time
from accord.work import Processes
if __name__ == "__main__":
    with Processes(1, "accord.work") as workers:
        list(workers.run(pow, [(2, 3)]))
        print(multiprocessing.active_children()[0].pid, flush=True)
        time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_they_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(_WAITING)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None
        worker = int(waiting.stdout.readline())
        waiting.kill()
    ended = time.monotonic() + 60
    while _lives(worker) and time.monotonic() < ended:
        time.sleep(0.1)
    assert not _lives(worker)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(("n_jobs", "kind"), [(None, InProcess), (1, InProcess), (2, Processes)])
def test_n_jobs(n_jobs: int | None, kind: type) -> None:
    with local_workers(None, n_jobs, module="accord.work") as workers:
        assert isinstance(workers, kind)


def test_a_portfolio_is_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(units._PROCESS_ROWS, "quick", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    one, other = (
        PortfolioRegressor(effort="quick", n_jobs=n_jobs, random_state=0).fit(X, y)
        for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert [e.nll for e in one.leaderboard_] == [e.nll for e in other.leaderboard_]
