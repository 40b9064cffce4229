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
with the gradients written out by hand.
"""

from accord.probabilistic_backprop.filtering import Filter, matched_gamma
from accord.probabilistic_backprop.passes import refine_prior, train
from accord.probabilistic_backprop.posterior import (
    Posterior,
    initial_posterior,
    output_moments,
    relu_moments,
)

__all__ = [
    "Filter",
    "Posterior",
    "initial_posterior",
    "matched_gamma",
    "output_moments",
    "refine_prior",
    "relu_moments",
    "train",
]
