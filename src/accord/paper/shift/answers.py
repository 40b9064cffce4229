"""One split from rows to answers: which rows train and test, all methods' scores, the controls.

Rows are held out at random, and by six families of shift. A large set is a random sample of its
rows, so that all methods can afford all sets. No method knows what kind of shift it will meet, nor
which rows belong together. Every set has outliers and one or two of gap, tail and cluster. Groups
need a column that says which rows belong together, and time needs days.

Of predictions, scores are measured, and what the figures need of each row is kept. A negative
control is a change that carries no information and must not widen intervals: a column of pure noise
is added to the features, and on test rows shifted, or shuffled; and the model is trained with five
such columns. Widths are compared with those of the same rows without the change.
"""

import time
import warnings

import numpy as np

from accord._types import Floats, Indices
from accord.distributions import Distribution
from accord.metrics import coverage, crps, interval_score, interval_width, nll
from accord.paper import sets
from accord.paper.sets import Fold
from accord.paper.shift.methods import ACCORD, EFFORT, predictions
from accord.paper.study import Answer, published_datasets
from accord.portfolio import PortfolioRegressor
from accord.splits import (
    Split,
    cluster_split,
    gap_split,
    group_split,
    outlier_split,
    tail_split,
    time_split,
)
from accord.trust import Growth

ROWS = 400
TEST_ROWS = 120
# Columns that say which rows belong together: the shape of a hull or a building, an index of
# roads, the age of a mixture, a speed, a chord, a motor, a class of spots.
GROUP_COLUMNS: dict[str, tuple[int, ...]] = {
    "yacht": (0, 1, 2, 3, 4),
    "energy": (0,),
    "boston": (8,),
    "concrete": (7,),
    "naval": (0,),
    "airfoil": (2,),
    "servo": (0,),
    "solar": (0,),
}
# Moments at which the stocks are cut, as shares of the days; the next tenth of them tests.
MOMENTS = (0.5, 0.7, 0.9)
# A column with fewer values has no middle and no tails to speak of.
_FEWEST_VALUES = 10

RANDOM = "random rows"
SHIFTS = ("outliers", "gap", "tail", "cluster", "group", "time")
SETS = (*published_datasets("table3"), *sets.DEVELOPMENT)
STOCKS = "google"
CONTROLLED = ("concrete", "energy", "kin8nm", "yacht")

FAMILIES: dict[str, tuple[str, ...]] = {
    "outliers": SETS,
    "gap": (
        *("boston", "concrete", "energy", "kin8nm", "power", "protein", "wine"),
        *("airfoil", "pumadyn32nm"),
    ),
    "tail": (
        *("boston", "concrete", "kin8nm", "naval", "power", "wine", "yacht"),
        *("autos", "tamielectric"),
    ),
    "cluster": (
        *("concrete", "energy", "kin8nm", "power", "wine", "yacht"),
        *("elevators", "servo", "skillcraft", "solar"),
    ),
    "group": tuple(GROUP_COLUMNS),
    "time": (STOCKS,),
    RANDOM: SETS,
}

COVERAGES = (0.5, 0.9, 0.95)
# Quantiles by which the CRPS is taken, of all methods alike: closed forms are not to be had of all.
_LEVELS = (np.arange(50) + 0.5) / 50
RETAINED = tuple(k / 10 for k in range(1, 11))
# An error is large if it belongs to this share of a method's own.
LARGE_SHARE = 0.2

GROUP = "controls"
SHIFTED, SHUFFLED, ADDED = "shifted noise column", "shuffled noise column", "five noise columns"
CONTROLS = (SHIFTED, SHUFFLED, ADDED)
# How far the column moves, in its standard deviations.
SHIFT = 3.0


def case(family: str, dataset: str, split: int) -> Fold:
    """The rows of a split; the same for every method."""
    X, y = sets.table(dataset)
    if family == "time":
        return _in_time(X, y, split)
    rows = _sample(len(y), ROWS, seed=split)
    X, y = X[rows], y[rows]
    train, test = _split(family, dataset, X, y, split)
    return _case(X, y, train, test, split)


