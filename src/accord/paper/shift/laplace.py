"""Laplace's approximation for the last layer of trained networks.

A network's mean is linear in its last hidden units φ(x), μ(x) = φ(x)·w. With its own variances
σᵢ² taken as known and a prior N(0, 1/λ) on each weight, the posterior's precision and the variance
that it adds to a prediction are

    H = Σᵢ φᵢ φᵢᵀ / σᵢ² + λ 1,    v(x) = φ(x)ᵀ H⁻¹ φ(x),

exactly as in Bayesian linear regression on φ. λ maximises the evidence at the trained weights,
½ P log λ − ½ λ |w|² − ½ log |H| (MacKay, 1992).
"""

import numpy as np

from accord._types import Floats
from accord.distributions import Distribution, Mixture, Normal
from accord.estimators import BVMRegressor

__all__ = ["last_layer", "posterior_variance", "prior_precision"]

_PRECISIONS = np.geomspace(1e-4, 1e4, 33)


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
