"""An exact Gaussian process for small tables: what a smooth function with few rows is best met by.

The kernel is Matérn 5/2 with a length per feature, k(x, x') = a (1 + √5 r + 5r²/3) exp(−√5 r) with
r² = Σ_j (x_j − x'_j)² / ℓ_j², and a noise variance s². Lengths, a and s² maximise the marginal
likelihood of a subset of the rows, with a weak prior on the lengths; every fold then conditions on
all of its rows. The slope of that likelihood is written in matrix products: differentiated
automatically it takes three times as long. Many features share one length: so many lengths could
not be learnt, and where features go together (a spectrum) the long shared one leaves a linear model
that uses their small differences, which networks do not find. scikit-learn's regressor optimises on
all rows, which costs minutes where this takes seconds, and its fitted state is no plain array.
"""

import math
from collections.abc import Sequence
from typing import Self, final

import numpy as np
import torch
from scipy.linalg import cholesky, lapack
from scipy.optimize import minimize

from accord._types import Floats, Indices
from accord.portfolio.components import Components
from accord.portfolio.encoding import FeatureEncoding
from accord.portfolio.folds import at_most
from accord.portfolio.recipes import GaussianProcessRecipe
from accord.portfolio.targets import ScaledRows, trained_on
from accord.training import Listener

# A fold conditions on at most this many rows.
_MOST_ROWS = 2_000
# With fewer rows, in all or for each length, a kernel that has seen those held out knows too much
# about them.
_ROWS_FOR_ONE_KERNEL, _ROWS_PER_LENGTH = 250, 15
_SUBSET = 500
# More features than this share one length.
_MOST_LENGTHS = 150
# The search ends where a step gains less than this share of the evidence: what more would bring,
# some thousandths of a nat in all, no prediction shows.
_ITERATIONS, _LEAST_GAIN = 50, 1e-6
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
        self._maximise_evidence(x[chosen], z[chosen])
        return self

    def condition(self, x: Floats, z: Floats, folds: Sequence[Indices]) -> Self:
        """Condition one posterior per fold on the rows that it may see."""
        self.rows_ = [x[rows] for rows in folds]
        self.factor_, self.weight_ = [], []
        for rows, own in zip(folds, self.rows_, strict=True):
            factor = _cholesky(self._covariance(own))
            inverse = np.ascontiguousarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])
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
        r = _scaled_distances(one / self.lengths_, other / self.lengths_)
        kernel = _matern(r, _decay(r))
        kernel *= self.amplitude_
        return kernel

    def _covariance(self, own: Floats) -> Floats:
        covariance = self._kernel(own, own)
        covariance.flat[:: len(own) + 1] += self.noise_ + _JITTER * self.amplitude_
        return covariance

    def _maximise_evidence(self, x: Floats, z: Floats) -> None:
        """Logarithms of the lengths, the amplitude and the noise, by L-BFGS."""
        d = x.shape[1]
        n_lengths = _n_lengths(d)
        usual = math.log(1.3 * math.sqrt(d))  # rows of independent features are about √(2d) apart

        def loss(values: Floats) -> tuple[float, Floats]:
            evidence, slope = negative_log_evidence(x, z, values)
            beside = values[:n_lengths] - usual
            slope[:n_lengths] += 0.5 * beside
            return evidence + 0.25 * float(beside @ beside), slope

        start = np.concatenate([np.full(n_lengths, usual), [0.0, math.log(0.1)]])
        bounds = [(usual - 4, usual + 5)] * n_lengths + [(-4.0, 5.0)]
        bounds += [(math.log(_SMALLEST_NOISE), math.log(_LARGEST_NOISE))]
        found = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _ITERATIONS, "ftol": _LEAST_GAIN},
        ).x
        self.lengths_ = np.full(d, np.exp(found[:-2]))
        self.amplitude_, self.noise_ = float(np.exp(found[-2])), float(np.exp(found[-1]))