def _split(family: str, dataset: str, X: Floats, y: Floats, split: int) -> Split:
    if family == RANDOM:
        order = np.random.default_rng([split, 1]).permutation(len(y))
        test, train = np.split(order, [round(0.2 * len(y))])
        return np.sort(train), np.sort(test)
    match family:
        case "outliers":
            return outlier_split(X, random_state=split)
        case "gap":
            return gap_split(X, feature=leading_feature(X, y))
        case "tail":
            return tail_split(X, feature=leading_feature(X, y), side="both", fraction=0.2)
        case "cluster":
            return cluster_split(X, cluster=1, random_state=split)
        case "group":
            return without_largest_group(X[:, list(GROUP_COLUMNS[dataset])])
    raise ValueError(f"family must be one of {RANDOM}, {', '.join(SHIFTS)}, got {family!r}.")


def leading_feature(X: Floats, y: Floats) -> int:
    """The column whose ranks go most with the target's, among those of many values.

    >>> x = np.arange(20.0)
    >>> leading_feature(np.column_stack([x % 2, np.cos(x), -x]), x**3)
    2
    """
    from scipy.stats import spearmanr

    many = [j for j, column in enumerate(X.T) if len(np.unique(column)) >= _FEWEST_VALUES]
    return max(many, key=lambda j: abs(float(spearmanr(X[:, j], y).statistic)))


def without_largest_group(columns: Floats) -> Split:
    """The largest group that holds no more than a third of the rows is held out."""
    groups = np.unique(columns, axis=0, return_inverse=True)[1].ravel()
    sizes = np.bincount(groups)
    sizes[3 * sizes > len(groups)] = 0
    return group_split(groups, group=int(sizes.argmax()))


def _in_time(X: Floats, y: Floats, split: int) -> Fold:
    days = np.arange(round((MOMENTS[split] + 0.1) * len(y)))
    train, test = time_split(days, fraction=0.1 * len(y) / len(days))
    return _case(X, y, train[_sample(len(train), ROWS, seed=split)], test, split)


def _case(X: Floats, y: Floats, train: Indices, test: Indices, split: int) -> Fold:
    asked = test[_sample(len(test), TEST_ROWS, seed=split)]
    return Fold(split, X[train], y[train], X[asked], y[asked])


def _sample(n: int, most: int, *, seed: int) -> Indices:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 0]).choice(n, most, replace=False))


def answer(fold: Fold, dist: Distribution, *, seconds: float) -> Answer:
    """Scores of a method on a split, widths and errors in deviations of the training targets.

    Of each row are kept: ``distance``, that of :class:`~accord.trust.Growth` to the training rows
    in all features alike, so that no method chooses it; ``loss``; ``covered``, ``width`` of the
    90 % interval.
    """
    y, unit = fold.y_test, float(fold.y_train.std())
    intervals = {level: np.asarray(dist.interval(level)) for level in COVERAGES}
    loss = nll(y_true=y, dist=dist, average=False)
    error = np.abs(y - np.asarray(dist.mean)) / unit
    deviation = np.asarray(dist.std) / unit
    measures = {
        "nll": float(loss.mean()),
        "crps": crps(y_true=y, quantiles=_quantiles(dist), alpha=_LEVELS) / unit,
        "interval_score": interval_score(y_true=y, interval=intervals[0.9], coverage=0.9) / unit,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "auroc": auroc(error, deviation),
        "retention": float(retention(error, deviation).mean()),
        "seconds": seconds,
        "n_train": float(len(fold.y_train)),
        "n_test": float(len(y)),
    }
    for level, interval in intervals.items():
        measures[f"coverage{100 * level:.0f}"] = coverage(y_true=y, interval=interval)
        measures[f"width{100 * level:.0f}"] = interval_width(y_true=y, interval=interval) / unit
    curves = {
        "distance": Growth().fit(fold.X_train)(fold.X_test),
        "loss": loss,
        "covered": coverage(y_true=y, interval=intervals[0.9], average=False),
        "width": interval_width(y_true=y, interval=intervals[0.9], average=False) / unit,
        "retention": retention(error, deviation),
    }
    return Answer(measures, curves)


