"""Guarded CatBoost and linear regression: coverage and NLL, beside CatBoost's own uncertainty.

    ACCORD_DATA=… python benchmarks/guard.py --kept guard.jsonl

Each set is split at random and by unusualness (the outermost tenth is held out); of many rows a
random sample is trained on, and one is asked about. Printed per split: the coverage of 90 %
intervals and the mean NLL of the guarded models, and the same of CatBoost with
``RMSEWithUncertainty``, a normal distribution per row. Splits that the file of ``--kept`` has are
not run again, and the table that ends the run is made of all of them. CatBoost is not a dependency
of the package.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from catboost import CatBoostRegressor
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import accord
from accord.paper.sets import DEVELOPMENT, table
from accord.splits import outlier_split

UCI = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
LEVEL = 0.9


def split_rows(x: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if kind == "outliers":
        return outlier_split(x, fraction=0.1, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(x))
    return order[len(x) // 10 :], order[: len(x) // 10]


def catboost(**settings: Any) -> CatBoostRegressor:
    return CatBoostRegressor(
        iterations=200, verbose=False, allow_writing_files=False, thread_count=1, **settings
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


METHODS: dict[str, Any] = {
    "CatBoost alone": own_uncertainty,
    "guarded CatBoost": lambda *rows: guarded(catboost(random_seed=0), *rows),
    "guarded line": lambda *rows: guarded(
        make_pipeline(StandardScaler(), LinearRegression()), *rows
    ),
}


def measured(name: str, kind: str, seed: int, most: int) -> dict[str, Any]:
    """Every method on one split of one set."""
    x, y = table(name)
    some = np.random.default_rng(0).permutation(len(y))[: 10 * most]
    x, y = x[some], y[some]
    random = np.random.default_rng(seed)
    train, test = (random.permutation(rows)[:most] for rows in split_rows(x, kind, seed))
    start = time.process_time()
    found = {method: run(x[train], y[train], x[test], y[test]) for method, run in METHODS.items()}
    return {
        "set": name,
        "split": kind,
        "seed": seed,
        "rows": len(test),
        "found": found,
        "seconds": round(time.process_time() - start),
    }


def line(record: dict[str, Any]) -> str:
    found = "  ".join(f"{100 * c:8.1f} % {nll:7.3f}" for c, nll in record["found"].values())
    return f"{record['set']:12} {record['split']:9} {record['rows']:5}  {found}"


def summary(records: list[dict[str, Any]]) -> list[str]:
    """For each kind of split and method: rows covered, sets from 88 to 93 %, sets ahead in NLL."""
    lines = []
    for kind in ("random", "outliers"):
        own = [record for record in records if record["split"] == kind]
        rows = np.array([record["rows"] for record in own])
        alone = np.array([record["found"]["CatBoost alone"][1] for record in own])
        for method in METHODS:
            cover, nll = np.array([record["found"][method] for record in own]).T
            within = np.sum((cover >= 0.88) & (cover <= 0.93))
            lines.append(
                f"{kind:9} {method:17} {100 * rows @ cover / rows.sum():5.1f} % of {rows.sum()} "
                f"rows, {within} of {len(own)} splits within 88-93 %, "
                f"{100 * cover.min():.0f}-{100 * cover.max():.0f} %; mean NLL {nll.mean():.2f}, "
                f"better than CatBoost alone on {np.sum(nll < alone)}"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=UCI + DEVELOPMENT)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--most", type=int, default=1_000, help="rows trained on, and asked about, at most"
    )
    parser.add_argument(
        "--kept", type=Path, required=True, help="a file of finished splits, to go on from"
    )
    arguments = parser.parse_args()
    kept = arguments.kept.read_text().splitlines() if arguments.kept.exists() else []
    records = [json.loads(text) for text in kept]
    done = {(record["set"], record["split"], record["seed"]) for record in records}
    print("set          split      rows  " + "  ".join(f"{name:>18}" for name in METHODS))
    for name, kind, seed in product(arguments.sets, ("random", "outliers"), range(arguments.seeds)):
        if (name, kind, seed) not in done:
            records.append(measured(name, kind, seed, arguments.most))
            with arguments.kept.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
    print("\n".join([*map(line, records), *summary(records)]))


if __name__ == "__main__":
    main()