@final
class GaussianProcessModel:
    """An exact Gaussian process per fold; one kernel serves all folds where rows are many.

    Attributes:
        processes_: One per fold, each with one posterior.
    """

    def __init__(self, recipe: GaussianProcessRecipe) -> None:
        self.recipe = recipe

    def fit(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> Self:
        self.encoding_ = FeatureEncoding().fit(rows.x)
        x, z = self.encoding_(rows.x), trained_on(rows.z)
        if len(z) < max(_ROWS_FOR_ONE_KERNEL, _ROWS_PER_LENGTH * _n_lengths(x.shape[1])):
            kernels = [GaussianProcess().learn_kernel(x[own], z[own], seed=seed) for own in folds]
        else:
            used = np.unique(np.concatenate(folds))
            kernels = [GaussianProcess().learn_kernel(x[used], z[used], seed=seed)] * len(folds)
        self._condition(kernels, rows, folds, seed)
        return self

    def elsewhere(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "GaussianProcessModel":
        other = GaussianProcessModel(self.recipe)
        other.encoding_ = self.encoding_
        other._condition([self.processes_[0]] * len(folds), rows, folds, seed)
        return other

    def _condition(
        self,
        kernels: Sequence[GaussianProcess],
        rows: ScaledRows,
        folds: Sequence[Indices],
        seed: int,
    ) -> None:
        x, z = self.encoding_(rows.x), trained_on(rows.z)
        self.processes_ = [
            kernel.unconditioned().condition(x, z, [at_most(own, _MOST_ROWS, seed)])
            for kernel, own in zip(kernels, folds, strict=True)
        ]

    def components(self, x: Floats, fold: int | None = None) -> Components:
        encoded = self.encoding_(x)
        chosen = self.processes_ if fold is None else [self.processes_[fold]]
        return Components.stacked([Components.single(*p.predict(0, encoded)) for p in chosen])


def _n_lengths(d: int) -> int:
    return d if d <= _MOST_LENGTHS else 1


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


def _matern(r: Floats, decay: Floats) -> Floats:
    """(1 + r + r²/3) exp(−r), given exp(−r): of distances times √5."""
    kernel: Floats = r / 3
    kernel += 1
    kernel *= r
    kernel += 1
    kernel *= decay
    return kernel


def _decay(r: Floats) -> Floats:
    """exp(−r): torch's is twice as fast as numpy's on processors without AVX-512."""
    decay: Floats = torch.from_numpy(r).neg().exp_().numpy()
    return decay


def _scaled_distances(a: Floats, b: Floats) -> Floats:
    """√5 r of all pairs of rows that were divided by the lengths."""
    squares = a @ b.T
    squares *= -2
    squares += np.square(a).sum(axis=1)[:, None]
    squares += np.square(b).sum(axis=1)
    squares *= 5
    np.maximum(squares, 5e-12, out=squares)
    return np.sqrt(squares, out=squares)


def negative_log_evidence(x: Floats, z: Floats, log_parameters: Floats) -> tuple[float, Floats]:
    """−log p(z) without its constant, and its slope by the logarithms of ℓ, a and s².

    With K the covariance of the targets and α = K⁻¹z, it is ½ zᵀα + ½ log|K|, and its slope by θ is
    ½ Σ_ij G_ij ∂K_ij/∂θ with G = K⁻¹ − ααᵀ. With r the distances of ``_matern``,
    ∂K_ij/∂log ℓ_d = (5/3) a (1 + r_ij) exp(−r_ij) (s_id − s_jd)² for scaled rows s = x/ℓ; and since
    W = G (1 + r) exp(−r), elementwise, is symmetric, Σ_ij W_ij (s_id − s_jd)² =
    2 Σ_i s_id² Σ_j W_ij − 2 (sᵀWs)_dd. As K = a C + s² I, the sum for log a is that of
    tr GK = N − zᵀα without s² tr G.

    **Shape**: x (N, d), z (N,), log_parameters (l + 2,) with l = d lengths or one for all features.
    """
    lengths, (amplitude, noise) = np.exp(log_parameters[:-2]), np.exp(log_parameters[-2:])
    scaled = x / lengths
    r = _scaled_distances(scaled, scaled)
    decay = _decay(r)
    covariance = _matern(r, decay)
    covariance *= amplitude
    covariance.flat[:: len(x) + 1] += noise + _JITTER * amplitude
    inverse, half_log_determinant = _inverted(covariance)
    solved = inverse @ z
    explained = float(z @ solved)

    weight = inverse
    weight -= np.outer(solved, solved)
    by_noise = 0.5 * noise * float(np.trace(weight))
    by_amplitude = 0.5 * (len(z) - explained) - by_noise
    r += 1
    weight *= r
    weight *= decay
    pairs = weight.sum(axis=1) @ np.square(scaled) - (scaled * (weight @ scaled)).sum(axis=0)
    by_length = 5 / 3 * amplitude * (pairs if len(lengths) > 1 else pairs.sum(keepdims=True))
    slope = np.concatenate([by_length, [by_amplitude, by_noise]])
    return 0.5 * explained + half_log_determinant, slope


def _inverted(covariance: Floats) -> tuple[Floats, float]:
    """K⁻¹ and ½ log|K|; the covariance is overwritten."""
    factor = _cholesky(covariance)
    half_log_determinant = float(np.log(factor.diagonal()).sum())
    triangle = np.tril(lapack.dpotri(factor, lower=1, overwrite_c=1)[0])
    diagonal = triangle.diagonal().copy()
    inverse: Floats = triangle + triangle.T
    inverse.flat[:: len(diagonal) + 1] = diagonal
    return inverse, half_log_determinant


def _cholesky(covariance: Floats) -> Floats:
    """L with L Lᵀ = K, in place of K: in LAPACK's order a symmetric matrix is its own transpose."""
    factor: Floats = cholesky(covariance.T, lower=True, overwrite_a=True, check_finite=False)
    return factor
