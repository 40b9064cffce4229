"""Shifted splits of training rows alone: where constants of the local tolerance and the ranks are
to be chosen, so that the shift study stays a test.

    ACCORD_DATA=… python benchmarks/rehearsal.py [--rows 400] [--sets …]

Of each of the seventeen tables, without the test rows of ``portfolio.py``'s first random and
outlier split, at most ``--rows`` rows are cut again: the most anomalous tenth, the middle and both
ends of the feature that goes most with the target, a cluster and a group, and a random fifth. The
default is fitted to the rest with effort ``quick``. Printed are, for every split and in all, NLL
(less that of the target's own distribution), coverage and width at 90 %, in training deviations.
"""

import argparse
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from accord import PortfolioRegressor
from accord._types import Floats
from accord.distributions import Distribution
from accord.paper.shift.answers import GROUP_COLUMNS, leading_feature, without_largest_group
from accord.splits import Split, cluster_split, gap_split, outlier_split, tail_split
from peers import PEERS
from portfolio import SETS, split_rows, table

MOST_TESTED = 120
# A feature with fewer values has no middle and no ends to speak of.
MANY_VALUES = 10
RANDOM = "random"


class Figures(NamedTuple):
    """Means over the rows of a split."""

    nll: float
    above_marginal: float
    covered: float
    width: float


def splits(name: str, X: Floats, y: Floats) -> Iterator[tuple[str, Split]]:
    yield "outliers", outlier_split(X, random_state=5)
    if max(len(np.unique(column)) for column in X.T) >= MANY_VALUES:
        feature = leading_feature(X, y)
        yield "gap", gap_split(X, feature=feature)
        yield "tail", tail_split(X, feature=feature, side="both", fraction=0.2)
    yield "cluster", cluster_split(X, cluster=1, random_state=5)
    if name in GROUP_COLUMNS:
        yield "group", without_largest_group(X[:, list(GROUP_COLUMNS[name])])
    order = np.random.default_rng(9).permutation(len(y))
    k = round(0.2 * len(y))
    yield RANDOM, (np.sort(order[k:]), np.sort(order[:k]))


def figures(X: Floats, y: Floats, split: Split) -> Figures:
    train, test = split
    test = np.sort(np.random.default_rng(1).permutation(test)[:MOST_TESTED])
    model = PortfolioRegressor(effort="quick", random_state=0).fit(X[train], y[train])
    deviation = float(y[train].std())
    dist: Distribution = model.predict_dist(X[test])
    low, high = np.asarray(dist.interval(0.9)).T
    loss = -float(np.mean(np.asarray(dist.log_prob(y[test]))))
    marginal = PEERS["marginal"](0).fit(X[train], y[train]).predict_dist(X[test])
    return Figures(
        loss - np.log(deviation),
        loss + float(np.mean(np.asarray(marginal.log_prob(y[test])))),
        float(np.mean((low <= y[test]) & (y[test] <= high))),
        float(np.mean(high - low)) / deviation,
    )


def known_rows(name: str, most: int) -> tuple[Floats, Floats]:
    X, y = table(name)
    known = np.setdiff1d(split_rows(X, "standard", 0)[0], split_rows(X, "outlier", 0)[1])
    own = np.sort(np.random.default_rng(77).permutation(known)[:most])
    return X[own], y[own]


def summary(title: str, found: list[Figures]) -> str:
    if not found:
        return f"{title}: none"
    nll, above, covered, width = np.array(found).T
    return (
        f"{title}: 90 % intervals cover 85 % on {np.sum(covered >= 0.85)} of {len(found)}, "
        f"{covered.mean():.1%} in mean; mean NLL {nll.mean():.3f}, median width "
        f"{np.median(width):.2f}; above the marginal on {np.sum(above > 0)}, by "
        f"{above.clip(0).sum():.2f} nats in all"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    found: dict[bool, list[Figures]] = {True: [], False: []}
    for name in options.sets:
        X, y = known_rows(name, options.rows)
        for family, split in splits(name, X, y):
            own = figures(X, y, split)
            found[family == RANDOM].append(own)
            print(
                f"{name:>12} {family:>8}: NLL {own.nll:6.2f} ({own.above_marginal:+.2f}), covers "
                f"{own.covered:4.0%}, width {own.width:.2f}",
                flush=True,
            )
    print(summary("unlike the rest", found[False]))
    print(summary("random rows", found[True]))


if __name__ == "__main__":
    main()
