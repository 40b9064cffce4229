"""The methods: the default, Deep Ensembles and what can be made of the same networks, and others.

Each takes training rows and gives a distribution per test row. Nothing is tuned here: settings are
the libraries' own, or those that accord had before this study.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from accord._types import Bools, Floats
from accord.calibration import Conformal
from accord.distributions import Distribution, Mixture, Normal
from accord.estimators import (
    RECIPES,
    BVMRegressor,
    DeepEnsembleRegressor,
    choose,
    fit_together,
    inner_splits,
)
from accord.paper.sets import Fold
from accord.portfolio import PortfolioRegressor

EFFORT: Final = "quick"
ACCORD, BARE = "accord", "accord without distance"
DEEP, LOCAL = "Deep Ensembles", "Deep Ensembles, local"
GLOBAL, FREE = "Deep Ensembles, global", "Deep Ensembles, global at any cost"
LAPLACE, BOOSTING = "last-layer Laplace", "conformal boosting"
PROCESS, NATURAL, MARGINAL = "Gaussian process", "NGBoost", "marginal"

# Factors by which one inflation may stretch all predictions.
INFLATIONS = (1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
# A kernel is learnt on so many rows, and conditioned on all.
KERNEL_ROWS = 250
_KERNEL_STEPS = 40
# Fewer than CatBoost's own thousand and NGBoost's five hundred, for time. CatBoost's rate follows
# from their number; NGBoost's is five times its own, as its trees are a fifth.
TREES, NATURAL_TREES, NATURAL_RATE = 300, 100, 0.05
# Prior precisions that last-layer Laplace chooses from.
_PRECISIONS = np.geomspace(1e-4, 1e4, 33)
# Share of the training rows that conformal prediction holds out.
_HELD_OUT = 0.2
# The marginal distribution has a bell curve at each of so many quantiles.
_QUANTILES = 100
# Variances of methods that know no noise end here, as a share of the targets' deviation.
_FLOOR = 1e-3


@dataclass(frozen=True)
class ShiftMethod:
    """A method's name, what it is, and the package that it comes from."""

    name: str
    about: str
    package: str = ""


def methods() -> tuple[ShiftMethod, ...]:
    """All that can be run here: NGBoost only where it is installed."""
    booster = "catboost" if find_spec("catboost") else "scikit-learn"
    natural = (
        [ShiftMethod(NATURAL, "a normal per row", _dated("ngboost"))]
        if find_spec("ngboost")
        else []
    )
    return (
        ShiftMethod(ACCORD, f"the default, PortfolioRegressor(effort={EFFORT!r})"),
        ShiftMethod(BARE, "the same models without the local tolerance"),
        ShiftMethod(DEEP, "five networks by the cosine recipe, trained on NLL, as a mixture"),
        ShiftMethod(
            GLOBAL,
            "the same networks, every prediction stretched by one factor, chosen by the rule and "
            "on the inner splits that choose the local tolerance",
        ),
        ShiftMethod(
            FREE, "the same, the factor that is best on the inner outliers, whatever it costs"
        ),
        ShiftMethod(LOCAL, "the same networks with the local tolerance of BVMRegressor"),
        ShiftMethod(LAPLACE, "the same networks, each with Laplace's variance of its last layer"),
        ShiftMethod(
            BOOSTING,
            "boosted trees on four fifths of the rows, split-conformal on the others",
            _dated(booster),
        ),
        ShiftMethod(PROCESS, "exact, Matérn 5/2, a length per feature, with noise"),
        *natural,
        ShiftMethod(MARGINAL, "the training targets' own distribution, whatever the row"),
    )


def _dated(package: str) -> str:
    return f"{package} {version(package)}"


Predicted = dict[str, Distribution]


def predictions(fold: Fold, *, seed: int) -> Iterator[tuple[str, Distribution, float]]:
    """Each method's predictions of the test rows, and its seconds of one core.

    What several methods share is trained once, and its time is shared out.
    """
    families: list[Callable[[Fold, int], Predicted]] = [
        _portfolio,
        _networks,
        _boosting,
        _process,
        _marginal,
    ]
    if find_spec("ngboost"):
        families.append(_natural)
    for predicted in families:
        start = time.process_time()
        found = predicted(fold, seed)
        seconds = (time.process_time() - start) / len(found)
        for name, dist in found.items():
            yield name, dist, seconds


def _portfolio(fold: Fold, seed: int) -> Predicted:
    model = PortfolioRegressor(effort=EFFORT, random_state=seed).fit(fold.X_train, fold.y_train)
    bare = copy(model)
    nowhere = replace(model.widening_.tolerance, base=0.0, relative=0.0)
    bare.widening_ = replace(model.widening_, tolerance=nowhere)
    return {ACCORD: model.predict_dist(fold.X_test), BARE: bare.predict_dist(fold.X_test)}


