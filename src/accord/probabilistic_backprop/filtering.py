"""Assumed density filtering: one row moves every posterior, in place.

Written for speed: buffers are allocated once, and the backward pass is the derivative of
`output_moments` by hand.
"""

from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from accord.probabilistic_backprop.posterior import ROOT_TWO_PI, Array, Posterior

# The arguments of Z_0, Z_1 and Z_2 in `matched_gamma`.
SHIFTS = np.array([[-1.0], [0.0], [1.0]])


def matched_gamma(gamma: Array, var: Array, squared_error: Array) -> Array:
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

    def __init__(self, mean: Array, var: Array, grad: Array, curvature: Array) -> None:
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

    def differentiate(self, d_mean: Array, d_var: Array) -> None:
        """Into ``grad`` ∂log Z/∂m, into ``curvature`` (∂log Z/∂m)² − 2 ∂log Z/∂v, inputs certain.

        **Shape**: d_mean, d_var: ∂log Z by the activations' moments, (S, 1, fan_out).
        """
        np.multiply(self.input_mean.swapaxes(1, 2), d_mean, out=self.grad)
        factor = d_mean * d_mean - 2.0 * d_var
        np.multiply(self.input_square.swapaxes(1, 2), factor, out=self.curvature)

    def differentiate_uncertain(self, d_mean: Array, d_var: Array) -> None:
        """The same for inputs with a variance."""
        grad, curvature, twice = self.grad, self.curvature, 2.0 * d_var
        np.multiply(self.input_var.swapaxes(1, 2), twice, out=curvature)
        curvature *= self.mean
        np.multiply(self.input_mean.swapaxes(1, 2), d_mean, out=grad)
        grad += curvature
        np.multiply(self.input_square.swapaxes(1, 2), twice, out=curvature)
        np.subtract(grad * grad, curvature, out=curvature)

    def backpropagate(self, d_mean: Array, d_var: Array, below: "_Layer") -> tuple[Array, Array]:
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

    def _input_gradients(self, d_mean: Array, d_var: Array) -> tuple[Array, Array]:
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


def _times_transposed(rows: Array, weights: Array) -> Array:
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

    def observe(self, x: Array, y: Array) -> Array:
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

    def _forward(self) -> tuple[Array, Array]:
        layers = self.layers
        layers[0].activate()
        for below, above in pairwise(layers):
            below.rectify(above)
            above.activate_uncertain()
        return layers[-1].act_mean[:, 0, 0], layers[-1].act_var[:, 0, 0]

    def _backward(self, d_mean: Array, d_var: Array) -> None:
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
