"""How long it takes to be as good as CatBoost: processor time of one thread, and NLL.

    ACCORD_DATA=… python benchmarks/race.py                  # elevators
    ACCORD_DATA=… python benchmarks/race.py --set kin8nm

CatBoost (RMSEWithUncertainty) stops early on an inner tenth of its rows. Networks alone are
ensembles of five, as they are by default; the portfolio is given time budgets. A random tenth of
the rows tests; NLL is of targets in training deviations.
"""

import argparse
import time

import numpy as np
import torch

from accord import BVMRegressor, PortfolioRegressor
from peers import PEERS, Method
from portfolio import SETS, split_rows, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="elevators", choices=SETS)
    parser.add_argument("--budgets", nargs="+", type=float, default=[5.0, 10.0, 20.0])
    options = parser.parse_args()
    torch.set_num_threads(1)
    X, y = table(options.set)
    train, test = split_rows(X, "standard", 0)
    methods: dict[str, Method] = {
        "CatBoost": PEERS["catboost"](0),
        "networks alone": BVMRegressor(random_state=0),
        **{
            f"portfolio, {budget:g} s": PortfolioRegressor(time_budget=budget, random_state=0)
            for budget in options.budgets
        },
    }
    print(f"{options.set}: {len(train):,} rows train, {len(test):,} test")
    for name, method in methods.items():
        begun = time.process_time()
        method.fit(X[train], y[train])
        seconds = time.process_time() - begun
        loss = -np.mean(method.predict_dist(X[test]).log_prob(y[test]))  # type: ignore[attr-defined]
        print(f"{name:>20} {seconds:6.1f} s  NLL {loss - np.log(y[train].std()):6.3f}")


if __name__ == "__main__":
    main()