def _networks(fold: Fold, seed: int) -> Predicted:
    """Three ways to use the same five networks away from the data, and the networks alone."""
    X, y, settings = fold.X_train, fold.y_train, RECIPES["cosine"]
    local = BVMRegressor(**settings, tolerance="local", random_state=seed)
    splits = inner_splits(X, np.random.RandomState(seed))
    inner = [DeepEnsembleRegressor(**settings, random_state=seed) for _ in splits]
    jobs = [(model, X[s.train], y[s.train]) for model, s in zip(inner, splits, strict=True)]
    fit_together([(local, X, y), *jobs])
    tests = [model.predict_dist(X[s.test]) for model, s in zip(inner, splits, strict=True)]
    unusual = np.array([split.unusual for split in splits])
    bearable, best = _inflations(tests, [y[split.test] for split in splits], unusual)
    alone = local.without_tolerance().predict_dist(fold.X_test)
    return {
        DEEP: alone,
        GLOBAL: alone.rescaled(bearable),
        FREE: alone.rescaled(best),
        LOCAL: local.predict_dist(fold.X_test),
        LAPLACE: last_layer(local, X, fold.X_test),
    }


def _inflations(tests: list[Distribution], y: list[Floats], unusual: Bools) -> tuple[float, float]:
    """The best factor on inner outliers, among those cheap on random rows and among all.

    The first follows the rule that chooses local tolerances.
    """
    scores = [
        [[-float(np.mean(dist.rescaled(factor).log_prob(targets)))] for factor in INFLATIONS]
        for dist, targets in zip(tests, y, strict=True)
    ]
    curve = choose("local", np.array(INFLATIONS), np.zeros(1), np.array(scores), unusual)
    return curve.chosen, INFLATIONS[int(np.argmin(curve.out_of_distribution))]


def _boosting(fold: Fold, seed: int) -> Predicted:
    n = len(fold.y_train)
    order = np.random.default_rng(seed).permutation(n)
    held_out, train = np.split(order, [round(_HELD_OUT * n)])
    model = _booster(seed).fit(fold.X_train[train], fold.y_train[train])

    def around(X: Floats) -> Distribution:
        return Normal(np.asarray(model.predict(X), dtype=np.float64), float(fold.y_train.std()))

    conformal = Conformal().fit(around(fold.X_train[held_out]), fold.y_train[held_out])
    return {BOOSTING: conformal(around(fold.X_test))}


def _booster(seed: int) -> Any:
    if find_spec("catboost"):
        from catboost import CatBoostRegressor

        return CatBoostRegressor(
            iterations=TREES,
            random_seed=seed,
            verbose=False,
            allow_writing_files=False,
            thread_count=1,
        )
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=seed)


def _natural(fold: Fold, seed: int) -> Predicted:
    from ngboost import NGBRegressor

    model = NGBRegressor(
        n_estimators=NATURAL_TREES, learning_rate=NATURAL_RATE, random_state=seed, verbose=False
    ).fit(fold.X_train, fold.y_train)
    found = model.pred_dist(fold.X_test)
    return {NATURAL: Normal(found.loc, np.maximum(found.scale, _FLOOR * fold.y_train.std()))}


