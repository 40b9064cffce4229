"""Guarded CatBoost and linear regression: coverage and NLL, beside CatBoost's own uncertainty.

    ACCORD_DATA=… python benchmarks/guard.py --sets boston yacht airfoil --seeds 1

Each set is split at random and by unusualness (the outermost tenth is held out). Printed per split:
the coverage of 90 % intervals and the mean NLL of the guarded models, and the same of CatBoost with
``RMSEWithUncertainty``, a normal distribution per row. CatBoost is not a dependency of the package.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostRegressor
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import accord
from accord.datasets import load
from accord.splits import outlier_split

SMALL = ("boston", "concrete", "energy", "wine", "yacht", "airfoil", "autos", "servo")
LEVEL = 0.9


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets of one of the nine sets, or of a development set's numbers."""
    path = Path(os.environ["ACCORD_DATA"]) / "development" / f"{name}.csv.gz"
    if not path.exists():
        data = load(name)
        return np.asarray(data.X), np.asarray(data.y).ravel()
    table = pd.get_dummies(pd.read_csv(path, header=None)).to_numpy(dtype=float)
    return table[:, :-1], table[:, -1]


def split_rows(x: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if kind == "outliers":
        return outlier_split(x, fraction=0.1, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(x))
    return order[len(x) // 10 :], order[: len(x) // 10]


def catboost(**settings: Any) -> CatBoostRegressor:
    return CatBoostRegressor(
        iterations=500, verbose=False, allow_writing_files=False, thread_count=1, **settings
    )


def own_uncertainty(x: Any, y: Any, new: Any, truth: Any) -> tuple[float, float]:
    """Coverage and NLL of CatBoost's own normal distributions."""
    model = catboost(loss_function="RMSEWithUncertainty", random_seed=0).fit(x, y)
    mean, variance = model.predict(new).T
    dist = stats.norm(mean, np.sqrt(np.maximum(variance, 1e-12)))
    inside = np.abs(truth - mean) <= stats.norm.ppf((1 + LEVEL) / 2) * dist.std()
    return float(inside.mean()), float(-dist.logpdf(truth).mean())


def guarded(model: Any, x: Any, y: Any, new: Any, truth: Any) -> tuple[float, float]:
    """Coverage and NLL under the guard."""
    guard = accord.guard(model, random_state=0).fit(x, y)
    lower, upper = guard.predict_interval(new, LEVEL).T
    nll = -np.mean(np.asarray(guard.predict_dist(new).log_prob(truth)))
    return float(np.mean((lower <= truth) & (truth <= upper))), float(nll)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=SMALL)
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    methods: dict[str, Any] = {
        "CatBoost alone": own_uncertainty,
        "guarded CatBoost": lambda *rows: guarded(catboost(random_seed=0), *rows),
        "guarded line": lambda *rows: guarded(
            make_pipeline(StandardScaler(), LinearRegression()), *rows
        ),
    }
    print("set        split      rows  " + "  ".join(f"{name:>18}" for name in methods))
    for name in arguments.sets:
        x, y = rows_of(name)
        for kind in ("random", "outliers"):
            for seed in range(arguments.seeds):
                train, test = split_rows(x, kind, seed)
                start = time.perf_counter()
                found = [
                    method(x[train], y[train], x[test], y[test]) for method in methods.values()
                ]
                shown = "  ".join(f"{100 * c:8.1f} % {nll:7.3f}" for c, nll in found)
                seconds = time.perf_counter() - start
                print(f"{name:10} {kind:9} {len(test):5}  {shown}   {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
