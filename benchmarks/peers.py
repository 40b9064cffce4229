"""What a user would otherwise take: the peers of ``portfolio.py``, one class each.

Every peer is given features and targets in their own units, standardises both by its training rows
and answers in the targets' units. Settings are those that the authors recommend; what boosts or
trains by epochs stops early on an inner tenth of its training rows. One thread each. NGBoost and
CatBoost are those of ``accord compare``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from catboost import CatBoostRegressor
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from accord.distributions import Distribution, Normal
from accord.estimators import DeepEnsembleRegressor
from accord.workflows import method_named

Floats = NDArray[np.float64]
COVERAGES = (0.9, 0.95)
GP_ROWS = 2_000
NGBOOST_ROWS = 10_000


class Method(Protocol):
    """What ``portfolio.py`` asks; ``predict_dist`` may be absent where only intervals are given."""

    def fit(self, X: Floats, y: Floats) -> Any: ...
    def predict(self, X: Floats) -> Floats: ...
    def predict_interval(self, X: Floats, coverage: float) -> Floats: ...


class DensityPeer(ABC):
    """What predicts a distribution per row has its mean and its central intervals."""

    @abstractmethod
    def fit(self, X: Floats, y: Floats) -> Self: ...

    @abstractmethod
    def predict_dist(self, X: Floats) -> Distribution: ...

    def predict(self, X: Floats) -> Floats:
        return np.asarray(self.predict_dist(X).mean)

    def predict_interval(self, X: Floats, coverage: float) -> Floats:
        return np.asarray(self.predict_dist(X).interval(coverage))


class Compared(DensityPeer):
    """A method of ``accord compare``, on at most so many rows if that is said."""

    def __init__(self, name: str, seed: int, n_rows: int | None = None) -> None:
        self.seed, self.n_rows = seed, n_rows
        self.model = method_named(name).make(seed)

    def fit(self, X: Floats, y: Floats) -> Self:
        if self.n_rows is not None:
            X, y = sampled(X, y, self.n_rows, self.seed)
        self.model.fit(X, y)
        return self

    def predict_dist(self, X: Floats) -> Distribution:
        return self.model.predict_dist(X)


class GaussianPeer(DensityPeer):
    """Mean and standard deviation per row, learnt from standardised features and targets.

    **Shape**: X (N, d), y (N,); ``_moments`` gives two (N,), ``predict_interval`` (N, 2).
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @abstractmethod
    def _learn(self, X: Floats, y: Floats) -> None: ...

    @abstractmethod
    def _moments(self, X: Floats) -> tuple[Floats, Floats]: ...

    def fit(self, X: Floats, y: Floats) -> Self:
        self.scaler = StandardScaler().fit(X)
        self.mean, self.std = float(y.mean()), float(y.std())
        self._learn(self.scaler.transform(X), (y - self.mean) / self.std)
        return self

    def predict_dist(self, X: Floats) -> Distribution:
        mean, std = self._moments(self.scaler.transform(X))
        return Normal(self.mean + self.std * mean, self.std * std)


class GaussianProcess(GaussianPeer):
    """Exact GP with a length scale per feature and white noise, on at most 2,000 rows."""

    def _learn(self, X: Floats, y: Floats) -> None:
        X, y = sampled(X, y, GP_ROWS, self.seed)
        # Standardised rows lie about √(2d) apart: a shorter scale starts with no correlation. From
        # little noise the search ends in noise alone where few of many features matter.
        lengths = np.full(X.shape[1], np.sqrt(X.shape[1]))
        kernel = ConstantKernel(1.0, (1e-2, 1e3)) * RBF(lengths, (1e-2, 1e4))
        self.model = GaussianProcessRegressor(
            kernel + WhiteKernel(0.5, (1e-6, 1e1)),
            optimizer=partial(maximise_likelihood, X=X, y=y),
            n_restarts_optimizer=1,
            random_state=self.seed,
        ).fit(X, y)

    def _moments(self, X: Floats) -> tuple[Floats, Floats]:
        mean, std = self.model.predict(X, return_std=True)
        return mean, np.maximum(std, 1e-6)


def maximise_likelihood(
    _: Any, start: Floats, *, bounds: Floats, X: Floats, y: Floats
) -> tuple[Floats, float]:
    """scikit-learn's own search, 100 steps of it, with a gradient that needs no (N, N, d) array."""
    found = minimize(
        negative_log_likelihood,
        start,
        (X, y),
        "L-BFGS-B",
        jac=True,
        bounds=bounds,
        options={"maxiter": 100},
    )
    return found.x, found.fun


def negative_log_likelihood(theta: Floats, X: Floats, y: Floats) -> tuple[float, Floats]:
    """−log p(y) of the GP and its gradient by θ, the logs of signal, length scales and noise.

    With W = αα^T − K⁻¹ and M = W ∘ K, a length scale's derivative −½ Σᵢⱼ Mᵢⱼ (zᵢ − zⱼ)² is
    z^T M z − Σᵢ zᵢ² Σⱼ Mᵢⱼ, so that products of matrices give all of them.
    """
    signal, lengths, noise = np.exp(theta[0]), np.exp(theta[1:-1]), np.exp(theta[-1])
    Z = X / lengths
    K = signal * np.exp(-0.5 * cdist(Z, Z, "sqeuclidean"))
    try:
        factor = cho_factor(K + (noise + 1e-10) * np.eye(len(y)), lower=True)
    except LinAlgError:
        return np.inf, np.zeros_like(theta)
    alpha = cho_solve(factor, y)
    W = np.outer(alpha, alpha) - cho_solve(factor, np.eye(len(y)))
    M = W * K
    log_p = -0.5 * y @ alpha - np.log(np.diag(factor[0])).sum() - len(y) / 2 * np.log(2 * np.pi)
    by_length = (Z * (M @ Z)).sum(axis=0) - M.sum(axis=1) @ Z**2
    gradient = np.concatenate([[-0.5 * M.sum()], by_length, [-0.5 * noise * np.trace(W)]])
    return -float(log_p), gradient


