"""A portfolio fit on 1 and 2 workers of a Dask cluster, what moves, and what more workers would do.

    python benchmarks/cluster.py                 # 1,000 rows
    python benchmarks/cluster.py --rows 20000 --workers 4

First the fit runs in this process, unit by unit: processor seconds of each, of what stays with the
client, and the bytes that a cluster would move. Then it runs on 1 and on more workers, and times,
processor seconds and bits are compared: whatever else the machine does, the units should take the
workers about as many processor seconds as they take here. What the clock says is worth something
only if two workers get two processors, so that is measured, too. From these constants follows a
model of the time on up to 100 workers, which is compared with the measured times:

    T(W) = client + round trip · units + table · ⌈log₂(W + 1)⌉ / bandwidth + results / bandwidth
           + longest worker's recipes + longest worker's shifted models
"""

import argparse
import heapq
import math
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np

from accord.portfolio import PortfolioRegressor
from accord.work import connected, workers_of

COUNTS = (1, 2, 4, 8, 16, 100)


class Measured:
    """Workers in this process that write down what units cost."""

    count, in_process = 1, False  # as on a cluster: the dearest recipe first, no epochs told

    def __init__(self) -> None:
        self.stages: list[list[float]] = []  # processor seconds of each unit
        self.shared = self.sent = self.returned = 0

    def share(self, value: Any) -> Any:
        self.shared += _size(value)
        return value

    def run(
        self, unit: Callable[..., Any], calls: Iterable[tuple[Any, ...]], *, ahead: Any = None
    ) -> Iterator[tuple[int, Any, None]]:
        stage: list[float] = []
        self.stages.append(stage)
        for number, arguments in enumerate(calls):
            start = time.process_time()
            value = unit(*arguments)
            stage.append(time.process_time() - start)
            own = [a for a in arguments if not isinstance(a, tuple | list)]  # not what is shared
            self.sent, self.returned = self.sent + _size(own), self.returned + _size(value)
            yield number, value, None


def _size(value: Any) -> int:
    return len(pickle.dumps(value, protocol=5))


def longest(stage: list[float], workers: int) -> float:
    """The time until the last unit is done, if each goes to the first worker that is free."""
    free = [0.0] * workers
    for seconds in stage:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def nothing() -> None:
    """The smallest unit."""


def busy(seconds: float) -> float:
    """The share of a processor that this process gets while it computes."""
    start, own = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        pass
    return (time.process_time() - own) / (time.perf_counter() - start)


def processors(client: Any, count: int) -> float:
    """How many processors all workers get together: beside other work, not more than one may."""
    return float(sum(share for _, share, _ in workers_of(client).run(busy, [(3.0,)] * count)))


def processor_seconds(client: Any) -> float:
    return float(sum(client.run(time.process_time).values()))


def fitted(X: Any, y: Any, client: Any = None) -> tuple[PortfolioRegressor, float]:
    start = time.perf_counter()
    model = PortfolioRegressor(random_state=0).fit(X, y, client=client)
    return model, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--bandwidth", type=float, default=100e6, help="bytes per second")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(given.rows, 10))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=given.rows)

    measured = Measured()
    start = time.process_time()
    workers = "accord.portfolio.regressor.local_workers"
    with patch(workers, lambda *given, **more: nullcontext(measured)):
        here, _ = fitted(X, y)
    units = [seconds for stage in measured.stages for seconds in stage]
    client_seconds = time.process_time() - start - sum(units)
    print(
        f"{given.rows} rows x 10: {len(units)} units, {sum(units):.1f} s of one processor; ", end=""
    )
    print(f"the client's own work {client_seconds:.2f} s")
    for name, stage in zip(("recipes", "shifted"), measured.stages, strict=False):
        print(f"  {name}: " + " ".join(f"{seconds:.1f}" for seconds in stage))
    megabytes = [size / 1e6 for size in (measured.shared, measured.sent, measured.returned)]
    print(
        "  moved, MB: table {:.2f} per worker, calls {:.2f}, results {:.2f}".format(*megabytes),
        flush=True,
    )

    seconds, trip = {}, 0.0
    for count in (1, given.workers):
        with connected(workers=count) as client:
            for _ in range(2):  # the first round imports
                start = time.perf_counter()
                list(workers_of(client).run(nothing, [()] * 20))
                trip = (time.perf_counter() - start) / 20
            got, before = processors(client, count), processor_seconds(client)
            model, seconds[count] = fitted(X, y, client)
            taken = processor_seconds(client) - before
            same = np.array_equal(model.predict_interval(X), here.predict_interval(X))
            print(f"{count} workers: {seconds[count]:.1f} s, ", end="")
            print(f"{taken:.1f} s of their processors, the same bits: {same}; ", end="")
            print(f"before, they got {got:.2f} processors, at a load of {os.getloadavg()[0]:.1f}")
    print(f"speed-up {seconds[1] / seconds[given.workers]:.2f}; round trip {1e3 * trip:.1f} ms")

    moved = measured.sent + measured.returned
    print("model: workers, seconds, speed-up")
    one = 0.0
    for count in COUNTS:
        broadcast = measured.shared * math.ceil(math.log2(count + 1))
        total = client_seconds + trip * len(units) + (moved + broadcast) / given.bandwidth
        total += sum(longest(stage, count) for stage in measured.stages)
        one = one or total
        print(f"  {count:4d} {total:7.1f} {one / total:5.2f}")


if __name__ == "__main__":
    main()
