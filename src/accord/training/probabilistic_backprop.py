r"""Probabilistic backpropagation: Gaussian weights, one row at a time, no optimiser.

Every weight has a posterior :math:`w \sim N(m, v)`. A row :math:`(x, y)` is propagated through the
network as means and variances; the output's moments give the evidence
:math:`\log Z = \log N(y \mid m_z, v_z + \beta / (\alpha - 1))`, and its gradient moves every
posterior by assumed density filtering:

.. math::

    m \leftarrow m + v \frac{\partial \log Z}{\partial m}, \qquad
    v \leftarrow v - v^2 \left[\left(\frac{\partial \log Z}{\partial m}\right)^2
        - 2 \frac{\partial \log Z}{\partial v}\right].

The noise precision has a Gamma posterior :math:`(\alpha, \beta)`, and so has the precision of the
weights' prior, whose factors are refined by expectation propagation after every pass through the
data (Hernández-Lobato & Adams, *Probabilistic backpropagation for scalable learning of Bayesian
neural networks*, 2015).

The steps are strictly sequential and small, so that the cost of a call decides: everything runs in
numpy, in place, on a whole stack of S networks at once (splits, outputs), each with its own rows,
with the gradients written out by hand. Buffers are allocated once, and the backward
pass is the derivative of `output_moments`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from accord._types import Floats, Indices

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


# The arguments of Z_0, Z_1 and Z_2 in `matched_gamma`.
SHIFTS = np.array([[-1.0], [0.0], [1.0]])
# A cavity this wide says nothing about its weight: the prior factor stays what it was.
WIDEST_CAVITY = 1e6
# Rows gathered into step order at a time: bounds the memory of a pass, not its result.
BLOCK = 4096


def matched_gamma(gamma: Floats, var: Floats, squared_error: Floats) -> Floats:
    r"""Gamma posterior of a precision after one Gaussian observation, two moments matched.

    With :math:`Z_k = N(e \mid 0, v + \beta / (\alpha - 1 + k))` for k = 0, 1, 2 the parameters are

    .. math::

        \alpha' = \left[\frac{Z_0 Z_2}{Z_1^2} \frac{\alpha + 1}{\alpha} - 1\right]^{-1}, \qquad
        \beta' = \left[\frac{Z_2}{Z_1} \frac{\alpha + 1}{\beta}
            - \frac{Z_1}{Z_0} \frac{\alpha}{\beta}\right]^{-1}.

    An update that leaves no valid variance β' / (α' − 1) is dropped.

    **Shape**: gamma (2, S); var, squared_error (S,) -> (2, S).
    """
    shape, rate = gamma
    shifted = shape + SHIFTS
    spread = rate / shifted
    spread += var
    log_z = np.log(spread)
    log_z += squared_error / spread
    ratio = np.exp(0.5 * (log_z[:-1] - log_z[1:]))
    ratio *= shifted[1:]
    gain = ratio[1] - ratio[0]
    matched = np.empty_like(gamma)
    np.divide(ratio[0], gain, out=matched[0])
    np.divide(rate, gain, out=matched[1])
    return np.where((gain > 0.0) & (gain < ratio[0]), matched, gamma)


class _Layer:
    """Buffers of one layer of the stack, and its part of a step.

    Inputs are kept already divided by √n, their variances by n, so that no scale appears below.
    """

    def __init__(self, mean: Floats, var: Floats, grad: Floats, curvature: Floats) -> None:
        stack, n, fan_out = mean.shape
        self.mean, self.var, self.grad, self.curvature = mean, var, grad, curvature
        self.scale = n**-0.5
        self.input_mean = np.full((stack, 1, n), self.scale)  # the last is the bias' input
        self.input_var = np.zeros((stack, 1, n))
        self.input_square = np.full((stack, 1, n), self.scale**2)  # E[z²]
        self.mean_square = np.empty((stack, n, fan_out))
        self.act_mean, self.act_var, self.part = np.empty((3, stack, 1, fan_out))
        self.std, self.alpha, self.cdf, self.pdf, self.g = np.empty((5, stack, 1, fan_out))

    def activate(self) -> None:
        """Moments of the activations, for inputs that are certain."""
        np.matmul(self.input_mean, self.mean, out=self.act_mean)
        np.matmul(self.input_square, self.var, out=self.act_var)

    def activate_uncertain(self) -> None:
        """Moments of the activations, for inputs with a variance."""
        np.multiply(self.input_mean, self.input_mean, out=self.input_square)
        self.input_square += self.input_var
        self.activate()
        np.multiply(self.mean, self.mean, out=self.mean_square)
        np.matmul(self.input_var, self.mean_square, out=self.part)
        self.act_var += self.part

    def rectify(self, above: "_Layer") -> None:
        """ReLU moments (see `relu_moments`) of the activations, as inputs of the layer above."""
        std, alpha, cdf, pdf, g, part = self.std, self.alpha, self.cdf, self.pdf, self.g, self.part
        np.sqrt(self.act_var, out=std)
        np.divide(self.act_mean, std, out=alpha)
        ndtr(alpha, out=cdf)
        np.multiply(alpha, alpha, out=pdf)
        pdf *= -0.5
        np.exp(pdf, out=pdf)
        pdf *= 1.0 / ROOT_TWO_PI
        np.multiply(alpha, cdf, out=g)
        g += pdf
        np.multiply(std, g, out=part)
        np.multiply(part, above.scale, out=above.input_mean[:, :, :-1])
        np.subtract(alpha, g, out=part)
        part *= g
        part += cdf
        np.maximum(part, 0.0, out=part)
        part *= self.act_var
        np.multiply(part, above.scale**2, out=above.input_var[:, :, :-1])

    def differentiate(self, d_mean: Floats, d_var: Floats) -> None:
        """Into ``grad`` ∂log Z/∂m, into ``curvature`` (∂log Z/∂m)² − 2 ∂log Z/∂v, inputs certain.

        **Shape**: d_mean, d_var: ∂log Z by the activations' moments, (S, 1, fan_out).
        """
        np.multiply(self.input_mean.swapaxes(1, 2), d_mean, out=self.grad)
        factor = d_mean * d_mean - 2.0 * d_var
        np.multiply(self.input_square.swapaxes(1, 2), factor, out=self.curvature)

    def differentiate_uncertain(self, d_mean: Floats, d_var: Floats) -> None:
        """The same for inputs with a variance."""
        grad, curvature, twice = self.grad, self.curvature, 2.0 * d_var
        np.multiply(self.input_var.swapaxes(1, 2), twice, out=curvature)
        curvature *= self.mean
        np.multiply(self.input_mean.swapaxes(1, 2), d_mean, out=grad)
        grad += curvature
        np.multiply(self.input_square.swapaxes(1, 2), twice, out=curvature)
        np.subtract(grad * grad, curvature, out=curvature)

    def backpropagate(
        self, d_mean: Floats, d_var: Floats, below: "_Layer"
    ) -> tuple[Floats, Floats]:
        """∂log Z by the moments of the activations below, through the ReLU between the layers.

        For z = max(0, a): ∂m_z/∂m_a = Φ, ∂m_z/∂v_a = φ / (2√v_a), ∂v_z/∂m_a = 2 m_z (1 − Φ) and
        ∂v_z/∂v_a = Φ − g φ.
        """
        z_mean, z_var = self._input_gradients(d_mean, d_var)
        cdf, pdf, g, std, part = below.cdf, below.pdf, below.g, below.std, below.part
        d_mean, d_var = below.act_mean, below.act_var  # no longer needed: reused as buffers
        np.subtract(1.0, cdf, out=d_mean)
        d_mean *= g
        d_mean *= std
        d_mean *= z_var
        d_mean *= 2.0
        d_mean += np.multiply(z_mean, cdf, out=part)
        np.multiply(g, pdf, out=d_var)
        np.subtract(cdf, d_var, out=d_var)
        d_var *= z_var
        np.multiply(z_mean, pdf, out=part)
        part /= std
        part *= 0.5
        d_var += part
        return d_mean, d_var

    def _input_gradients(self, d_mean: Floats, d_var: Floats) -> tuple[Floats, Floats]:
        """∂log Z by the moments of the inputs, bias left out."""
        z_mean = _times_transposed(d_var, self.var)
        z_mean *= self.input_mean[:, :, :-1]
        z_mean *= 2.0
        z_mean += _times_transposed(d_mean, self.mean)
        z_mean *= self.scale
        self.mean_square += self.var
        z_var = _times_transposed(d_var, self.mean_square)
        z_var *= self.scale**2
        return z_mean, z_var


def _times_transposed(rows: Floats, weights: Floats) -> Floats:
    """rows · weightsᵀ without the bias.

    **Shape**: (S, 1, fan_out), (S, fan_in + 1, fan_out) -> (S, 1, fan_in).
    """
    transposed = weights[:, :-1].swapaxes(1, 2)
    return rows * transposed if rows.shape[2] == 1 else rows @ transposed


class Filter:
    """Assumed density filtering: moves a posterior, in place, row by row.

    Args:
        posterior: what is known so far; its arrays are updated.
    """

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        self.grad = np.empty_like(posterior.mean)
        self.curvature = np.empty_like(posterior.mean)
        parts = (posterior.mean, posterior.var, self.grad, self.curvature)
        self.layers = [_Layer(*views) for views in zip(*map(posterior.layers, parts), strict=True)]

    def observe(self, x: Floats, y: Floats) -> Floats:
        """Take one row per network into account; −2 log Z − log 2π of what was expected of it.

        **Shape**: x (S, fan_in) standardised, y (S,) -> (S,).
        """
        first = self.layers[0]
        np.multiply(x, first.scale, out=first.input_mean[:, 0, :-1])
        np.multiply(first.input_mean, first.input_mean, out=first.input_square)
        mean, var = self._forward()
        posterior = self.posterior
        error = y - mean
        total = var + posterior.noise_var
        d_mean = error / total
        d_var = 0.5 * (d_mean * d_mean - 1.0 / total)
        posterior.noise[:] = matched_gamma(posterior.noise, var, error * error)
        self._backward(d_mean[:, None, None], d_var[:, None, None])
        self._move()
        surprise = np.log(total)
        surprise += error * d_mean
        return surprise

    def _forward(self) -> tuple[Floats, Floats]:
        layers = self.layers
        layers[0].activate()
        for below, above in pairwise(layers):
            below.rectify(above)
            above.activate_uncertain()
        return layers[-1].act_mean[:, 0, 0], layers[-1].act_var[:, 0, 0]

    def _backward(self, d_mean: Floats, d_var: Floats) -> None:
        layers = self.layers
        for below, above in zip(layers[-2::-1], layers[:0:-1], strict=True):
            above.differentiate_uncertain(d_mean, d_var)
            d_mean, d_var = above.backpropagate(d_mean, d_var, below)
        layers[0].differentiate(d_mean, d_var)

    def _move(self) -> None:
        """m + v·grad and v − v²·curvature, where that leaves the variance positive."""
        mean, var = self.posterior.mean, self.posterior.var
        step, shrink = self.grad, self.curvature
        step *= var
        shrink *= var
        if not shrink.max() < 1.0:  # so that NaN counts as invalid too
            invalid = ~(shrink < 1.0)
            step[invalid] = 0.0
            shrink[invalid] = 0.0
        mean += step
        shrink *= var
        var -= shrink


def refine_prior(posterior: Posterior) -> None:
    r"""One round of expectation propagation over the weights' prior factors, in place.

    Each factor :math:`N(w \mid 0, 1/\lambda)` is taken out of the posterior, matched against what
    remains and put back. Matching against :math:`N(w \mid m, v)` and
    :math:`\mathrm{Gamma}(\lambda \mid \alpha, \beta)` multiplies the weight's Gaussian by
    :math:`N(w \mid 0, \beta / (\alpha - 1))`. λ is shared, so the weights come one by one.
    """
    old, shape_and_rate = posterior.factors[0], posterior.factors[1:]
    precision = 1.0 / posterior.var
    var = 1.0 / (precision - old)
    square = (posterior.mean * precision * var) ** 2
    informed = (var > 0.0) & (var < WIDEST_CAVITY)
    new = old.copy()
    for i in range(new.shape[1]):
        cavity = posterior.prior - shape_and_rate[:, :, i]
        valid = informed[:, i] & (cavity[0] > 1.0) & (cavity[1] > 0.0)
        matched = np.where(valid, matched_gamma(cavity, var[:, i], square[:, i]), posterior.prior)
        shape_and_rate[:, :, i] += np.where(valid, matched - posterior.prior, 0.0)
        new[:, i] = np.where(valid, (cavity[0] - 1.0) / cavity[1], new[:, i])
        posterior.prior[:] = matched
    refined = precision - old + new
    posterior.mean *= precision / refined
    np.divide(1.0, refined, out=posterior.var)
    posterior.factors[0] = new


def train_pbp(
    posterior: Posterior,
    x: Floats,
    y: Floats,
    *,
    epochs: int,
    generators: Sequence[np.random.Generator],
) -> Iterator[Floats]:
    """Passes through the data, each in a new order and followed by a refinement of the prior.

    Args:
        posterior: where to start; updated in place.
        x, y: standardised rows of each network.
        epochs: passes through the data.
        generators: one per network, for the order of its rows.

    Yields:
        After each pass, −log Z of each network's rows as they came, on average.

    **Shape**: x (S, N, fan_in), y (S, N) -> (S,) per pass.

    Example:
        >>> from accord.training import initial_posterior, output_moments
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(1, 200, 1))
        >>> posterior = initial_posterior((1, 20, 1), [rng])
        >>> losses = list(train_pbp(posterior, x, np.sin(x[:, :, 0]), epochs=20, generators=[rng]))
        >>> mean, var = output_moments(posterior, np.array([[1.0], [4.0]]))
        >>> bool(abs(mean[0, 0] - np.sin(1.0)) < 0.1), bool(var[0, 1] > 10 * var[0, 0])
        (True, True)
    """
    adf = Filter(posterior)
    for _ in range(epochs):
        order = np.stack([rng.permutation(y.shape[1]) for rng in generators], axis=1)
        surprise = np.zeros(len(x))
        with np.errstate(all="ignore"):  # an update that overflows is recognised and dropped
            for rows_x, rows_y in _blocks(x, y, order):
                for row_x, row_y in zip(rows_x, rows_y, strict=True):
                    surprise += adf.observe(row_x, row_y)
            refine_prior(posterior)
        yield 0.5 * (surprise / y.shape[1] + np.log(2.0 * np.pi))


def _blocks(x: Floats, y: Floats, order: Indices) -> Iterator[tuple[Floats, Floats]]:
    """Rows in the order of the steps, (steps, S, fan_in) and (steps, S), a block at a time."""
    members = np.arange(len(x))
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        yield x[members, rows], y[members, rows]
