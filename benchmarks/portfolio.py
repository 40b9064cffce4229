"""Accord's default beside its peers on random, outlying, middle and outer rows of 17 tables.

    ACCORD_DATA=… python benchmarks/portfolio.py [--only METHOD …] [--sets …] [--splits N]

Each (set, kind of split, number of the split, method) is one JSON record in the folder
``--records``; records that are there are not made again, so that an interrupted run goes on where
it was. Delete a method's records to measure it again. Every method is given the same rows in their
own units; a method that fails is reported and left without a record. Seconds are of the processor,
so that other work on the machine does not count. Then the tables are printed, in Markdown.
"""

import argparse
import json
import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student_t

from accord import PortfolioRegressor
from accord.datasets import load
from accord.distributions import Distribution
from accord.metrics import crps
from accord.splits import Split, gap_split, outlier_split, standard_splits, tail_split
from peers import COVERAGES, PEERS, Floats, Method
from portfolio_tables import page

# Smallest first, so that an interrupted run has most of the table.
PUBLISHED = ("yacht", "boston", "energy", "concrete", "wine", "kin8nm", "power", "naval", "protein")
SETS = (
    *("servo", "autos", "yacht", "boston", "energy", "concrete", "solar", "airfoil", "wine"),
    *("skillcraft", "kin8nm", "pumadyn32nm", "power", "naval", "elevators"),
    *("protein", "tamielectric"),
)
KINDS = ("standard", "outlier", "gap", "tail")


def accord_method(seed: int) -> Method:
    """What a user of Accord gets who chooses nothing."""
    return PortfolioRegressor(random_state=seed)


METHODS: dict[str, Callable[[int], Method]] = {"accord": accord_method, **PEERS}


class Run(NamedTuple):
    """One method on one split."""

    dataset: str
    kind: str
    split: int
    method: str

    def path(self, folder: Path) -> Path:
        return folder / f"{self.dataset}-{self.kind}-{self.split}-{self.method}.json"


@cache
def table(dataset: str) -> tuple[Floats, Floats]:
    """Features and targets of one of the nine sets or of a development set."""
    if dataset in PUBLISHED:
        data = load(dataset)
        return np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float)
    folder = os.environ.get("ACCORD_DATA")
    if folder is None:
        raise SystemExit("ACCORD_DATA must name the folder of the data, got nothing. Set it first.")
    rows = np.loadtxt(Path(folder, "development", f"{dataset}.csv.gz"), delimiter=",")
    return rows[:, :-1], rows[:, -1]


def split_rows(X: Floats, kind: str, split: int) -> Split:
    """Train and test rows; a gap or a tail is one of the feature with the next most values."""
    if kind == "standard":
        return standard_splits(len(X), split + 1)[split]
    if kind == "outlier":
        return outlier_split(X, random_state=split)
    # In a feature with few values a gap or a tail would cut through equal rows.
    n_values = np.array([len(np.unique(column)) for column in X.T])
    by_values = np.argsort(-n_values, kind="stable")[: np.count_nonzero(n_values > 1)]
    feature = int(by_values[split % len(by_values)])
    if kind == "gap":
        return gap_split(X, feature=feature)
    return tail_split(X, feature=feature, side="both")


def measure(run: Run) -> dict[str, Any]:
    """The record of a run: what it was, how well it did, how long it took."""
    X, y = table(run.dataset)
    train, test = split_rows(X, run.kind, run.split)
    model = METHODS[run.method](run.split)
    started = time.process_time()
    model.fit(X[train], y[train])
    fitted = time.process_time()
    dist = model.predict_dist(X[test]) if hasattr(model, "predict_dist") else None
    mean = np.asarray(model.predict(X[test]) if dist is None else dist.mean)
    intervals = [np.asarray(model.predict_interval(X[test], c)) for c in COVERAGES]
    answered = time.process_time()
    center, sigma = float(y[train].mean()), float(y[train].std())
    return {
        **run._asdict(),
        "n_train": len(train),
        "n_test": len(test),
        "n_features": X.shape[1],
        "sigma": sigma,
        **density_figures(dist, y[test], center, sigma),
        "rmse": float(np.sqrt(np.mean((mean - y[test]) ** 2))) / sigma,
        **interval_figures(intervals, y[test], sigma),
        "fit_seconds": fitted - started,
        "predict_seconds": answered - fitted,
    }


def density_figures(
    dist: Distribution | None, y: Floats, center: float, sigma: float
) -> dict[str, float | None]:
    """NLL in units of σ and its own, the worst row, and CRPS/σ; None without a density.

    ``below_floor`` counts the rows with less density than a Student-t with 3 degrees of freedom and
    10 times the training targets' spread.
    """
    names = ("nll", "nll_own_units", "largest_loss", "below_floor", "crps")
    if dist is None:
        return dict.fromkeys(names)
    loss = -np.asarray(dist.log_prob(y)) - np.log(sigma)
    floor = -student_t.logpdf((y - center) / sigma, 3, scale=10)
    values = (
        loss.mean(),
        loss.mean() + np.log(sigma),
        loss.max(),
        np.count_nonzero(~(loss <= floor)),
        crps(y_true=y, dist=dist) / sigma,
    )
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def interval_figures(intervals: Sequence[Floats], y: Floats, sigma: float) -> dict[str, float]:
    """Share of the targets inside, and mean width in units of σ, at each coverage."""
    figures = {}
    for nominal, (lower, upper) in zip(COVERAGES, (ends.T for ends in intervals), strict=True):
        figures[f"coverage_{round(100 * nominal)}"] = float(np.mean((lower <= y) & (y <= upper)))
        figures[f"width_{round(100 * nominal)}"] = float(np.mean(upper - lower)) / sigma
    return figures


def make(run: Run, folder: Path) -> None:
    """Write the record of a run unless it is there, whole or not at all."""
    path = run.path(folder)
    if path.exists():
        return
    try:
        record = measure(run)
    except Exception:  # the other methods' figures do not depend on this one
        print(f"{' '.join(map(str, run))}: failed\n{traceback.format_exc()}", flush=True)
        return
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(record, indent=1))
    unfinished.replace(path)
    nll = "–" if record["nll"] is None else f"{record['nll']:.3f}"
    print(f"{' '.join(map(str, run))}: NLL {nll}, {record['fit_seconds']:.1f} s", flush=True)


def runs(options: argparse.Namespace, methods: Sequence[str]) -> Iterator[Run]:
    for dataset in options.sets:
        for kind in options.kinds:
            for split in range(options.splits):
                for method in methods:
                    yield Run(dataset, kind, split, method)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, default=Path(".records/portfolio"))
    parser.add_argument("--only", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--splits", type=int, default=3, help="of each kind and set")
    parser.add_argument("--tables", action="store_true", help="only print what is recorded")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    options.records.mkdir(parents=True, exist_ok=True)
    for run in () if options.tables else runs(options, options.only):
        make(run, options.records)
    paths = (run.path(options.records) for run in runs(options, list(METHODS)))
    records = [json.loads(path.read_text()) for path in paths if path.exists()]
    print("\n".join(page(records, options.sets, options.kinds)))


if __name__ == "__main__":
    main()
