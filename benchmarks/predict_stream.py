"""Predict a Parquet file of millions of rows: rows per second of one core, memory, and stages.

    python benchmarks/predict_stream.py                # 1 million rows by the default model
    python benchmarks/predict_stream.py --method bvm   # by an ensemble of five networks
    python benchmarks/predict_stream.py --rows 5000000 --effort quick --training-rows 1000
    python benchmarks/predict_stream.py --model model.accord --rows 200000

A model of ten columns is fitted first, unless one is given; then ``accord predict`` runs as a
process of its own, on one thread, for the whole file and for a tenth of it. Memory must not grow
with the file. The rate is that of the rows between the two: starting the command is not in it. The
shares of the stages are those of a further run under Python's profiler.
"""

import argparse
import cProfile
import os
import pstats
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
# Where the time goes: a stage is what these functions take, in these files.
STAGES = {
    "read": [("files.py", "_parquet_batches")],
    "conform and encode": [("conforming.py", "conform"), ("encoder.py", "transform")],
    "distance to the data": [("proximity.py", "distance")],
    "networks": [("stack.py", "raw_outputs")],
    "trees": [("boosting.py", "components")],
    "Gaussian processes": [("gaussian_process.py", "predict")],
    "intervals": [("distribution.py", "interval")],
    "write": [("files.py", "write")],
}


def rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 9)), columns=[f"x{i}" for i in range(9)])
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


def fitted(folder: Path, n: int, method: str, effort: str | None) -> Path:
    from accord.workflows import fit_table, table_model

    frame = rows(n, 1)
    noise = np.random.default_rng(2).normal(0, 0.3, len(frame))
    frame["y"] = frame["x0"] + np.sin(frame["x1"]) + frame["x2"] * frame["x3"] / 2
    frame["y"] += (frame["town"] == "a") + noise * (1 + np.abs(frame["x4"]) / 2)
    path = folder / "model.accord"
    fit_table(table_model(method, effort=effort), frame, "y").model.save(path)
    return path


def described(model_file: Path) -> str:
    import accord

    board = accord.load(model_file).leaderboard_
    used = board[board["weight"] > 0]
    return ", ".join(
        f"{name} {w:.0%}" for name, w in zip(used["name"], used["weight"], strict=True)
    )


def predict(model_file: Path, table: Path, out: Path) -> tuple[float, float]:
    """Processor seconds and peak megabytes of the command, on one thread."""
    code = (
        "import resource, sys; from accord.cli import main\n"
        "sys.argv[0] = 'accord'\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)"
    )
    arguments = ["predict", str(model_file), str(table), "-o", str(out), "--force", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    seconds, kilobytes = done.stderr.split()[-2:]
    return float(seconds), int(kilobytes) / 1024


def shares(model_file: Path, table: Path, out: Path) -> dict[str, float]:
    """Of the processor's time, by stage; what is left is the making of distributions, mostly."""
    import torch

    from accord.workflows import load_model, predict_table

    torch.set_num_threads(1)
    model = load_model(model_file)
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    predict_table(model, table, output=out, force=True)
    profile.disable()
    rows = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    took = {(Path(file).name, name): row[3] for (file, _, name), row in rows}
    total = took["predict.py", "predict_table"]
    found = {stage: sum(took.get(f, 0.0) for f in own) / total for stage, own in STAGES.items()}
    return {**found, "all else": 1 - sum(found.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--training-rows", type=int, default=20_000)
    parser.add_argument("--method", default="portfolio", help="as of accord fit")
    parser.add_argument("--effort", help="of the portfolio")
    parser.add_argument("--model", type=Path, help="a fitted model of these columns")
    options = parser.parse_args()
    n = options.rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model_file = options.model or fitted(
            folder, options.training_rows, options.method, options.effort
        )
        print(f"model: {described(model_file)}")
        print(f"{'rows':>12} {'file':>9} {'CPU':>9} {'peak':>9}")
        found = []
        for count in (n // 10, n):
            table = folder / f"{count}.parquet"
            write(table, count)
            seconds, peak = predict(model_file, table, folder / "out.parquet")
            found.append((count, seconds))
            size = table.stat().st_size / 2**20
            print(f"{count:>12,} {size:>6.0f} MB {seconds:>7.1f} s {peak:>6.0f} MB")
            assert pq.read_metadata(folder / "out.parquet").num_rows == count
        (few, short), (many, long) = found
        print(f"{(many - few) / (long - short):,.0f} rows per second of one core")
        print(f"limit {LIMIT_MB} MB: {'kept' if peak <= LIMIT_MB else 'BROKEN'}")
        stages = shares(model_file, folder / f"{many}.parquet", folder / "out.parquet")
        print("\n".join(f"{stage:>22} {share:6.1%}" for stage, share in stages.items()))


if __name__ == "__main__":
    main()