def _process(fold: Fold, seed: int) -> Predicted:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    center, spread = fold.X_train.mean(axis=0), fold.X_train.std(axis=0)
    X, asked = (
        (x - center) / np.where(spread > 0, spread, 1.0) for x in (fold.X_train, fold.X_test)
    )
    shift, unit = fold.y_train.mean(), fold.y_train.std()
    z = (fold.y_train - shift) / unit
    d = X.shape[1]
    kernel = ConstantKernel() * Matern(np.full(d, d**0.5), (1e-2, 1e4), nu=2.5)
    kernel += WhiteKernel(0.1, (_FLOOR**2, 1e1))
    some = np.random.default_rng(seed).permutation(len(z))[:KERNEL_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a length at its bound is no concern
        learnt = GaussianProcessRegressor(kernel, optimizer=_climbed).fit(X[some], z[some])
        process = GaussianProcessRegressor(learnt.kernel_, optimizer=None).fit(X, z)
        mean, std = process.predict(asked, return_std=True)
    return {PROCESS: Normal(shift + unit * mean, unit * np.maximum(std, _FLOOR))}


def _climbed(objective: Any, start: Floats, bounds: Any) -> tuple[Floats, float]:
    """The kernel's parameters after some steps, and what they reach: scikit-learn's protocol."""
    from scipy.optimize import minimize

    found = minimize(
        objective,
        start,
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
        options={"maxiter": _KERNEL_STEPS},
    )
    return found.x, found.fun


def _marginal(fold: Fold, seed: int) -> Predicted:
    """A kernel density estimate at quantiles of the training targets, by Silverman's rule.

    Where targets come in steps its bell curves are half a step wide at least: narrower ones would
    be sure of nothing but the rounding.
    """
    y = fold.y_train
    step = float(np.median(np.diff(np.unique(y))))
    quarters = np.subtract(*np.quantile(y, [0.75, 0.25])) / 1.34
    width = max(0.9 * min(y.std(), quarters or y.std()) * len(y) ** -0.2, step / 2)
    centers = np.quantile(y, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    rows = np.broadcast_to(centers[:, None], (_QUANTILES, len(fold.X_test)))
    return {MARGINAL: Mixture(Normal(rows.copy(), width), spread="noise")}


# --- Laplace's approximation for the last layer ------------------------------------------------
#
# A network's mean is linear in its last hidden units φ(x), μ(x) = φ(x)·w. With its own variances
# σᵢ² taken as known and a prior N(0, 1/λ) on each weight, the posterior's precision and the
# variance that it adds to a prediction are
#
#     H = Σᵢ φᵢ φᵢᵀ / σᵢ² + λ 1,    v(x) = φ(x)ᵀ H⁻¹ φ(x),
#
# exactly as in Bayesian linear regression on φ. λ maximises the evidence at the trained weights,
# ½ P log λ − ½ λ |w|² − ½ log |H| (MacKay, 1992).


def posterior_variance(features: Floats, noise: Floats, precision: float, at: Floats) -> Floats:
    """v(x): the variance of a linear mean under the posterior of its weights.

    **Shape**: features (N, P), noise (N,) variances; at (M, P) → (M,).
    """
    root = np.linalg.cholesky(_hessian(features, noise, precision))
    return np.asarray((np.linalg.solve(root, at.T) ** 2).sum(axis=0))


def prior_precision(features: Floats, noise: Floats, weights: Floats) -> float:
    """λ of largest evidence, on a grid.

    **Shape**: features (N, P), noise (N,), weights (P,).
    """

    def evidence(precision: float) -> float:
        log_det = np.linalg.slogdet(_hessian(features, noise, precision))[1]
        size = float(weights @ weights)
        return float(len(weights) * np.log(precision) - precision * size - log_det) / 2

    return max(map(float, _PRECISIONS), key=evidence)


def _hessian(features: Floats, noise: Floats, precision: float) -> Floats:
    return np.asarray(
        (features / noise[:, None]).T @ features + precision * np.eye(features.shape[1])
    )


def last_layer(model: BVMRegressor, X_train: Floats, X: Floats) -> Distribution:
    """The mixture of a model's networks, each with the uncertainty of its last layer.

    The networks have hidden layers with ReLU, and an identity mean.

    **Shape**: X_train (N, d), X (M, d) → (M,).
    """
    bare = model.without_tolerance()
    trained, asked = (_moments(bare, rows) for rows in (X_train, X))
    hidden, hidden_asked = (_hidden_units(model, rows) for rows in (X_train, X))
    unit = float(model.y_scale_[0])
    added = np.empty_like(asked[0])
    for member in range(len(hidden)):
        noise = (trained[1][member] / unit) ** 2
        weights = _last_weights(model, member)
        precision = prior_precision(hidden[member], noise, weights)
        added[member] = posterior_variance(
            hidden[member], noise, precision, at=hidden_asked[member]
        )
    mean, std = asked
    return Mixture(Normal(mean, np.sqrt(std**2 + unit**2 * added)))


def _moments(model: BVMRegressor, X: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of each member, (M, N) each."""
    mixture = model.predict_dist(X)
    members = mixture.components  # type: ignore[attr-defined]  # networks alone are a mixture
    return np.asarray(members.mean), np.asarray(members.std)


def _hidden_units(model: BVMRegressor, X: Floats) -> Floats:
    """φ(x) with a 1 for the bias, (M, N, P)."""
    n_layers = len(model.parameters_) // 2
    weights, biases = model.parameters_[:n_layers], model.parameters_[n_layers:]
    scaled = (X - model.x_shift_) / model.x_scale_
    units = np.broadcast_to(scaled, (len(weights[0]), *scaled.shape))
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        units = np.maximum(units @ weight.astype(np.float64) + bias, 0.0)
    return np.concatenate([units, np.ones((*units.shape[:2], 1))], axis=2)


def _last_weights(model: BVMRegressor, member: int) -> Floats:
    """The weights of the mean's output and its bias, (P,)."""
    n_layers = len(model.parameters_) // 2
    weight, bias = model.parameters_[n_layers - 1], model.parameters_[-1]
    return np.append(weight[member, :, 0], bias[member].ravel()[0]).astype(np.float64)