class Ridge(GaussianPeer):
    """Bayesian linear regression with both precisions learnt."""

    def _learn(self, X: Floats, y: Floats) -> None:
        self.model = BayesianRidge().fit(X, y)

    def _moments(self, X: Floats) -> tuple[Floats, Floats]:
        mean, std = self.model.predict(X, return_std=True)
        return mean, std


class ConformalQuantiles:
    """CatBoost's quantiles, widened to cover an inner fifth (conformalised quantile regression)."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Floats, y: Floats) -> Self:
        X, X_inner, y, y_inner = train_test_split(X, y, test_size=0.2, random_state=self.seed)
        self.mean, self.std = float(y.mean()), float(y.std())
        levels = sorted({0.5, *(side for c in COVERAGES for side in tails(c))})
        self.levels = levels
        self.model = boosted(X, (y - self.mean) / self.std, levels, self.seed)
        self.margins = {c: self._margin(X_inner, y_inner, c) for c in COVERAGES}
        return self

    def predict(self, X: Floats) -> Floats:
        return self._quantiles(X)[:, self.levels.index(0.5)]

    def predict_interval(self, X: Floats, coverage: float) -> Floats:
        margin = self.margins[coverage]
        ends = self._ends(X, coverage) + np.array([-margin, margin])
        # A negative margin may turn a narrow interval around; its middle is what remains.
        crossed = ends[:, 0] > ends[:, 1]
        ends[crossed] = ends[crossed].mean(axis=1, keepdims=True)
        return ends

    def _margin(self, X: Floats, y: Floats, coverage: float) -> float:
        lower, upper = self._ends(X, coverage).T
        outside = np.sort(np.maximum(lower - y, y - upper))
        rank = int(np.ceil((len(y) + 1) * coverage))
        return float(outside[min(rank, len(y)) - 1])

    def _ends(self, X: Floats, coverage: float) -> Floats:
        return self._quantiles(X)[:, [self.levels.index(side) for side in tails(coverage)]]

    def _quantiles(self, X: Floats) -> Floats:
        return self.mean + self.std * np.sort(self.model.predict(X), axis=1)


class CrossConformal:
    """MAPIE's CV+ intervals around LightGBM, five folds, both with their own settings."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Floats, y: Floats) -> Self:
        from lightgbm import LGBMRegressor
        from mapie.regression import CrossConformalRegressor

        model = LGBMRegressor(n_jobs=1, random_state=self.seed, verbose=-1)
        self.model = CrossConformalRegressor(
            model, confidence_level=list(COVERAGES), cv=5, random_state=self.seed
        ).fit_conformalize(X, y)
        return self

    def predict(self, X: Floats) -> Floats:
        return np.asarray(self.model.predict(X))

    def predict_interval(self, X: Floats, coverage: float) -> Floats:
        return np.asarray(self.model.predict_interval(X)[1][:, :, COVERAGES.index(coverage)])


class Marginal:
    """The training targets' own distribution: a Gaussian for densities, quantiles for intervals."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Floats, y: Floats) -> Self:
        self.y = y
        return self

    def predict_dist(self, X: Floats) -> Distribution:
        return Normal(np.full(len(X), self.y.mean()), np.full(len(X), self.y.std()))

    def predict(self, X: Floats) -> Floats:
        return np.full(len(X), self.y.mean())

    def predict_interval(self, X: Floats, coverage: float) -> Floats:
        return np.tile(np.quantile(self.y, tails(coverage)), (len(X), 1))


def ensembles(seed: int) -> DeepEnsembleRegressor:
    """Five networks of 50 units, as in the paper; up to 400 epochs, because they may stop early."""
    return DeepEnsembleRegressor(epochs=400, early_stopping=True, patience=40, random_state=seed)


def sampled(X: Floats, y: Floats, n_rows: int, seed: int) -> tuple[Floats, Floats]:
    """At most ``n_rows`` of the rows, at random."""
    rows = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    return X[rows], y[rows]


def boosted(X: Floats, y: Floats, levels: list[float], seed: int) -> CatBoostRegressor:
    """CatBoost's quantiles, of at most 1,000 rounds, cut at the best round on an inner tenth."""
    X, X_inner, y, y_inner = train_test_split(X, y, test_size=0.1, random_state=seed)
    model = CatBoostRegressor(
        loss_function="MultiQuantile:alpha=" + ",".join(map(str, levels)),
        iterations=1_000,
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )
    return model.fit(X, y, eval_set=(X_inner, y_inner), early_stopping_rounds=50)


def tails(coverage: float) -> tuple[float, float]:
    """Levels of a central interval's ends."""
    return round((1 - coverage) / 2, 6), round((1 + coverage) / 2, 6)


PEERS: dict[str, Callable[[int], Method]] = {
    "marginal": Marginal,
    "ridge": Ridge,
    "catboost": partial(Compared, "catboost"),
    "quantiles": ConformalQuantiles,
    "mapie": CrossConformal,
    "ensembles": ensembles,
    "ngboost": partial(Compared, "ngboost", n_rows=NGBOOST_ROWS),
    "gp": GaussianProcess,
}
