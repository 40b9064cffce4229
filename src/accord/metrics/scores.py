"""Scores row by row: errors of the predicted mean, and scores of the whole distribution.

Lower is better, except for `r2` and `agreement`.
"""

from typing import Literal, Required, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import RandomState
from accord._types import Floats
from accord.agreement import Rule, Within, probability_of_agreement
from accord.distributions import Distribution, Empirical, gaussian_match
from accord.metrics.inputs import (
    PointPredictions,
    Predictions,
    as_array,
    averaged,
    check_enough_rows,
    finite,
    mean_of,
    point,
    predictive,
    probabilities,
    quantile_table,
    row_weights,
    targets,
)


@overload
def squared_error(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[PointPredictions]
) -> float: ...
@overload
def squared_error(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[PointPredictions]
) -> Floats: ...
def squared_error(
    *,
    y_true: ArrayLike,
    mean: ArrayLike | None = None,
    dist: Distribution | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """(t − μ)², whose average is the mean squared error.

    **Shape**: ``y_true`` and ``mean`` (N,) or (N, K); the same for ``average=False``.

    >>> squared_error(y_true=[1.0, 2.0], mean=[1.0, 4.0])
    2.0
    """
    y = targets(y_true)
    return averaged((y - point(y, dist=dist, mean=mean)) ** 2, average, sample_weight)


@overload
def mae(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[PointPredictions]
) -> float: ...
@overload
def mae(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[PointPredictions]
) -> Floats: ...
def mae(
    *,
    y_true: ArrayLike,
    mean: ArrayLike | None = None,
    dist: Distribution | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Mean absolute error |t − μ|.

    **Shape**: ``y_true`` and ``mean`` (N,) or (N, K); the same for ``average=False``.

    >>> mae(y_true=[1.0, 2.0], mean=[1.0, 4.0], average=False)
    array([0., 2.])
    """
    y = targets(y_true)
    return averaged(np.abs(y - point(y, dist=dist, mean=mean)), average, sample_weight)


def rmse(
    *,
    y_true: ArrayLike,
    mean: ArrayLike | None = None,
    dist: Distribution | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Root mean squared error; with several outputs the mean of theirs, as in scikit-learn.

    **Shape**: ``y_true`` and ``mean`` (N,) or (N, K).

    >>> rmse(y_true=[0.0, 0.0], mean=[3.0, 4.0])
    3.5355339059327378
    """
    squares = squared_error(y_true=y_true, mean=mean, dist=dist, average=False)
    return float(np.sqrt(mean_of(squares, row_weights(sample_weight, squares))).mean())


def r2(
    *,
    y_true: ArrayLike,
    mean: ArrayLike | None = None,
    dist: Distribution | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the variance explained, 1 − Σ(t − μ)² / Σ(t − t̄)²; averaged over outputs.

    A constant target has no variance to explain: 1 if it is met exactly, otherwise 0, as in
    scikit-learn.

    **Shape**: ``y_true`` and ``mean`` (N,) or (N, K), N ≥ 2.

    >>> r2(y_true=[1.0, 2.0, 3.0], mean=[1.0, 2.0, 4.0])
    0.5
    """
    y = targets(y_true)
    check_enough_rows(len(y), 2, "R²")
    weight = row_weights(sample_weight, y)
    squares = squared_error(y_true=y, mean=mean, dist=dist, average=False)
    residual, total = mean_of(squares, weight), mean_of((y - mean_of(y, weight)) ** 2, weight)
    constant = total == 0
    unexplained = residual / np.where(constant, 1.0, total)
    share = np.where(constant, np.where(residual == 0, 1.0, 0.0), 1.0 - unexplained)
    return float(share.mean())


class RuledPredictions(Predictions, total=False):
    """Predictions and the rule under which they are to agree."""

    rule: Required[Rule | float]
    random_state: RandomState


class SampledPredictions(Predictions, total=False):
    """Predictions as a distribution, as moments, as draws, or as quantiles at stated levels."""

    samples: ArrayLike | None
    quantiles: ArrayLike | None
    alpha: ArrayLike | None


@overload
def nll(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[Predictions]
) -> float: ...
@overload
def nll(*, y_true: ArrayLike, average: Literal[False], **given: Unpack[Predictions]) -> Floats: ...
def nll(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Negative log-likelihood −log q(t) of the distribution itself.

    With ``mean`` and ``std`` that distribution is Gaussian.

    **Shape**: ``y_true`` (N,) or (N, K), as ``dist``; the same for ``average=False``.

    >>> from accord import Laplace
    >>> nll(y_true=[0.0], dist=Laplace([0.0], [0.5]))
    0.0
    """
    y = targets(y_true)
    q = predictive(y, dist=dist, mean=mean, std=std)
    return averaged(-as_array("log_prob", q.log_prob(y)), average, sample_weight)


@overload
def gaussian_nll(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[Predictions]
) -> float: ...
@overload
def gaussian_nll(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[Predictions]
) -> Floats: ...
def gaussian_nll(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Negative log-likelihood ½ log 2πσ² + (t − μ)² / 2σ² of the first two moments.

    What the paper's tables report: a mixture is replaced by the Gaussian of its mean and variance.

    **Shape**: ``y_true`` (N,) or (N, K), as ``dist``; the same for ``average=False``.

    >>> round(gaussian_nll(y_true=[1.0], mean=[0.0], std=[1.0]), 4)
    1.4189
    """
    y = targets(y_true)
    q = gaussian_match(predictive(y, dist=dist, mean=mean, std=std))
    losses = nll(y_true=y, dist=q, average=False)
    return averaged(losses, average, sample_weight)


@overload
def crps(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[SampledPredictions]
) -> float: ...
@overload
def crps(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[SampledPredictions]
) -> Floats: ...
def crps(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    quantiles: ArrayLike | None = None,
    alpha: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Continuous ranked probability score ∫ (F(x) − 1{x ≥ t})² dx, in the target's units.

    Exact for every single family, for mixtures of Gaussians, smoothed by a tolerance or not, and
    for draws (the score of their step function). Other mixtures and smoothed families are
    integrated with an error below 1e-8 standard deviations. ``quantiles`` at the levels ``alpha``
    give twice the mean pinball loss, which tends to the score as equally spaced levels grow dense.

    **Shape**: ``y_true`` (N,) or (N, K), as ``dist``; ``samples`` (S, N) or (S, N, K);
    ``quantiles`` (N, L) or (N, K, L) with ``alpha`` (L,); the shape of ``y_true`` for
    ``average=False``.

    >>> round(crps(y_true=[0.0], mean=[0.0], std=[1.0]), 4)
    0.2337
    """
    y = targets(y_true)
    forms = (samples is not None) + (quantiles is not None)
    if forms > 1 or (forms and any(value is not None for value in (dist, mean, std))):
        raise TypeError(
            "predictions must be one of dist=, mean= with std=, samples=, quantiles= with alpha=, "
            "got several. Pass one of the forms."
        )
    if samples is not None:
        scores = Empirical(_draws(samples, y)).crps(y)
        return averaged(scores, average, sample_weight)
    if quantiles is not None:
        losses = pinball(y_true=y, quantiles=quantiles, alpha=alpha, average=False)
        return averaged(2 * losses.mean(axis=-1), average, sample_weight)
    q = predictive(y, dist=dist, mean=mean, std=std)
    return averaged(as_array("crps", q.crps(y)), average, sample_weight)


@overload
def pinball(
    *,
    y_true: ArrayLike,
    quantiles: ArrayLike | None = None,
    alpha: ArrayLike | None = None,
    average: Literal[True] = True,
    **given: Unpack[Predictions],
) -> float: ...
@overload
def pinball(
    *,
    y_true: ArrayLike,
    quantiles: ArrayLike | None = None,
    alpha: ArrayLike | None = None,
    average: Literal[False],
    **given: Unpack[Predictions],
) -> Floats: ...
def pinball(
    *,
    y_true: ArrayLike,
    quantiles: ArrayLike | None = None,
    alpha: ArrayLike | None = None,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Pinball loss (α − 1{t < q_α}) (t − q_α) of predicted quantiles, averaged over the levels.

    ``quantiles`` holds one column per level of ``alpha``; a distribution gives its own.

    **Shape**: ``y_true`` (N,) or (N, K); ``quantiles`` (N, L) or (N, K, L), ``alpha`` (L,);
    the shape of ``quantiles`` for ``average=False``.

    >>> pinball(y_true=[1.0], quantiles=[[0.0, 3.0]], alpha=[0.1, 0.9], average=False)
    array([[0.1, 0.2]])
    """
    y = targets(y_true)
    if alpha is None:
        raise TypeError("alpha must name the quantiles' levels, got None. Pass alpha=[0.05, 0.95].")
    levels = probabilities("alpha", alpha)
    if quantiles is None:
        q = predictive(y, dist=dist, mean=mean, std=std)
        quantiles = as_array("quantile", q.quantile(levels))
    excess = y[..., None] - quantile_table(y, quantiles, levels)
    return averaged(np.maximum(levels * excess, (levels - 1) * excess), average, sample_weight)


@overload
def agreement(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[RuledPredictions]
) -> float: ...
@overload
def agreement(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[RuledPredictions]
) -> Floats: ...
def agreement(
    *,
    y_true: ArrayLike,
    rule: Rule | float,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    random_state: RandomState = 0,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Probability p(A|M,D,B) that model and data agree under a rule; higher is better.

    A number ε as the rule means agreement within ±ε. ``random_state`` serves rules that only Monte
    Carlo can judge.

    **Shape**: ``y_true`` (N,) or (N, K), as ``dist``; the same for ``average=False``.

    >>> round(agreement(y_true=[0.0], mean=[0.0], std=[1.0], rule=1.96), 3)
    0.95
    """
    y = targets(y_true)
    q = predictive(y, dist=dist, mean=mean, std=std)
    stated = rule if isinstance(rule, Rule) else Within(rule)
    agreed = probability_of_agreement(q, y, stated, random_state=random_state)
    return averaged(as_array("probability", agreed.probability), average, sample_weight)


def _draws(samples: ArrayLike, y: Floats) -> Floats:
    draws = finite("samples", samples)
    if draws.ndim != y.ndim + 1 or draws.shape[1:] != y.shape or not len(draws):
        raise ValueError(
            f"samples must have shape (S, {', '.join(map(str, y.shape))}), draws first, "
            f"got {draws.shape}. Transpose it."
        )
    return draws
