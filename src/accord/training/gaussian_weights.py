"""Networks with Gaussian weights: their posterior, and the moments of the output."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from accord._types import Floats

# Shape and rate of both Gamma priors, as in the authors' experiments: variance 6/5, loosely held.
GAMMA_PRIOR = 6.0
ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))


@dataclass
class Posterior:
    """The posterior of S networks: Gaussian weights and two Gamma precisions.

    The weights of all layers lie side by side in one row per network, layer by layer, each layer as
    (fan_in + 1, fan_out) with its bias last.

    Args:
        sizes: units of each layer, inputs first and the one output last.
        mean, var: moments of the weights.
        noise: shape and rate of the noise precision.
        prior: shape and rate of the weights' prior precision.
        factors: what each weight's prior factor contributes: its Gaussian precision (its mean is
            0), and its share of the shape and of the rate of ``prior``.

    **Shape**: mean, var (S, P); noise, prior (2, S); factors (3, S, P).
    """

    sizes: tuple[int, ...]
    mean: Floats
    var: Floats
    noise: Floats
    prior: Floats
    factors: Floats

    @property
    def noise_var(self) -> Floats:
        """Variance of the observation noise, β / (α − 1). **Shape**: (S,)."""
        shape, rate = self.noise
        return np.asarray(rate / (shape - 1.0))

    def part(self, networks: slice) -> "Posterior":
        """Copies of some networks of the stack."""
        return Posterior(
            self.sizes,
            self.mean[networks].copy(),
            self.var[networks].copy(),
            self.noise[:, networks].copy(),
            self.prior[:, networks].copy(),
            self.factors[:, networks].copy(),
        )

    def layers(self, flat: Floats) -> list[Floats]:
        """Views of (S, P) weights as one (S, fan_in + 1, fan_out) array per layer."""
        views, start = [], 0
        for fan_in, fan_out in pairwise(self.sizes):
            stop = start + (fan_in + 1) * fan_out
            views.append(flat[:, start:stop].reshape(len(flat), fan_in + 1, fan_out))
            start = stop
        return views


def initial_posterior(sizes: Sequence[int], generators: Sequence[np.random.Generator]) -> Posterior:
    """The prior, its means scattered so that the hidden units differ: N(0, 1 / (fan_in + 1)).

    Args:
        sizes: units of each layer, inputs first and the one output last.
        generators: one source of randomness per network of the stack.
    """
    shapes = [(n_in + 1, n_out) for n_in, n_out in pairwise(sizes)]
    mean = np.array(
        [
            np.concatenate([rng.standard_normal(n * m) / np.sqrt(n) for n, m in shapes])
            for rng in generators
        ]
    )
    gamma = np.full((2, len(mean)), GAMMA_PRIOR)
    var = np.full_like(mean, GAMMA_PRIOR / (GAMMA_PRIOR - 1.0))
    factors = np.zeros((3, *mean.shape))
    factors[0] = 1.0 / var
    return Posterior(tuple(sizes), mean, var, gamma, gamma.copy(), factors)


def output_moments(posterior: Posterior, x: Floats) -> tuple[Floats, Floats]:
    r"""Mean and variance of the networks' output under the weights' posterior, without the noise.

    A layer with n inputs :math:`z \sim N(m_z, v_z)`, the bias' one among them, has activations,
    divided by :math:`\sqrt n`, with the moments :math:`m_a = m m_z / \sqrt n` and
    :math:`v_a = [m^2 v_z + v (m_z^2 + v_z)] / n`.

    **Shape**: x (S, N, fan_in) or (N, fan_in) -> two of (S, N).
    """
    z = x if x.ndim == 3 else np.broadcast_to(x, (len(posterior.mean), *x.shape))
    z_var = np.zeros_like(z)
    weights = zip(posterior.layers(posterior.mean), posterior.layers(posterior.var), strict=True)
    for depth, (mean, var) in enumerate(weights):
        if depth:
            z, z_var = relu_moments(z, z_var)
        n = mean.shape[1]
        m, v = mean[:, :-1], var[:, :-1]
        z_var = (z_var @ (m * m + v) + (z * z) @ v + var[:, -1:]) / n
        z = (z @ m + mean[:, -1:]) / np.sqrt(n)
    return z[:, :, 0], z_var[:, :, 0]


def relu_moments(mean: Floats, var: Floats) -> tuple[Floats, Floats]:
    r"""Mean and variance of max(0, a) for a ~ N(m, v).

    With :math:`\alpha = m / \sqrt v` and :math:`g = \alpha \Phi(\alpha) + \varphi(\alpha)` they are
    :math:`\sqrt v\, g` and :math:`v\,[\Phi(\alpha) + g (\alpha - g)]`.

    Example:
        >>> mean, var = relu_moments(np.array(0.0), np.array(1.0))
        >>> print(mean.round(4), var.round(4))  # 1/√(2π) and 1/2 − 1/(2π)
        0.3989 0.3408
    """
    std = np.sqrt(var)
    alpha = mean / std
    cdf = ndtr(alpha)
    g = alpha * cdf + np.exp(-0.5 * alpha * alpha) / ROOT_TWO_PI
    # far below zero the two terms cancel to rounding, which must not leave a negative variance
    return std * g, var * np.maximum(cdf + g * (alpha - g), 0.0)
