"""Predict a Parquet file of millions of rows and print the peak memory.

    python benchmarks/predict_stream.py                # 5 million rows
    python benchmarks/predict_stream.py --rows 200000

A small model is fitted first; then ``accord predict`` runs as a process of its own, whose peak
resident memory and time are printed, for the whole file and for a tenth of it: memory must not
grow with the file.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

LIMIT_MB = 1024
ROW_GROUP = 1_000_000


def rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 8)), columns=[f"x{i}" for i in range(8)])
    frame["town"] = rng.choice(["a", "b", "c", "d"], n)
    return frame


def write(path: Path, n: int) -> None:
    """The file, one row group at a time, so that making it needs little memory as well."""
    schema = pa.Schema.from_pandas(rows(2, 0), preserve_index=False)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, ROW_GROUP):
            part = rows(min(ROW_GROUP, n - start), start)
            table = pa.Table.from_pandas(part, schema=schema, preserve_index=False)
            writer.write_table(table, row_group_size=ROW_GROUP)


def model(folder: Path) -> Path:
    from accord.workflows import fit_table

    frame = rows(1000, 1)
    noise = np.random.default_rng(2).normal(0, 0.3, len(frame))
    frame["y"] = frame["x0"] + np.sin(frame["x1"]) + (frame["town"] == "a") + noise
    path = folder / "model.accord"
    fit_table(frame, target="y", effort="quick").model.save(path)
    return path


def predict(model_file: Path, table: Path, out: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of the command."""
    start = time.perf_counter()
    code = (
        "import resource, sys; from accord.cli import application\n"
        "application(sys.argv[1:], standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    arguments = ["predict", str(model_file), str(table), "-o", str(out), "--force", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, int(done.stderr.split()[-1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    n = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model_file = model(folder)
        print(f"{'rows':>12} {'file':>9} {'time':>9} {'rows/s':>10} {'peak':>9}")
        for count in (n // 10, n):
            table = folder / "rows.parquet"
            write(table, count)
            seconds, peak = predict(model_file, table, folder / "out.parquet")
            size = table.stat().st_size / 2**20
            print(
                f"{count:>12,} {size:>6.0f} MB {seconds:>7.1f} s {count / seconds:>10,.0f} "
                f"{peak:>6.0f} MB"
            )
            assert pq.read_metadata(folder / "out.parquet").num_rows == count
        print(f"limit {LIMIT_MB} MB: {'kept' if peak <= LIMIT_MB else 'BROKEN'}")


if __name__ == "__main__":
    main()
