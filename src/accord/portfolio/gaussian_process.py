"""An exact Gaussian process for small tables: what a smooth function with few rows is best met by.

The kernel is Matérn 5/2 with a length per feature, k(x, x') = a (1 + √5 r + 5r²/3) exp(−√5 r) with
r² = Σ_j (x_j − x'_j)² / ℓ_j², and a noise variance s². Lengths, a and s² maximise the marginal
likelihood of a subset of the rows, with a weak prior on the lengths; every fold then conditions on
all of its rows, by one inverse for all folds. The slope of that likelihood is written in matrix
products: differentiated automatically it takes three times as long. Many features share one length:
so many lengths could not be learnt, and where features go together (a spectrum) the long shared one
leaves a linear model that uses their small differences, which networks do not find. scikit-learn's
regressor optimises on all rows, which costs minutes where this takes seconds, and its fitted state
is no plain array.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self, final

import numpy as np
import torch
from scipy import optimize
from scipy.linalg import blas, cholesky, lapack

from accord._types import Floats, Indices
from accord.portfolio.components import Components
from accord.portfolio.encoding import FeatureEncoding, ScaledRows, trained_on
from accord.portfolio.recipes import GaussianProcessRecipe
from accord.training import Listener

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


@final
class GaussianProcess:
    """Posteriors of standardised targets, one per fold, with one kernel.

    What a fold may see are all rows but some, H, so that one inverse serves all folds. With the
    covariance LLᵀ = P⁻¹ of all targets z, α = Pz, and k, y = L⁻¹k, w = L⁻ᵀy for a new row,

        mean = kᵀα − w_Hᵀ P_HH⁻¹ α_H,    variance = a + s² − ‖y‖² + w_Hᵀ P_HH⁻¹ w_H,

    since the inverse of the covariance without the rows H is P − P_·H P_HH⁻¹ P_H· (Schur). P_HH⁻¹
    is what the other rows leave unknown of those. (‖y‖² is kᵀPk, which loses half of its digits.)

    Attributes:
        lengths_: ℓ, (d,); amplitude_: a; noise_: s².
        rows_: The rows that any fold may see, (n, d).
        hidden_: Places of the rows that each fold may not see.
        weight_: α, (n,).
    """

    lengths_: Floats
    amplitude_: float
    noise_: float
    rows_: Floats
    hidden_: list[Indices]
    weight_: Floats

    def learn_kernel(self, x: Floats, z: Floats, *, seed: int) -> Self:
        """Lengths, amplitude and noise, from a random subset of the rows.

        **Shape**: x (N, d), z (N,).
        """
        chosen = np.random.default_rng(seed).permutation(len(z))[:_SUBSET]
        self._maximise_evidence(x[chosen], z[chosen])
        return self

    def condition(self, x: Floats, z: Floats, folds: Sequence[Indices]) -> "GaussianProcess":
        """A process with this kernel, and a posterior for the rows that each fold may see."""
        used = np.unique(np.concatenate(folds))
        process = GaussianProcess()
        process.lengths_, process.rows_ = self.lengths_, x[used]
        process.amplitude_, process.noise_ = self.amplitude_, self.noise_
        process.hidden_ = [np.flatnonzero(~np.isin(used, own)) for own in folds]
        process.weight_ = process.factor.T @ (process.factor @ z[used])
        return process

    @cached_property
    def factor(self) -> Floats:
        """L⁻¹. It is made again after loading, in less time than it would take to read."""
        covariance = self._kernel(self.rows_, self.rows_)
        covariance.flat[:: len(covariance) + 1] += self.noise_ + _JITTER * self.amplitude_
        return _inverse_factor(covariance)

    @cached_property
    def corrections(self) -> list[tuple[Floats, Floats]]:
        """For each fold C with CᵀC = P_HH⁻¹, and P_HH⁻¹ α_H."""
        found = []
        for hidden in self.hidden_:
            own = self.factor[:, hidden]
            factor = _inverse_factor(own.T @ own)
            found.append((factor, factor.T @ (factor @ self.weight_[hidden])))
        return found

    def predict(self, x: Floats, fold: int | None = None) -> tuple[Floats, Floats]:
        """Mean and standard deviation, noise included, of one fold's posterior or of all.

        **Shape**: x (n, d) → (F, n) each.
        """
        folds = range(len(self.hidden_)) if fold is None else [fold]
        sees_all = not any(len(self.hidden_[number]) for number in folds)
        mean, variance = np.empty((2, len(folds), len(x)))
        for start in range(0, len(x), _CHUNK):
            own = slice(start, start + _CHUNK)
            cross = self._kernel(x[own], self.rows_)
            explained, solved = _solved(cross, self.factor, squares_only=sees_all)
            mean[:, own] = cross @ self.weight_
            variance[:, own] = self.amplitude_ + self.noise_ - explained
            for place, number in enumerate(folds):
                factor, weight = self.corrections[number]
                hidden = solved[:, self.hidden_[number]]
                unknown = hidden @ factor.T
                mean[place, own] -= hidden @ weight
                variance[place, own] += np.einsum("ij,ij->i", unknown, unknown)
        return mean, np.sqrt(np.maximum(variance, 0.5 * self.noise_))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name.endswith("_")}

    def _kernel(self, one: Floats, other: Floats) -> Floats:
        r = _scaled_distances(one / self.lengths_, other / self.lengths_)
        kernel = _matern(r, _decay(r))
        kernel *= self.amplitude_
        return kernel

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
        found = optimize.minimize(
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
        processes_: One for all folds, or one per fold with a kernel of its own.
    """

    def __init__(self, recipe: GaussianProcessRecipe) -> None:
        self.recipe = recipe

    def fit(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> Self:
        self.encoding_ = FeatureEncoding().fit(rows.x)
        x, z = self.encoding_(rows.x), trained_on(rows.z)
        if len(z) < max(_ROWS_FOR_ONE_KERNEL, _ROWS_PER_LENGTH * _n_lengths(x.shape[1])):
            sharing = [[own] for own in folds]
        else:
            sharing = [list(folds)]
        self.processes_ = []
        for own in sharing:
            used = np.unique(np.concatenate(own))
            kernel = GaussianProcess().learn_kernel(x[used], z[used], seed=seed)
            self.processes_.append(kernel.condition(x, z, own))
        return self

    def elsewhere(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "GaussianProcessModel":
        other = GaussianProcessModel(self.recipe)
        other.encoding_ = self.encoding_
        x, z = self.encoding_(rows.x), trained_on(rows.z)
        other.processes_ = [self.processes_[0].condition(x, z, folds)]
        return other

    def components(self, x: Floats, fold: int | None = None) -> Components:
        encoded = self.encoding_(x)
        if fold is None:
            moments = [process.predict(encoded) for process in self.processes_]
        elif len(self.processes_) == 1:
            moments = [self.processes_[0].predict(encoded, fold)]
        else:
            moments = [self.processes_[fold].predict(encoded)]
        return Components.stacked(
            [Components.single(*each) for found in moments for each in zip(*found, strict=True)]
        )


def _n_lengths(d: int) -> int:
    return d if d <= _MOST_LENGTHS else 1


def _solved(rows: Floats, triangle: Floats, *, squares_only: bool) -> tuple[Floats, Floats]:
    """‖Tv‖² and TᵀTv for each row v and a lower triangle T, whose half that is zero costs nothing.

    With ``squares_only`` the second is left at 0. In the order of BLAS all matrices are transposed.

    **Shape**: rows (m, n), triangle (n, n) → (m,) and (m, n).
    """
    product = blas.dtrmm(1.0, triangle.T, rows.T, trans_a=1)
    squares = np.einsum("ij,ij->j", product, product)
    if squares_only:
        return squares, np.zeros(rows.shape)
    return squares, blas.dtrmm(1.0, triangle.T, product, overwrite_b=1).T


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


def _inverse_factor(covariance: Floats) -> Floats:
    """L⁻¹ with L Lᵀ = K; the covariance is overwritten."""
    if not len(covariance):
        return covariance
    factor = _cholesky(covariance)
    return np.ascontiguousarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])


def _cholesky(covariance: Floats) -> Floats:
    """L with L Lᵀ = K, in place of K: in LAPACK's order a symmetric matrix is its own transpose."""
    factor: Floats = cholesky(covariance.T, lower=True, overwrite_a=True, check_finite=False)
    return factor
