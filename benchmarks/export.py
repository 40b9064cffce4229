"""Rows per second of an exported model under onnxruntime, beside Python's own prediction.

    python benchmarks/export.py --rows 400 --batch 1 100 1000

A quick default model of the diabetes set is exported. Printed per batch size: rows per second of
onnxruntime (one thread) and of Python for the same answers (mean, deviation, three quantiles and
flags), and their ratio within the run. CPU time is measured, so that other work does not count.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import accord

LEVELS = [0.025, 0.5, 0.975]


def seconds(task: Callable[[], object], *, least: float = 1.0) -> float:
    """CPU seconds of one call, as the best of three means."""
    task()
    means = []
    for _ in range(3):
        start, calls = time.process_time(), 0
        while time.process_time() - start < least / 3:
            task()
            calls += 1
        means.append((time.process_time() - start) / calls)
    return min(means)


def session_of(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400, help="training rows")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 100, 1_000])
    parser.add_argument("--effort", default="quick")
    given = parser.parse_args()
    torch.set_num_threads(1)
    frame = accord.datasets.load("diabetes").frame
    model = accord.TableRegressor(effort=given.effort, random_state=0)
    model.fit(frame.head(given.rows), "progression")
    used = [entry["name"] for entry in model.card_.leaderboard if entry["weight"] > 0]
    print(f"blend: {', '.join(used)}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.export(path, levels=LEVELS)
        print(f"file: {path.stat().st_size / 2**20:.1f} MB")
        session = session_of(path)
        print(f"{'batch':>6} {'onnxruntime rows/s':>20} {'Python rows/s':>16} {'ratio':>7}")
        for batch in given.batch:
            rows = frame.sample(batch, replace=True, random_state=0).reset_index(drop=True)
            inputs, features = model.export_inputs(rows), model.features(rows)

            def in_python(features: np.ndarray = features) -> None:
                dist, _ = model.answer(features)
                np.asarray(dist.mean), np.asarray(dist.std), dist.quantile(LEVELS)

            fast = batch / seconds(lambda inputs=inputs: session.run(None, inputs))
            slow = batch / seconds(in_python)
            print(f"{batch:>6} {fast:>20,.0f} {slow:>16,.0f} {fast / slow:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
