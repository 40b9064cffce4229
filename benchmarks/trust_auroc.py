"""How well the trust score tells unusual rows from usual ones, by AUROC on outlier splits.

For each UCI set and split, an Isolation Forest sets the most anomalous tenth of the rows aside; of
the others, a tenth is held out for the threshold, a tenth for the test, and the models are trained
on the rest. The AUROC is the probability that an unusual row scores lower than a usual one, neither
of which was trained on: 0.5 is chance.

    python benchmarks/trust_auroc.py [--sets boston yacht] [--splits 3] [--max-rows 2000]
"""

import argparse
import time

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from accord import datasets
from accord.estimators import BVMRegressor, DeepEnsembleRegressor, fit_together
from accord.splits import outlier_split
from accord.trust import TrustScore

SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
MODELS = {
    "Deep Ensembles": DeepEnsembleRegressor(random_state=0),
    "BVM, local tolerance": BVMRegressor(tolerance="local", random_state=0),
}
KINDS = ("distance", "epistemic", "both")


def split_rows(X, seed):
    """Rows to train on, usual rows for the threshold, usual rows and unusual rows for the test."""
    usual, unusual = outlier_split(X, random_state=seed)
    usual = np.random.default_rng(seed).permutation(usual)
    n = len(unusual)
    return usual[2 * n :], usual[:n], usual[n : 2 * n], unusual


def evaluate(model, X, rows):
    """AUROC and false-alarm rate per kind."""
    train, held_out, usual, unusual = rows
    is_unusual = np.repeat([0, 1], [len(usual), len(unusual)])
    test = X[np.concatenate([usual, unusual])]
    figures = {}
    for kind in KINDS:
        trust = TrustScore(model, kind=kind, random_state=0).fit(X[train], X_held_out=X[held_out])
        auroc = roc_auc_score(is_unusual, -trust.score_samples(test))
        alarms = trust.is_unusual(test)
        figures[kind] = auroc, alarms[is_unusual == 0].mean(), alarms[is_unusual == 1].mean()
    return figures


def study(name, n_splits, max_rows):
    data = datasets.load(name)
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float)
    if len(X) > max_rows:
        chosen = np.random.default_rng(0).permutation(len(X))[:max_rows]
        X, y = X[chosen], y[chosen]
    splits = [split_rows(X, seed) for seed in range(n_splits)]
    for label, model in MODELS.items():
        start = time.perf_counter()
        models = fit_together([(clone(model), X[rows[0]], y[rows[0]]) for rows in splits])
        figures = [evaluate(m, X, rows) for m, rows in zip(models, splits, strict=True)]
        cells = []
        for kind in KINDS:
            values = np.array([figure[kind] for figure in figures])
            auroc, false, found = values.mean(axis=0)
            cells.append(f"{auroc:.3f} (min {values[:, 0].min():.2f}) {false:4.0%} {found:4.0%}")
        seconds = time.perf_counter() - start
        print(
            f"{name:9} {len(X):6} {label:21} " + "   ".join(cells) + f"   {seconds:5.0f} s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--max-rows", type=int, default=2000)
    options = parser.parse_args()
    heads = (f"{kind}: AUROC, false alarms, found" for kind in KINDS)
    print(f"{'set':9} {'rows':>6} {'model':21} " + "   ".join(heads))
    for name in options.sets:
        study(name, options.splits, options.max_rows)


if __name__ == "__main__":
    main()
