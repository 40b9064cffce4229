"""A fit beside other work on the machine: CPU seconds, as a ratio to those without it.

Threads that wait for each other in a loop keep their processor busy; the ratio shows whether they
do. Run it on a machine that does nothing else.

    python benchmarks/load.py              # ratios, by busy processes per core
"""

import multiprocessing
import os
import time

import numpy as np

from accord import PortfolioRegressor

ROWS, COLUMNS = 362, 8
BUSY_PER_CORE = (0, 1, 2)


def busy() -> None:
    while True:
        pass


def cpu_seconds(n_busy: int) -> float:
    """User and system time of a fit beside so many processes that never wait."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS))
    y = x[:, 0] + 0.3 * rng.normal(size=ROWS)
    others = [multiprocessing.get_context("spawn").Process(target=busy) for _ in range(n_busy)]
    for other in others:
        other.start()
    try:
        start = time.process_time()
        PortfolioRegressor(effort="quick", random_state=0).fit(x, y)
        return time.process_time() - start
    finally:
        for other in others:
            other.terminate()


def main() -> None:
    cores = os.cpu_count() or 1
    alone = cpu_seconds(0)  # the first fit also pays for imports
    for per_core in BUSY_PER_CORE:
        seconds = cpu_seconds(per_core * cores)
        alone = seconds if per_core == 0 else alone
        print(f"{per_core} per core: {seconds:6.1f} CPU-s, ratio {seconds / alone:.2f}")


if __name__ == "__main__":
    main()
