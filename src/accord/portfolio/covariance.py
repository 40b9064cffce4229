"""Covariances of Gaussian processes, and how they are learnt.

A covariance is a sum of up to three kernels, each with an amplitude and a length per feature,

    k(x, x') = Σ_c a_c (1 + √5 r_c + 5r_c²/3) exp(−√5 r_c),    r_c² = Σ_j (x_j − x'_j)² / ℓ_cj²,

(Matérn 5/2), with a noise variance s². A function that changes slowly with some features and
quickly with others is a sum of functions of each kind, of which one kernel with one set of lengths
knows nothing. Lengths, amplitudes and s² maximise the marginal likelihood of a subset of the rows,
with a weak prior on the lengths. The slope of that likelihood is written in matrix products:
differentiated automatically it takes three times as long. Many features share one length: so many
lengths could not be learnt, and where features go together (a spectrum) the long shared one leaves
a linear model that uses their small differences, which networks do not find.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import optimize
from scipy.linalg import cholesky, lapack

from accord._types import Floats

# A kernel is learnt on so many rows. Several have more to learn: their last steps, which take
# longer, are on more of them.
_FIRST_ROWS, _LAST_ROWS, _LAST_ITERATIONS = 500, 1_500, 15
# More features than this share one length.
_MOST_LENGTHS = 150
# The search ends where a step gains less than this share of the evidence: what more would bring,
# some thousandths of a nat in all, no prediction shows.
_ITERATIONS, _LEAST_GAIN = 50, 1e-6
# Where the search begins: logarithms of the lengths beside those of usual rows, and amplitudes.
_LENGTHS, _AMPLITUDES = (0.5, -0.5, -1.5), (1.0, 0.2, 0.1)
# The relative jitter that keeps a Cholesky factor of rows at the same place possible.
_JITTER = 1e-6
_SMALLEST_NOISE, _LARGEST_NOISE = 1e-5, 2.0
# Rows compared at a time: their covariances stay in the processor's cache.
CHUNK = 512


@dataclass(frozen=True)
class Covariance:
    """ℓ (C, d), a (C,) and s² of the module's formula."""

    lengths: Floats
    amplitudes: Floats
    noise: float

    @staticmethod
    def learnt(x: Floats, z: Floats, *, kernels: int = 1, seed: int) -> "Covariance":
        """The most likely sum of so many, from a random subset of the rows.

        **Shape**: x (N, d), z (N,).
        """
        order = np.random.default_rng(seed).permutation(len(z))
        first, last = order[:_FIRST_ROWS], order[:_LAST_ROWS]
        evidence = _Evidence(x[first], z[first], kernels)
        found = evidence.maximised(evidence.start, _ITERATIONS)
        if kernels > 1 and len(last) > len(first):
            found = _Evidence(x[last], z[last], kernels).maximised(found, _LAST_ITERATIONS)
        lengths, amplitudes, noise = _unpacked(np.exp(found), kernels)
        return Covariance(np.tile(lengths, (1, x.shape[1] // lengths.shape[1])), amplitudes, noise)

    @property
    def amplitude(self) -> float:
        """The variance of what is to be learnt, of a row far from all others."""
        return float(self.amplitudes.sum())

    def __call__(self, one: Floats, other: Floats) -> Floats:
        """Covariances of what is to be learnt. **Shape**: (m, d), (n, d) → (m, n)."""
        total = np.zeros((len(one), len(other)))
        for lengths, amplitude in zip(self.lengths, self.amplitudes, strict=True):
            a, b = one / lengths, other / lengths
            for start in range(0, len(one), CHUNK):
                r = _scaled_distances(a[start : start + CHUNK], b)
                kernel = _matern(r, _decay(r))
                kernel *= amplitude
                total[start : start + CHUNK] += kernel
        return total

    def inverse_factor(self, rows: Floats) -> Floats:
        """L⁻¹ with L Lᵀ the covariance of the rows' targets."""
        covariance = self(rows, rows)
        covariance.flat[:: len(covariance) + 1] += self.noise + _JITTER * self.amplitude
        return inverse_factor(covariance)


def n_lengths(d: int) -> int:
    """How many lengths are learnt for d features."""
    return d if d <= _MOST_LENGTHS else 1


@dataclass(frozen=True)
class _Evidence:
    """What rows say of the logarithms of lengths, amplitudes and noise."""

    x: Floats
    z: Floats
    kernels: int

    @property
    def start(self) -> Floats:
        """Where a search begins, and what the prior of the lengths is centred on."""
        d = self.x.shape[1]
        usual = math.log(1.3 * math.sqrt(d))  # rows of independent features are about √(2d) apart
        if self.kernels == 1:
            lengths, amplitudes = np.array([usual]), np.ones(1)
        else:
            lengths = usual + np.array(_LENGTHS[: self.kernels])
            amplitudes = np.array(_AMPLITUDES[: self.kernels])
        return np.concatenate(
            [np.repeat(lengths, n_lengths(d)), np.log(amplitudes), [math.log(0.1)]]
        )

    def maximised(self, start: Floats, iterations: int) -> Floats:
        """The most likely values, by L-BFGS."""
        usual = self.start
        lengths = slice(0, -self.kernels - 1)
        minor = slice(-self.kernels, -1)  # amplitudes of all kernels but the first

        def loss(values: Floats) -> tuple[float, Floats]:
            evidence, slope = negative_log_evidence(self.x, self.z, values, kernels=self.kernels)
            for own, weight in ((lengths, 0.25), (minor, 0.05)):
                beside = values[own] - usual[own]
                slope[own] += 2 * weight * beside
                evidence += weight * float(beside @ beside)
            return evidence, slope

        bounds = [(value - 4, value + 5) for value in usual[lengths]]
        bounds += [(-5.0, 5.0)] * self.kernels
        bounds += [(math.log(_SMALLEST_NOISE), math.log(_LARGEST_NOISE))]
        found: Floats = optimize.minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": iterations, "ftol": _LEAST_GAIN},
        ).x
        return found


def _unpacked(values: Floats, kernels: int) -> tuple[Floats, Floats, float]:
    """Lengths (C, l), amplitudes (C,) and noise, laid out one after the other."""
    return values[: -kernels - 1].reshape(kernels, -1), values[-kernels - 1 : -1], float(values[-1])


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


def negative_log_evidence(
    x: Floats, z: Floats, log_parameters: Floats, *, kernels: int = 1
) -> tuple[float, Floats]:
    """−log p(z) without its constant, and its slope by the logarithms of ℓ, a and s².

    With K the covariance of the targets and α = K⁻¹z, it is ½ zᵀα + ½ log|K|, and its slope by θ is
    ½ Σ_ij G_ij ∂K_ij/∂θ with G = K⁻¹ − ααᵀ. With r the distances of ``_matern``,
    ∂K_ij/∂log ℓ_d = (5/3) a (1 + r_ij) exp(−r_ij) (s_id − s_jd)² for scaled rows s = x/ℓ; and since
    W = G (1 + r) exp(−r), elementwise, is symmetric, Σ_ij W_ij (s_id − s_jd)² =
    2 Σ_i s_id² Σ_j W_ij − 2 (sᵀWs)_dd.

    **Shape**: x (N, d), z (N,), log_parameters (C (l + 1) + 1,): C rows of l = d lengths or of one
    for all features, C amplitudes, the noise.
    """
    lengths, amplitudes, noise = _unpacked(np.exp(log_parameters), kernels)
    covariance, parts = np.zeros((len(x), len(x))), []
    for own, amplitude in zip(lengths, amplitudes, strict=True):
        scaled = x / own
        r = _scaled_distances(scaled, scaled)
        decay = _decay(r)
        kernel = _matern(r, decay)
        kernel.flat[:: len(x) + 1] += _JITTER
        kernel *= amplitude
        covariance += kernel
        parts.append((scaled, r, decay, kernel))
    covariance.flat[:: len(x) + 1] += noise
    inverse, half_log_determinant = _inverted(covariance)
    solved = inverse @ z
    explained = float(z @ solved)

    weight = inverse
    weight -= np.outer(solved, solved)
    by_length, by_amplitude = np.empty(lengths.shape), np.empty(kernels)
    for number, (scaled, r, decay, kernel) in enumerate(parts):
        by_amplitude[number] = 0.5 * np.vdot(weight, kernel)
        r += 1
        r *= decay
        r *= weight
        pairs = r.sum(axis=1) @ np.square(scaled) - (scaled * (r @ scaled)).sum(axis=0)
        shared = lengths.shape[1] < x.shape[1]
        by_length[number] = pairs.sum() if shared else pairs
    by_length *= 5 / 3 * amplitudes[:, None]
    by_noise = 0.5 * noise * float(np.trace(weight))
    slope = np.concatenate([by_length.ravel(), by_amplitude, [by_noise]])
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


def inverse_factor(covariance: Floats) -> Floats:
    """L⁻¹ with L Lᵀ = K; the covariance is overwritten."""
    if not len(covariance):
        return covariance
    factor = _cholesky(covariance)
    return np.ascontiguousarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])


def _cholesky(covariance: Floats) -> Floats:
    """L with L Lᵀ = K, in place of K: in LAPACK's order a symmetric matrix is its own transpose."""
    factor: Floats = cholesky(covariance.T, lower=True, overwrite_a=True, check_finite=False)
    return factor
