"""The rivals on the standard splits, beside what was published.

    ACCORD_DATA=… python benchmarks/rivals.py --records rivals/

Each method's splits are trained as one stack; a finished method is recorded and not run again, so
that an interrupted run goes on where it was. Printed per set: RMSE and NLL with their standard
errors over the splits, the published figures, and the difference in combined standard errors.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accord.datasets import load
from accord.estimators import (
    DeepEnsembleRegressor,
    EvidentialRegressor,
    MCDropoutRegressor,
    MSEEnsembleRegressor,
    PBPRegressor,
    fit_together,
)
from accord.paper import MeanOverSplits, published, standard_errors_apart
from accord.splits import standard_splits

SETS = ("boston", "concrete", "energy", "wine", "yacht")

# Dropout rate, noise precision (in the targets' units) and length scale of MC dropout's public
# experiments, which were found by Bayesian optimisation; 400 epochs, batches of 32, 10,000 passes.
PUBLIC_DROPOUT = {
    "boston": (0.05, 0.1597, 0.01),
    "concrete": (0.01, 0.05573, 0.01),
    "energy": (0.05, 0.4271, 0.01),
    "wine": (0.05, 2.958, 0.01),
    "yacht": (0.01, 0.5419, 0.1),
}


def public_dropout(dataset: str, y: np.ndarray, seed: int) -> MCDropoutRegressor:
    rate, precision, length_scale = PUBLIC_DROPOUT[dataset]
    return MCDropoutRegressor(
        dropout_rate=rate,
        precision=precision * float(np.var(y)),
        length_scale=length_scale,
        n_passes=10_000,
        random_state=seed,
    )


# name -> (column of the paper, estimator for a split's training targets and seed)
METHODS: dict[str, tuple[str | None, Callable[[str, np.ndarray, int], Any]]] = {
    "PBP": ("PBP", lambda _, y, seed: PBPRegressor(random_state=seed)),
    "MC dropout, public settings": ("MC-dropout", public_dropout),
    "MC dropout, grid": (
        "MC-dropout",
        lambda _, y, seed: MCDropoutRegressor(n_passes=1000, random_state=seed),
    ),
    "Deep Ensembles": (
        "Deep Ensembles",
        lambda _, y, seed: DeepEnsembleRegressor(random_state=seed),
    ),
    "Deep Ensembles, adversarial": (
        "Deep Ensembles",
        lambda _, y, seed: DeepEnsembleRegressor(adversarial=True, random_state=seed),
    ),
    "Deep Ensembles, β = 0.5": (
        "Deep Ensembles",
        lambda _, y, seed: DeepEnsembleRegressor(beta=0.5, random_state=seed),
    ),
    "Evidential": (None, lambda _, y, seed: EvidentialRegressor(random_state=seed)),
    "Evidential, original": (
        None,
        lambda _, y, seed: EvidentialRegressor(uncertainty="original", random_state=seed),
    ),
    "MSE ensemble": (None, lambda _, y, seed: MSEEnsembleRegressor(random_state=seed)),
}


def run(dataset: str, method: str, n_splits: int) -> dict[str, Any]:
    """RMSE and NLL of each split, and the seconds that training took."""
    data = load(dataset)
    splits = standard_splits(len(data.y), n_splits)
    _, build = METHODS[method]
    jobs = [
        (build(dataset, data.y[train], seed), data.X[train], data.y[train])
        for seed, (train, _) in enumerate(splits)
    ]
    started = time.perf_counter()
    models = fit_together(jobs)
    seconds = time.perf_counter() - started
    rmse, nll = [], []
    for model, (_, test) in zip(models, splits, strict=True):
        dist = model.predict_dist(data.X[test])
        rmse.append(float(np.sqrt(np.mean((dist.mean - data.y[test]) ** 2))))
        nll.append(float(-np.mean(dist.log_prob(data.y[test]))))
    return {"rmse": rmse, "nll": nll, "seconds": seconds}


def recorded(folder: Path, dataset: str, method: str, n_splits: int) -> dict[str, Any]:
    """The record of a run, made now unless it is there."""
    slug = "-".join("".join(c if c.isalnum() else " " for c in method).split()).lower()
    path = folder / f"{dataset}-{slug}-{n_splits}.json"
    if not path.exists():
        record = run(dataset, method, n_splits)
        path.write_text(json.dumps(record))
        print(f"{dataset}: {method}, {record['seconds']:.0f} s", flush=True)
    return dict(json.loads(path.read_text()))


def lines(folder: Path, datasets: Sequence[str], methods: Sequence[str], n: int) -> Iterator[str]:
    """The table, in Markdown."""
    yield "| set | method | RMSE | published | apart | NLL | published | apart | seconds |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for dataset in datasets:
        for method in methods:
            record = recorded(folder, dataset, method, n)
            cells = [
                cell
                for measure in ("rmse", "nll")
                for cell in beside(record, dataset, method, measure)
            ]
            yield f"| {dataset} | {method} | {' | '.join(cells)} | {record['seconds']:.0f} |"


def beside(record: dict[str, Any], dataset: str, method: str, measure: str) -> Iterator[str]:
    """Ours, what was published, and how many combined standard errors lie between them."""
    ours = MeanOverSplits.over(record[measure])
    yield f"{ours.value:.3f} ± {ours.error:.3f}"
    column, _ = METHODS[method]
    printed = None if column is None else published("table1", dataset, measure, column)
    if printed is None:
        yield from ("–", "–")
        return
    yield f"{printed.value:.2f} ± {printed.error:.2f}"
    yield f"{standard_errors_apart(ours, printed):+.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, required=True, help="folder of finished runs")
    parser.add_argument("--datasets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    options.records.mkdir(parents=True, exist_ok=True)
    table = lines(options.records, options.datasets, options.methods, options.splits)
    print("\n".join(list(table)))


if __name__ == "__main__":
    main()
