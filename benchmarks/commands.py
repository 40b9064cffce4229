"""What the commands cost from start to end, alone and beside other work.

    python benchmarks/commands.py                       # 362 rows, 11,600 rows; a minute or two
    python benchmarks/commands.py --rows 200000 --columns 10 --effort standard

Each command runs as a process of its own. Printed are its wall time, its processor time and its
peak memory. "Beside" is the same fit while every processor is kept busy by something else: threads
that wait for each other would show as processor time, so the ratio must stay near 1.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

ALLOWED_RATIO = 1.3
BUSY = "while True: pass"


class Cost(NamedTuple):
    """Seconds on the wall and on processors, and peak memory in megabytes."""

    wall: float
    processor: float
    peak: float

    def __str__(self) -> str:
        return f"{self.wall:8.1f} s  {self.processor:8.1f} s  {self.peak:8.0f} MB"


def table(n: int, columns: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    x = random.normal(size=(n, columns))
    frame = pd.DataFrame(x, columns=[f"x{place}" for place in range(columns)])
    noise = 0.3 * random.normal(size=n) * (1 + 0.5 * np.tanh(x[:, 3]))
    frame["y"] = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + noise
    return frame


def cost(*arguments: str) -> Cost:
    """What a command takes, all its threads together."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", *arguments], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"accord {arguments[0]} ended with {process.returncode}")
    wall = time.perf_counter() - start
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def beside_busy_processes(*arguments: str) -> Cost:
    """The same while as many processes as there are processors do nothing but compute."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        return cost(*arguments)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def measured(folder: Path, n: int, columns: int, effort: str) -> None:
    rows, model = folder / "rows.parquet", folder / "model.skops"
    table(n, columns).to_parquet(rows)
    fit = ("fit", str(rows), "-t", "y", "-o", str(model), "--no-report", "-q", "-f")
    alone = cost(*fit, "--effort", effort)
    print(f"fit, {effort}, {n:>9,} × {columns:<4} {alone}", flush=True)
    one = folder / "one.csv"
    table(1, columns).drop(columns="y").to_csv(one, index=False)
    out = str(folder / "out.csv")
    print(f"predict one row{'':>19}{cost('predict', str(model), str(one), '-o', out, '-q', '-f')}")


def loaded_ratio(folder: Path) -> None:
    rows = folder / "rows.parquet"
    table(362, 8).to_parquet(rows)
    model = str(folder / "model.skops")
    fit = ("fit", str(rows), "-t", "y", "-o", model, "--no-report", "-q", "-f")
    arguments = (*fit, "--effort", "quick")
    alone, beside = cost(*arguments), beside_busy_processes(*arguments)
    ratio = beside.processor / alone.processor
    kept = "kept" if ratio <= ALLOWED_RATIO else "BROKEN"
    print(f"processor time beside busy processes / alone: {ratio:.2f} ({ALLOWED_RATIO}: {kept})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[362, 11_600])
    parser.add_argument("--columns", type=int, default=18)
    parser.add_argument("--effort", default="quick", choices=["quick", "standard", "best"])
    given = parser.parse_args()
    print(f"{'':>34}{'wall':>10}  {'processor':>10}  {'peak':>11}")
    with tempfile.TemporaryDirectory() as name:
        for n in given.rows:
            measured(Path(name), n, given.columns, given.effort)
        loaded_ratio(Path(name))


if __name__ == "__main__":
    main()
