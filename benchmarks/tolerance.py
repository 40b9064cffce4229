"""Does the chosen tolerance help away from the data, and what does it cost near it?

Mean test NLL of the same ensemble trained with NLL, with ``tolerance="robust"`` and with
``tolerance="local"``, on five outlier splits and the first five standard splits of each set.

    ACCORD_DATA=... python benchmarks/tolerance.py [set ...]
"""

import sys
import time

import numpy as np
import torch

from accord import BVMRegressor, datasets
from accord.estimators import fit_together
from accord.splits import outlier_split, standard_splits

SETS = ("boston", "concrete", "energy", "wine", "yacht")
TOLERANCES = {"NLL": 0.0, "robust": "robust", "local": "local"}


def splits_of(X, kind):
    if kind == "out":
        return [outlier_split(X, fraction=0.1, random_state=seed) for seed in range(5)]
    return standard_splits(len(X), 5)


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'set':10} {'splits':6} {'NLL':>16} {'robust':>16} {'local':>16}  local's choices")
    for name in sys.argv[1:] or SETS:
        data = datasets.load(name)
        for kind in ("out", "in"):
            started = time.perf_counter()
            cells, choices = [], []
            for label, tolerance in TOLERANCES.items():
                splits = splits_of(data.X, kind)
                models = [BVMRegressor(tolerance=tolerance, random_state=s) for s in range(5)]
                jobs = [
                    (model, data.X[train], data.y[train])
                    for model, (train, _) in zip(models, splits, strict=True)
                ]
                fit_together(jobs)
                pairs = zip(models, splits, strict=True)
                scores = np.array([-m.log_score(data.X[t], data.y[t]) for m, (_, t) in pairs])
                cells.append(f"{scores.mean():8.3f} ±{scores.std() / 5**0.5:6.3f}")
                if label == "local":
                    choices = [(m.tolerance_, m.relative_tolerance_) for m in models]
            seconds = time.perf_counter() - started
            print(f"{name:10} {kind:6} {' '.join(cells)}  {choices} ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
