"""An exact Gaussian process for small tables: what a smooth function with few rows is best met by.

The kernel is Matérn 5/2 with a length per feature, k(x, x') = a (1 + √5 r + 5r²/3) exp(−√5 r) with
r² = Σ_j (x_j − x'_j)² / ℓ_j², and a noise variance s². Lengths, a and s² maximise the marginal
likelihood of a subset of the rows, with a weak prior on the lengths; every fold then conditions on
all of its rows. Many features share one length: so many lengths could not be learnt, and where
features go together (a spectrum) the long shared one leaves a linear model that uses their small
differences, which networks do not find. scikit-learn's regressor optimises on all rows, which costs
minutes where this takes seconds, and its fitted state is no plain array.
"""

import math
from collections.abc import Sequence
from typing import Self, final

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from accord._types import Floats, Indices

_SUBSET = 500
# More features than this share one length.
_MOST_LENGTHS = 150
_ITERATIONS = 50
# The relative jitter that keeps a Cholesky factor of rows at the same place possible.
_JITTER = 1e-6
_SMALLEST_NOISE, _LARGEST_NOISE = 1e-5, 2.0
# Rows predicted at a time: their covariances stay in the processor's cache.
_CHUNK = 512
# Rows of a triangular matrix that are multiplied at a time, without what is zero beside them.
_BLOCK = 256


@final
class GaussianProcess:
    """A posterior per fold, of standardised targets.

    Attributes:
        lengths_: ℓ, (d,); amplitude_: a; noise_: s².
        rows_: The rows that each fold conditions on.
        factor_: Inverse of the Cholesky factor of each fold's covariance, (n, n).
        weight_: Its solution for the targets, (n,).
    """

    def learn_kernel(self, x: Floats, z: Floats, *, seed: int) -> Self:
        """Lengths, amplitude and noise, from a random subset of the rows.

        **Shape**: x (N, d), z (N,).
        """
        chosen = np.random.default_rng(seed).permutation(len(z))[:_SUBSET]
        self._maximise_evidence(torch.as_tensor(x[chosen]), torch.as_tensor(z[chosen]))
        return self

    def condition(self, x: Floats, z: Floats, folds: Sequence[Indices]) -> Self:
        """Condition one posterior per fold on the rows that it may see."""
        self.rows_ = [x[rows] for rows in folds]
        self.factor_, self.weight_ = [], []
        for rows, own in zip(folds, self.rows_, strict=True):
            factor = torch.linalg.cholesky(self._covariance(own))
            unit = torch.eye(len(own), dtype=factor.dtype)
            inverse = torch.linalg.solve_triangular(factor, unit, upper=False).numpy()
            self.factor_.append(inverse)
            self.weight_.append(inverse.T @ (inverse @ z[rows]))
        return self

    def unconditioned(self) -> "GaussianProcess":
        """The same kernel, without rows."""
        bare = GaussianProcess()
        bare.lengths_, bare.amplitude_, bare.noise_ = self.lengths_, self.amplitude_, self.noise_
        return bare

    def predict(self, fold: int, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, noise included, of one fold's posterior.

        **Shape**: x (n, d) → (n,) each.
        """
        means, deviations = [], []
        for start in range(0, max(len(x), 1), _CHUNK):
            cross = self._kernel(x[start : start + _CHUNK], self.rows_[fold])
            explained = _squared_length(cross, self.factor_[fold])
            variance = self.amplitude_ - explained + self.noise_
            means.append(cross @ self.weight_[fold])
            deviations.append(np.sqrt(np.maximum(variance, 0.5 * self.noise_)))
        return np.concatenate(means), np.concatenate(deviations)

    def _kernel(self, one: Floats, other: Floats) -> Floats:
        lengths = torch.as_tensor(self.lengths_)
        a, b = torch.as_tensor(one) / lengths, torch.as_tensor(other) / lengths
        r = _scaled_distances(a, b)
        # _matern without a copy at each step, as no gradient is asked for
        powers = (r / 3).add_(1).mul_(r).add_(1).mul_(self.amplitude_)
        kernel: Floats = powers.mul_(r.neg_().exp_()).numpy()
        return kernel

    def _covariance(self, own: Floats) -> Tensor:
        diagonal = self.noise_ + _JITTER * self.amplitude_
        return torch.as_tensor(self._kernel(own, own)) + diagonal * torch.eye(len(own)).double()

    def _maximise_evidence(self, x: Tensor, z: Tensor) -> None:
        """Logarithms of the lengths, the amplitude and the noise, by L-BFGS."""
        d = x.shape[1]
        n_lengths = d if d <= _MOST_LENGTHS else 1
        usual = math.log(1.3 * math.sqrt(d))  # rows of independent features are about √(2d) apart

        def loss(values: Floats) -> tuple[float, Floats]:
            p = torch.tensor(values, requires_grad=True)
            prior = 0.25 * (p[:n_lengths] - usual).square().sum()
            evidence = _negative_log_evidence(x, z, p) + prior
            (slope,) = torch.autograd.grad(evidence, p)
            return evidence.item(), slope.numpy()

        start = np.concatenate([np.full(n_lengths, usual), [0.0, math.log(0.1)]])
        bounds = [(usual - 4, usual + 5)] * n_lengths + [(-4.0, 5.0)]
        bounds += [(math.log(_SMALLEST_NOISE), math.log(_LARGEST_NOISE))]
        found = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _ITERATIONS},
        ).x
        self.lengths_ = np.full(d, np.exp(found[:-2]))
        self.amplitude_, self.noise_ = float(np.exp(found[-2])), float(np.exp(found[-1]))


def _squared_length(rows: Floats, triangle: Floats) -> Floats:
    """‖L v‖² for each row v and a lower triangle L, about half of which is zero.

    **Shape**: rows (m, n), triangle (n, n) → (m,).
    """
    total = np.zeros(len(rows))
    for start in range(0, len(triangle), _BLOCK):
        end = start + _BLOCK
        block = rows[:, :end] @ triangle[start:end, :end].T
        total += np.einsum("ij,ij->i", block, block)
    return total


def _matern(a: Tensor, b: Tensor) -> Tensor:
    """(1 + √5 r + 5r²/3) exp(−√5 r) of all pairs of scaled rows."""
    r = _scaled_distances(a, b)
    kernel: Tensor = (1 + r + r.square() / 3) * torch.exp(-r)
    return kernel


def _scaled_distances(a: Tensor, b: Tensor) -> Tensor:
    """√5 r of all pairs of scaled rows."""
    lengths = a.square().sum(1)[:, None] + b.square().sum(1)
    squares = torch.addmm(lengths, a, b.T, alpha=-2.0)
    return math.sqrt(5) * squares.clamp(min=1e-12).sqrt()


def _negative_log_evidence(x: Tensor, z: Tensor, log_parameters: Tensor) -> Tensor:
    lengths, (amplitude, noise) = log_parameters[:-2].exp(), log_parameters[-2:].exp()
    scaled = x / lengths
    diagonal = (noise + _JITTER * amplitude) * torch.eye(len(x), dtype=x.dtype)
    factor = torch.linalg.cholesky(amplitude * _matern(scaled, scaled) + diagonal)
    solved = torch.cholesky_solve(z[:, None], factor)[:, 0]
    evidence: Tensor = 0.5 * z @ solved + factor.diagonal().log().sum()
    return evidence
