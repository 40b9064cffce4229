"""The runner: every stack once, whatever happens to the others."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.paper.runner import run
from accord.paper.stacks import Record, RecordStore, Stack, cells_of
from accord.paper.study import Group, Protocol, StudyModel

DATASETS = ("boston", "wine", "yacht", "energy")
PROTOCOL = Protocol("standard", DATASETS, splits=2, quick_splits=1)
GROUP = Group("made-up", "g", PROTOCOL, (StudyModel("M", "r", "", {}),))
STACKS = [Stack(GROUP, dataset, (0, 1), "code") for dataset in DATASETS]
WINE = STACKS[1].label


def records_of(stack: Stack, store: RecordStore) -> None:
    for _, _, cell in cells_of(stack):
        store.put(cell, Record(cell.source, stack.dataset, cell.split, {"nll": 1.0}))


def wine_is_off(stack: Stack, store: RecordStore) -> None:
    if stack.dataset == "wine":
        raise ValueError("corked")
    records_of(stack, store)


def killed_once(stack: Stack, store: RecordStore) -> None:
    marker = store.folder / "killed"
    if stack.dataset == "wine" and not marker.exists():
        store.folder.mkdir(parents=True, exist_ok=True)
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    records_of(stack, store)


def killed_always(stack: Stack, store: RecordStore) -> None:
    if stack.dataset == "wine":
        os.kill(os.getpid(), signal.SIGKILL)
    records_of(stack, store)


def run_with(work: Callable[[Stack, RecordStore], None], folder: Path, jobs: int) -> dict[str, str]:
    return run(STACKS, folder, jobs=jobs, work=work)


def recorded(folder: Path) -> list[str]:
    """Datasets whose records are all there."""
    store = RecordStore(folder)
    whole = [stack for stack in STACKS if all(store.get(cell) for *_, cell in cells_of(stack))]
    return sorted(stack.dataset for stack in whole)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_stack_is_run_and_recorded(jobs: int, tmp_path: Path) -> None:
    assert run_with(records_of, tmp_path, jobs) == {}
    assert recorded(tmp_path) == sorted(DATASETS)


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_failure_does_not_stop_the_others(jobs: int, tmp_path: Path) -> None:
    assert run_with(wine_is_off, tmp_path, jobs) == {WINE: "ValueError: corked"}
    assert recorded(tmp_path) == ["boston", "energy", "yacht"]


def test_a_lost_worker_is_replaced_and_its_stack_tried_again(tmp_path: Path) -> None:
    assert run_with(killed_once, tmp_path, 2) == {}
    assert recorded(tmp_path) == sorted(DATASETS)


def test_a_stack_that_always_loses_its_worker_is_reported(tmp_path: Path) -> None:
    failed = run_with(killed_always, tmp_path, 2)
    assert list(failed) == [WINE]
    assert "enough memory" in failed[WINE]
    assert recorded(tmp_path) == ["boston", "energy", "yacht"]


def test_it_says_how_far_it_is(tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    run(
        STACKS,
        tmp_path,
        jobs=1,
        work=records_of,
        progress=lambda share, what="": seen.append((share, what)),
    )
    shares, words = zip(*seen, strict=True)
    assert list(shares) == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == pytest.approx(1.0)
    assert f"1/4  {WINE}" in words


def test_no_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="jobs must be at least 1, got 0"):
        run_with(records_of, tmp_path, 0)


# A job in the background of a shell starts with Ctrl-C ignored; the program is one in front.
PROGRAM = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
import test_runner as t
from accord.paper.runner import run

def slow(stack, store):
    (store.folder / (stack.dataset + ".pid")).write_text(str(__import__("os").getpid()))
    if stack.dataset in ("boston", "wine"):
        t.records_of(stack, store)
        return
    time.sleep(120)

if __name__ == "__main__":
    run(t.STACKS, Path({folder!r}), jobs=2, work=slow)
"""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_run_leaves_no_process_and_whole_records(
    how: signal.Signals, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"  # a file, which the workers read too
    program.write_text(PROGRAM.format(tests=str(Path(__file__).parent), folder=str(tmp_path)))
    process = subprocess.Popen(
        [sys.executable, str(program)], stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        workers = started_workers(tmp_path)
        process.send_signal(how)
        process.wait(timeout=60)
        until = time.monotonic() + 60
        while any(is_running(worker) for worker in workers):
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    assert recorded(tmp_path) == ["boston", "wine"]


def started_workers(folder: Path) -> list[int]:
    """Process numbers of the two workers, once both are at their long stacks."""
    notes = [folder / "yacht.pid", folder / "energy.pid"]
    until = time.monotonic() + 300  # two processes start, on a machine that may be busy
    while not all(note.exists() and note.read_text() for note in notes):
        assert time.monotonic() < until
        time.sleep(0.05)
    return [int(note.read_text()) for note in notes]
