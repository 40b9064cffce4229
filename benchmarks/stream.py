"""Train on a Parquet file that is larger than memory: time per row beside training in memory, RSS.

    python benchmarks/stream.py speed                    # seconds of one core per row and network
    python benchmarks/stream.py speed --rows 1000000
    python benchmarks/stream.py memory --rows 5000000    # accord fit, peak memory, all of its time

``speed`` trains networks of two recipes on the same rows, with the same batches: from a file that
is read, encoded, shuffled on disk and streamed, and as the portfolio trains them on rows in memory.
``memory`` runs ``accord fit --effort quick`` as a process of its own, on one thread.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS, ROW_GROUP, SAMPLE, EPOCHS = 20, 250_000, 100_000, 4
LIMIT_MB = 4096


def write(path: Path, n: int) -> None:
    """Rows of 20 numbers, one row group at a time, so that making them needs little memory."""
    writer = None
    for start in range(0, n, ROW_GROUP):
        rng = np.random.default_rng(start)
        x = rng.uniform(-1, 1, (COLUMNS, min(ROW_GROUP, n - start))).astype(np.float32)
        y = np.sin(4 * x[0] * x[1]) + x[2] * np.abs(x[3]) + x[4:].sum(axis=0) / 8
        y += 0.2 * (1 + x[0] ** 2) * rng.normal(size=x.shape[1]).astype(np.float32)
        table = pa.table({**{f"x{k}": own for k, own in enumerate(x)}, "y": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=ROW_GROUP)
    assert writer is not None
    writer.close()


def speed(folder: Path, n: int) -> None:
    import torch

    from accord._progress import silent
    from accord.portfolio.crossfit import TrainingTable
    from accord.portfolio.encoding import TargetScale
    from accord.portfolio.folds import held_out_parts
    from accord.portfolio.networks import NetworkModel
    from accord.portfolio.recipes import recipes_for
    from accord.portfolio.streamed import FoldedStream
    from accord.tables import prepare_training, read_table
    from accord.tabular.stream import SampledTable, all_rows

    torch.set_num_threads(1)
    path = folder / "rows.parquet"
    write(path, n)
    table = read_table(path, max_rows=SAMPLE)
    data = prepare_training(table, target="y")
    sample = SampledTable(table, data, {"target": "y"}, passes=1)
    x = sample.features
    rows = TrainingTable.of(x, data.y, np.ones(len(x)), {})
    parts = held_out_parts(x, data.y, rows.measured, seed=0)
    scale = TargetScale.of(data.y)
    begun = time.process_time()
    with all_rows(sample, None, silent) as (more, _):
        assert more is not None
        reading = (time.process_time() - begun) / n
        print(f"reading, encoding and shuffling: {1e6 * reading:.2f} µs per row")
        for recipe in recipes_for("quick", x, data.y):
            if recipe.name not in ("short", "mixture"):
                continue
            batch = more.batch_size(recipe)
            own = sum(len(part.train) for part in parts)
            steps = round(EPOCHS * own / len(parts) / batch)
            recipe = replace(recipe, steps=steps, largest_batch=batch)
            begun = time.process_time()
            trains = [part.train for part in parts]
            model = NetworkModel(recipe).fit(rows.scaled(scale), trains, seed=0, listener=None)
            inside = (time.process_time() - begun) / (EPOCHS * own)
            begun = time.process_time()
            stream = FoldedStream(more, rows, parts, scale, seed=0)
            model.further(recipe, stream, seed=0, listener=None)
            streamed = ((time.process_time() - begun) / n + reading) / len(parts)
            print(
                f"{recipe.name:>8}, batches of {batch}: {1e6 * inside:.2f} µs per row and network "
                f"in memory, {1e6 * streamed:.2f} streamed with all reading: "
                f"{inside / streamed:.2f} of the speed"
            )


def memory(folder: Path, n: int, options: list[str]) -> None:
    path = folder / "rows.parquet"
    write(path, n)
    code = (
        "import resource, sys; from accord.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)"
    )
    command = ["fit", str(path), "--target", "y", "--effort", "quick", "--no-report"]
    command += ["-o", str(folder / "model.accord"), "--threads", "1", *options]
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    print(done.stderr)
    used, kilobytes = done.stderr.split()[-2:]
    peak, size = int(kilobytes) / 1024, path.stat().st_size / 2**20
    print(f"{n:,} rows, {size:,.0f} MB: {float(used):.0f} s of processor time, peak {peak:.0f} MB")
    print(f"limit {LIMIT_MB} MB: {'kept' if peak <= LIMIT_MB else 'BROKEN'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "memory"])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--folder", type=Path, help="where files may be large")
    known, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory(dir=known.folder) as name:
        if known.what == "speed":
            speed(Path(name), known.rows)
        else:
            memory(Path(name), known.rows, options)


if __name__ == "__main__":
    main()
