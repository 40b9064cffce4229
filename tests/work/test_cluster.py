"""Units on a cluster of separate processes: the same bits, whoever is lost on the way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from accord._files import OptionError
from accord.paper.runner import run
from accord.paper.stacks import Record, RecordStore, Stack, cells_of
from accord.paper.study import Group, Protocol, StudyModel
from accord.portfolio import PortfolioRegressor
from accord.work import Checkpoint, InProcess, LostSchedulerError, carry_out, connected, workers_of
from accord.workflows import CompareResult, Method, compare_methods, predict_table

distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(60, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.normal(size=60)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with connected(workers=2) as client:
        yield client


def square(number: int, offset: Any = 0) -> int:
    if number == 3:
        raise ValueError("three")
    return number**2 + int(np.sum(offset))


def threads() -> tuple[int, int]:
    import torch

    return os.getpid(), torch.get_num_threads()


def pages() -> int:
    """Pages of memory that are asked for while 200 arrays of 512 pages each are made and freed."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        np.ones(2**18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def noted(number: int, table: Any, folder: str, seconds: float) -> int:
    """Leaves a file each time it is called."""
    Path(folder, f"{number}-{os.getpid()}-{time.time_ns()}").touch()
    time.sleep(seconds)
    return number + int(table[0])


def test_values_and_errors_are_those_of_this_process(client: Any) -> None:
    shared = np.arange(4)

    def found(workers: Any) -> list[tuple[int, Any, str]]:
        table = workers.share(shared)
        return sorted(
            (number, value, repr(error))
            for number, value, error in workers.run(square, [(n, table) for n in range(5)])
        )

    assert found(workers_of(client)) == found(InProcess())


def test_each_unit_has_one_thread_and_a_process_of_its_own(client: Any) -> None:
    found = [value for _, value, _ in workers_of(client).run(threads, [()] * 4)]
    assert {count for _, count in found} == {1}
    assert os.getpid() not in {process for process, _ in found}


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_memory_that_a_unit_has_freed_is_used_again(client: Any) -> None:
    found = [value for _, value, _ in workers_of(client).run(pages, [()] * 4)]
    assert max(found) < 20 * 512


def test_calls_are_taken_when_somebody_is_free(client: Any) -> None:
    taken = []

    def calls() -> Iterator[tuple[int]]:
        for number in (0, 1, 2, 4, 5, 6):
            taken.append(number)
            yield (number,)

    done = 0
    for _ in workers_of(client).run(square, calls(), ahead=2):
        done += 1
        assert len(taken) <= done + 2
    assert done == 6


def test_the_fit_is_that_of_this_process_to_the_bit(client: Any, tmp_path: Path) -> None:
    def fitted(**how: Any) -> PortfolioRegressor:
        return PortfolioRegressor(effort="quick", random_state=0).fit(X, Y, **how)

    shares: list[float] = []
    kept = Checkpoint(tmp_path)
    there = fitted(client=client, checkpoint=kept, progress=lambda s, what="": shares.append(s))
    here, again = fitted(), fitted(checkpoint=kept)
    expected = here.predict_interval(1.5 * X)
    assert np.array_equal(there.predict_interval(1.5 * X), expected)
    assert np.array_equal(again.predict_interval(1.5 * X), expected)
    assert kept.found == len(list(tmp_path.iterdir())) > 3
    names = [[entry.name for entry in model.leaderboard_] for model in (here, there)]
    assert names[0] == names[1]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_lost_worker_costs_its_own_units_only(client: Any, tmp_path: Path) -> None:
    workers = workers_of(client)
    table = workers.share(np.array([10]))
    units = workers.run(noted, [(n, table, str(tmp_path), 0.3) for n in range(8)])
    found = {next(units)[1] for _ in range(2)}
    victim = next(iter(client.run(os.getpid).values()))
    os.kill(victim, signal.SIGKILL)
    found |= {value for _, value, error in units if error is None}
    assert found == {10 + n for n in range(8)}
    # one unit at a time and worker: at most one was lost, and one that had just been handed over
    assert 8 <= len(list(tmp_path.iterdir())) <= 10