def _quantiles(dist: Distribution) -> Floats:
    """Quantiles at the levels, ascending and finite.

    Conformal prediction on few rows has infinite ones at the ends, which count as the last finite
    one; equal ones may differ by rounding.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the infinite ones, dealt with here
        found = np.asarray(dist.quantile(_LEVELS))
    finite = np.where(np.isfinite(found), found, np.nan)
    low, high = np.nanmin(finite, axis=1), np.nanmax(finite, axis=1)
    return np.maximum.accumulate(np.clip(found, low[:, None], high[:, None]), axis=1)


def auroc(error: Floats, deviation: Floats) -> float:
    """How well the predicted deviation tells large errors from others; 0.5 is chance.

    **Shape**: both (N,).

    >>> auroc(np.arange(10.0), np.arange(10.0)), auroc(np.arange(10.0), np.ones(10))
    (1.0, 0.5)
    """
    from sklearn.metrics import roc_auc_score

    n_large = max(1, round(LARGE_SHARE * len(error)))
    large = np.zeros(len(error), bool)
    large[np.argsort(-error, kind="stable")[:n_large]] = True
    return float(roc_auc_score(large, deviation))


def retention(error: Floats, deviation: Floats) -> Floats:
    """Mean error of the surest tenth, two tenths, … of the rows, in that of all rows.

    1 throughout where the deviations say nothing: rows of equal deviation share their errors.

    **Shape**: both (N,) → (10,).

    >>> retention(np.array([1.0, 3.0]), np.array([0.1, 0.2])).tolist()[4:]
    [0.5, 0.5, 0.5, 0.5, 0.5, 1.0]
    """
    _, place, size = np.unique(deviation, return_inverse=True, return_counts=True)
    shared = np.bincount(place, weights=error) / size
    ordered = np.sort(place)
    total = np.cumsum(shared[ordered])
    kept = np.maximum(1, np.floor(np.array(RETAINED) * len(error) + 1e-9)).astype(int)
    mean = total[-1] / len(error)
    return np.asarray(total[kept - 1] / kept / (mean or 1.0))


def controlled(dataset: str, split: int) -> dict[tuple[str, str], Answer]:
    """How much the 90 % intervals of random test rows widen under each control, as a share."""
    start = time.process_time()
    rows = case(RANDOM, dataset, split)
    random = np.random.default_rng([split, 2])
    noise, asked = (random.normal(size=(len(x), 5)) for x in (rows.X_train, rows.X_test))
    bare, one, five = (
        PortfolioRegressor(effort=EFFORT, random_state=split).fit(
            np.column_stack([rows.X_train, noise[:, :n]]), rows.y_train
        )
        for n in (0, 1, 5)
    )

    def width(model: PortfolioRegressor, columns: Floats) -> float:
        X = np.column_stack([rows.X_test, columns])
        return interval_width(y_true=rows.y_test, dist=model.predict_dist(X), coverage=0.9)

    column = asked[:, :1]
    usual = width(one, column)
    growths = {
        SHIFTED: width(one, column + SHIFT) / usual - 1,
        SHUFFLED: width(one, random.permutation(column)) / usual - 1,
        ADDED: width(five, asked) / width(bare, asked[:, :0]) - 1,
    }
    seconds = (time.process_time() - start) / len(growths)
    return {
        (ACCORD, control): Answer({"growth": growth, "seconds": seconds}, {})
        for control, growth in growths.items()
    }


def answered(group: str, dataset: str, split: int) -> dict[tuple[str, str], Answer]:
    """Every method's scores; the group's name is the family of shift."""
    if group == GROUP:
        return controlled(dataset, split)
    rows = case(group, dataset, split)
    return {
        (name, group): answer(rows, dist, seconds=seconds)
        for name, dist, seconds in predictions(rows, seed=split)
    }
