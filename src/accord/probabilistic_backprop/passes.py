"""Passes through the data: filtering row by row, then a refinement of the prior."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from accord.probabilistic_backprop.filtering import Filter, matched_gamma
from accord.probabilistic_backprop.posterior import Array, Posterior

# A cavity this wide says nothing about its weight: the prior factor stays what it was.
WIDEST_CAVITY = 1e6
# Rows gathered into step order at a time: bounds the memory of a pass, not its result.
BLOCK = 4096


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


def train(
    posterior: Posterior,
    x: Array,
    y: Array,
    *,
    epochs: int,
    generators: Sequence[np.random.Generator],
) -> Iterator[Array]:
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
        >>> from accord.probabilistic_backprop import initial_posterior, output_moments
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(1, 200, 1))
        >>> posterior = initial_posterior((1, 20, 1), [rng])
        >>> losses = list(train(posterior, x, np.sin(x[:, :, 0]), epochs=20, generators=[rng]))
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


def _blocks(x: Array, y: Array, order: NDArray[np.intp]) -> Iterator[tuple[Array, Array]]:
    """Rows in the order of the steps, (steps, S, fan_in) and (steps, S), a block at a time."""
    members = np.arange(len(x))
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        yield x[members, rows], y[members, rows]