def test_shared_data_that_are_lost_are_sent_again(client: Any, tmp_path: Path) -> None:
    workers = workers_of(client)
    table = workers.share(np.array([10]))
    units = workers.run(noted, [(n, table, str(tmp_path), 0.3) for n in range(6)])
    found = {next(units)[1]}
    for process in client.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)
    found |= {value for _, value, error in units if error is None}
    assert found == {10 + n for n in range(6)}


def test_a_comparison_is_that_of_this_process(client: Any, houses: pd.DataFrame) -> None:
    def compared(**how: Any) -> CompareResult:
        failing = Method("failing", "never", _no_model)
        methods = ["mse-ensemble", failing, "deep-ensemble"]
        return compare_methods(houses.head(60), target="price", methods=methods, n_splits=1, **how)

    here, there = compared(), compared(client=client)
    assert [s.figures for s in there.scores] == [s.figures for s in here.scores]
    assert there.failures == here.failures == {"failing": "ValueError: no model"}


def _no_model(seed: int) -> Any:
    raise ValueError("no model")


def test_predictions_are_those_of_this_process(
    client: Any,
    model_file: Path,
    houses: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("accord.workflows.predict._BATCH_ROWS", 64)
    table = pd.concat([houses] * 3, ignore_index=True)
    table.to_csv(tmp_path / "table.csv", index=False)
    found = [
        predict_table(
            model_file,
            tmp_path / "table.csv",
            output=tmp_path / f"{name}.parquet",
            id_column="house",
            explain_row=300,
            client=how,
        )
        for name, how in (("here", None), ("there", client))
    ]
    one, other = ((tmp_path / f"{name}.parquet").read_bytes() for name in ("here", "there"))
    assert one == other
    assert found[0].receipt == found[1].receipt is not None
    assert found[0].n_unusual == found[1].n_unusual


def test_a_study_brings_its_records_home(client: Any, tmp_path: Path) -> None:
    protocol = Protocol("standard", ("boston", "wine"), splits=2, quick_splits=1)
    group = Group("made-up", "g", protocol, (StudyModel("M", "r", "", {}),))
    stacks = [Stack(group, dataset, (0, 1), "code") for dataset in ("boston", "wine")]
    failed = run(stacks, tmp_path, jobs=1, work=_recorded, client=client)
    assert failed == {stacks[1].label: "ValueError: corked"}
    store = RecordStore(tmp_path)
    assert all(store.get(cell) for _, _, cell in cells_of(stacks[0]))


def _recorded(stack: Stack, store: RecordStore) -> None:
    if stack.dataset == "wine":
        raise ValueError("corked")
    for _, _, cell in cells_of(stack):
        store.put(cell, Record(cell.source, stack.dataset, cell.split, {"nll": 1.0}))


def _started(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from dask.__main__ import main; main()", *words]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )


@pytest.fixture
def scheduler() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scheduler and a worker as users start them, and the address."""
    process = _started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    assert process.stderr is not None
    address = ""
    while not address:
        line = process.stderr.readline()
        assert line, "the scheduler ended"
        address = next((word for word in line.split() if word.startswith("tcp://")), "")
    worker = _started("worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    yield process, address
    for each in (worker, process):
        each.kill()
        each.communicate()


def test_a_lost_scheduler_is_named_and_leaves_what_was_kept(
    scheduler: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    process, address = scheduler
    kept, seen = Checkpoint(tmp_path / "kept"), tmp_path / "seen"
    seen.mkdir()
    keys = [str(number) for number in range(6)]

    def run(client: Any) -> Iterator[int]:
        workers = workers_of(client)
        table = workers.share(np.array([10]))
        for done in carry_out(
            noted,
            keys,
            lambda number: (number, table, str(seen), 0.3),
            workers=workers,
            checkpoint=kept,
            kind=int,
        ):
            yield done.value

    with connected(scheduler=address) as client:
        units = run(client)
        first = [next(units), next(units)]
        process.kill()
        with pytest.raises(LostSchedulerError, match=f"scheduler at {address} must be there"):
            list(units)
    assert first == [10, 11]
    before = len(list(seen.iterdir()))
    assert sorted(run(None)) == [10 + n for n in range(6)]
    assert len(list(seen.iterdir())) - before == 4


def test_what_cannot_be_is_refused() -> None:
    with (
        pytest.raises(OptionError, match="either those of a scheduler or new ones"),
        connected(scheduler="tcp://127.0.0.1:1", workers=2),
    ):
        pass
    with connected() as client:
        assert client is None
