"""What every distribution answers, for all its rows at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from math import prod
from typing import Any, ClassVar, Self, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import (
    RandomState,
    check_count,
    check_fits,
    check_non_negative,
    check_not_empty,
    check_not_nan,
    check_ordered,
    check_positive,
    check_probability,
    check_scalar,
    generator_from,
)
from accord._numerics import NORMAL
from accord.distributions.conversion import Generator, Values, as_index, broadcast, to_tensor
from accord.distributions.inversion import invert, newton

TensorMap = Callable[[Tensor, int], Tensor]
Pointwise = Callable[[Tensor], Tensor]
Variances = tuple[Tensor, Tensor, Tensor]
"""Noise, disagreement and distance."""

# Elements evaluated at a time: temporaries take a few megabytes, whatever the number of rows.
_CHUNK = 2**17


class Distribution(ABC):
    """A batch of independent one-dimensional distributions, one per element of ``shape``.

    Built from numbers, lists or numpy arrays it answers in numpy (float64); built from tensors it
    answers in tensors of the same dtype and device, through which gradients flow.

    **Shape**: usually ``(N,)`` for N rows, ``(N, K)`` for K outputs, ``(M, N)`` for M members.

    >>> from accord.distributions import Normal
    >>> rows = Normal(mean=[0.0, 1.0, 2.0], std=1.0)
    >>> rows.shape, len(rows)
    ((3,), 3)
    >>> rows.interval(0.95).round(2)
    array([[-1.96,  1.96],
           [-0.96,  2.96],
           [ 0.04,  3.96]])
    >>> rows[1:].cdf([1.0, 2.0])
    array([0.5, 0.5])
    """

    # Subclasses work on tensors; the methods of this class convert, check shapes, flatten the batch
    # and go through it in chunks. `_numpy` says in which kind to answer.
    _numpy: bool
    _by_newton: ClassVar[bool] = False  # whether density and tail are cheap to evaluate together

    @property
    @abstractmethod
    def _reference(self) -> Tensor:
        """A tensor of the batch's shape, dtype and device."""

    @property
    @abstractmethod
    def _width(self) -> int:
        """Numbers held per row: what a row costs to evaluate."""

    @abstractmethod
    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        """The same distribution with ``function(tensor, lead)`` in place of each tensor.

        ``lead`` is the number of axes (of members) in front of the batch's own axes.
        """

    @abstractmethod
    def _mean(self) -> Tensor: ...

    @abstractmethod
    def _variances(self) -> Variances:
        """The parts of the variance: noise, disagreement of members, distance from the data."""

    @abstractmethod
    def _tolerance_variance(self) -> Tensor:
        """The part ε²/3 of the variance, of whichever kind, that smoothing by a tolerance adds."""

    @abstractmethod
    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        """Mean and variances of ``function(Y)`` for an increasing function."""

    @abstractmethod
    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        """The distribution of shift + factor · Y, factor > 0, with the closed forms that it has."""

    @abstractmethod
    def _inner(self) -> "tuple[Distribution, ...]":
        """The distributions that this one is made of; none for a family."""

    @abstractmethod
    def _landmarks(self, *, far: bool) -> Tensor:
        """Quantiles from the median far into both tails, among them every kink of the density.

        ``far`` goes further out than probabilities of 1e-16. Of a flat batch, ``(L, n)``, unsorted.
        """

    @property
    @abstractmethod
    def _n_uniforms(self) -> int:
        """How many uniform numbers `_from_uniforms` turns into a draw."""

    @abstractmethod
    def _from_uniforms(self, u: Tensor) -> Tensor:
        """Draws by inverse transforms, ``(m, axes)`` → ``(m, n)``, for a flat batch."""

    @abstractmethod
    def _tail_and_density(self, value: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
        """P(Y ≤ value) where sign is 1, P(Y ≥ value) where it is −1, and the density there."""

    @abstractmethod
    def _log_prob(self, value: Tensor) -> Tensor: ...

    @abstractmethod
    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        """log P(Y ≤ value) where sign is 1, log P(Y ≥ value) where it is −1."""

    @abstractmethod
    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor: ...

    @abstractmethod
    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor: ...

    @abstractmethod
    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Two points between which the quantile lies, the same tensor twice if it is known.

        p is the probability below and q = 1 − p the one above: the smaller of the two counts.
        """

    @abstractmethod
    def _draw(self, n: int, rng: Generator) -> Tensor: ...

    @abstractmethod
    def _describe(self) -> str:
        """The arguments as ``repr`` shows them."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch's shape."""
        return tuple(self._reference.shape)

    @property
    def mean(self) -> Values:
        """E[Y] per row; NaN where it does not exist (Student-t with df ≤ 1)."""
        return self._answer(self._mean())

    @property
    def variance(self) -> Values:
        """E[(Y − E[Y])²] per row, noise² + disagreement² + distance²."""
        return self._answer(self._variance())

    @property
    def std(self) -> Values:
        """The standard deviation per row, √variance."""
        return self._answer(self._variance().sqrt())

    @property
    def noise(self) -> Values:
        """The standard deviation of the observations' own noise: no model takes it away."""
        return self._answer(self._variances()[0].sqrt())

    @property
    def disagreement(self) -> Values:
        """The standard deviation between members' means: they were trained on too few such rows."""
        return self._answer(self._variances()[1].sqrt())

    @property
    def distance(self) -> Values:
        """The standard deviation that the distance to the training rows adds."""
        return self._answer(self._variances()[2].sqrt())

    @property
    def aleatoric(self) -> Values:
        """The same as ``noise``."""
        return self.noise

    @property
    def epistemic(self) -> Values:
        """What the model does not know, √(disagreement² + distance²)."""
        _, disagreement, distance = self._variances()
        return self._answer((disagreement + distance).sqrt())

    @property
    def tolerance_variance(self) -> Values:
        """The part ε²/3 of the variance that smoothing by a tolerance adds."""
        return self._answer(self._tolerance_variance())

    def log_prob(self, value: Values) -> Values:
        """log density at ``value``: a scalar, or an array of shape ``(..., *shape)``."""
        return self._answer(self._evaluate("_log_prob", self._receive("value", value)))

    def pdf(self, value: Values) -> Values:
        """Density at ``value``: a scalar, or an array of shape ``(..., *shape)``."""
        return self._answer(self._evaluate("_log_prob", self._receive("value", value)).exp())

    def cdf(self, value: Values) -> Values:
        """P(Y ≤ value): a scalar, or an array of shape ``(..., *shape)``."""
        points = self._receive("value", value)
        log_cdf = self._evaluate("_log_tail", points, torch.ones_like(points))
        return self._answer(log_cdf.exp())

    def log_interval_prob(self, lower: Values, upper: Values) -> Values:
        """log P(lower ≤ Y ≤ upper); either bound may be infinite.

        >>> from accord.distributions import Normal
        >>> float(Normal(0.0, 1.0).log_interval_prob(40.0, float("inf")))
        -804.608...
        """
        low, high = self._receive("lower", lower), self._receive("upper", upper)
        check_ordered("lower", low, "upper", high)
        return self._answer(self._evaluate("_log_between", low, high))

    def log_within_prob(self, center: Values, half_width: Values) -> Values:
        """log P(|Y − center| ≤ half_width), in the form in which a narrow window loses no digit.

        >>> from accord.distributions import Normal
        >>> float(Normal(0.0, 1.0).log_within_prob(1e3, 1e-20))
        -500046.277...
        """
        middle, half = self._receive("center", center), self._receive("half_width", half_width)
        check_non_negative("half_width", half)
        return self._answer(self._evaluate("_log_within", middle, half))

    def quantile(self, alpha: Values) -> Values:
        """The smallest y with P(Y ≤ y) ≥ alpha.

        **Shape**: a scalar ``alpha`` gives ``shape``, levels ``(K,)`` give ``(*shape, K)``.

        >>> from accord.distributions import Normal
        >>> Normal([0.0, 10.0], 1.0).quantile([0.025, 0.975]).round(2)
        array([[-1.96,  1.96],
               [ 8.04, 11.96]])
        """
        levels = to_tensor("alpha", alpha, torch.float64, self._reference.device).detach()
        check_probability("alpha", levels)
        if levels.ndim > 1:
            raise ValueError(
                f"alpha must be a scalar or one-dimensional, got shape {tuple(levels.shape)}. "
                "Pass the levels as one list; every row answers all of them."
            )
        quantiles = self._quantiles(levels.reshape(-1), 1 - levels.reshape(-1))
        return self._answer(quantiles if levels.ndim else quantiles[..., 0])

    def interval(self, coverage: float) -> Values:
        """The central interval: (1 − coverage)/2 of the probability on either side.

        **Shape**: ``(*shape, 2)``, lower and upper end.
        """
        check_scalar("coverage", coverage, remedy="Use quantile for several levels.")
        check_probability("coverage", coverage, strict=True, remedy="Write 0.95 for 95 %.")
        tail = (1 - torch.tensor(float(coverage), dtype=torch.float64)) / 2
        tails = torch.stack([tail, 1 - tail]).to(self._reference.device)
        return self._answer(self._quantiles(tails, tails.flip(0)))

    def sample(self, n: int, *, random_state: RandomState = None) -> Values:
        """Independent draws of every row.

        **Shape**: ``(n, *shape)``.

        >>> from accord.distributions import Normal
        >>> Normal([0.0, 10.0], 1.0).sample(3, random_state=0).round(1)
        array([[ 1.9, 11.2],
               [ 1.5,  9.9],
               [ 0.3,  9.4]])
        """
        check_count("n", n)
        return self._answer(self._draw(int(n), generator_from(random_state)))

    def rescaled(self, factor: Values, *, shift: Values = 0.0) -> Self:
        """The distribution stretched about its mean and moved by ``shift`` standard deviations.

        Y' = μ + shift · σ + factor · (Y − μ), with the closed forms that Y has; factor > 0.

        **Shape**: factor and shift scalar or of the distribution's shape.

        >>> from accord.distributions import Normal
        >>> Normal([0.0, 10.0], 1.0).rescaled(2.0, shift=0.5)
        Normal(mean=[ 0.5, 10.5], std=[2., 2.])
        """
        move, stretch = self._checked_move(shift, factor)
        mean, std = self._mean(), self._variance().sqrt()
        return self._moved(mean + move * std - stretch * mean, stretch)

    def moved(self, shift: Values, factor: Values = 1.0) -> Self:
        """The distribution of shift + factor · Y, with the closed forms that Y has; factor > 0.

        >>> from accord.distributions import Normal
        >>> Normal([0.0, 10.0], 1.0).moved(1.0, 3.0)
        Normal(mean=[ 1., 31.], std=[3., 3.])
        """
        return self._moved(*self._checked_move(shift, factor))

    @final
    def _checked_move(self, shift: Values, factor: Values) -> tuple[Tensor, Tensor]:
        move, stretch = self._convert("shift", shift), self._convert("factor", factor)
        check_positive("factor", stretch)
        return move.expand(self.shape), stretch.expand(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("rows must exist to be counted, got shape (). Build it from lists.")
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Self:
        """The selected rows: an index, a slice, an index array, a mask, or a tuple of these."""
        index = tuple(as_index(part) for part in (rows if isinstance(rows, tuple) else (rows,)))
        if len(index) > len(self.shape):
            raise IndexError(
                f"at most {len(self.shape)} indices fit the shape {self.shape}, got {len(index)}. "
                "Index the rows only."
            )
        selected = self._map(lambda tensor, lead: tensor[(slice(None),) * lead + index])
        check_not_empty("the selection of rows", selected._reference)
        return selected

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe()})"

    @final
    def _receive(self, name: str, value: Values) -> Tensor:
        """A user's value as a tensor of this distribution's kind, checked to fit its shape."""
        tensor = self._convert(name, value)
        check_fits(name, tensor, self.shape, owner=type(self).__name__)
        check_not_nan(name, tensor)
        return tensor.expand(np.broadcast_shapes(tensor.shape, self.shape))

    @final
    def _convert(self, name: str, value: Values) -> Tensor:
        """A user's value as a tensor of this distribution's kind."""
        if self._numpy and isinstance(value, Tensor) and value.requires_grad:
            raise TypeError(
                f"{name} must not require a gradient where the {type(self).__name__} is built from "
                "arrays, got requires_grad=True. Build the distribution from tensors."
            )
        return to_tensor(name, value, self._reference.dtype, self._reference.device)

    @final
    def _answer(self, tensor: Tensor) -> Values:
        if not self._numpy:
            return tensor.to(self._reference.dtype)
        return tensor.detach().numpy()[()]

    @final
    def _variance(self) -> Tensor:
        noise, disagreement, distance = self._variances()
        # members without a mean have no disagreement (NaN), but an infinite variance
        return torch.where(noise.isinf(), torch.inf, noise + disagreement + distance)

    @final
    def _replace(self, **attributes: Any) -> Self:
        """A copy with some attributes exchanged, without repeating the constructor's checks."""
        other = copy(self)
        vars(other).update(attributes)
        return other

    @final
    def _flat(self) -> Self:
        """The same distribution with its batch axes merged into one."""
        n, axes = prod(self.shape), len(self.shape)
        return self._map(lambda t, lead: t.reshape(*t.shape[:lead], n, *t.shape[lead + axes :]))

    @final
    def _exact(self) -> Self:
        """The same distribution with a flat batch, in float64 wherever the device has it."""
        dtype = torch.float32 if self._reference.device.type == "mps" else torch.float64
        return self._flat()._map(lambda tensor, _: tensor.to(dtype))

    @final
    def _evaluate(self, method: str, *values: Tensor) -> Tensor:
        """``method`` of the flattened distribution at ``values`` ``(..., *shape)``, in chunks."""
        exact, points = self._exact(), broadcast(*values)
        outer = points[0].shape[: points[0].ndim - len(self.shape)]
        points = [x.to(exact._reference.dtype).reshape(prod(outer), len(exact)) for x in points]
        columns = []
        for rows, part in exact._chunks(prod(outer)):
            step = max(1, _CHUNK // (self._width * len(part)))
            cells = [
                getattr(part, method)(*(x[start : start + step, rows] for x in points))
                for start in range(0, prod(outer), step)
            ]
            columns.append(torch.cat(cells))
        return torch.cat(columns, dim=-1).reshape((*outer, *self.shape))

    @final
    def _chunks(self, copies: int) -> Iterator[tuple[slice, Self]]:
        """Stretches of rows of a flat batch, each to be evaluated ``copies`` times at once."""
        n, step = len(self), max(1, _CHUNK // (self._width * max(1, copies)))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            yield rows, self if step >= n else self._map(_rows_of(rows))

    @final
    def _quantiles(self, p: Tensor, q: Tensor) -> Tensor:
        """Levels ``(K,)`` below and above to quantiles ``(*shape, K)``."""
        levels = p.unsqueeze(-1), q.unsqueeze(-1)
        parts = [part._quantile(*levels) for _, part in self._exact()._chunks(len(p))]
        return torch.cat(parts, dim=-1).reshape((-1, *self.shape)).movedim(0, -1)

    @final
    def _quantile(self, p: Tensor, q: Tensor) -> Tensor:
        """The points with probability p below and q above, ``(..., n)``, for a flat batch.

        Where no closed form is known, the search starts at the quantile of the normal distribution
        with the same moments, whose log-odds have the slope f/pq.
        """
        if self._by_newton and self._numpy:
            quickly = newton(self, p, q)
            if quickly is not None:
                return quickly
        lower, upper = self._bracket(p, q)
        if lower is upper:
            return lower
        with torch.no_grad():
            std = self._variance().sqrt()
            score = torch.special.ndtri(torch.minimum(p, q)) * torch.where(p <= q, 1, -1)
            slope = NORMAL.log_pdf(score).exp() / (p * q) / std
            known = (lower, upper, self._mean() + std * score, slope, p, q)
            lower, upper, start, slope, p, q = broadcast(*known)
            found = invert(self, p, q, bracket=(lower, upper), start=start, slope=slope)
        return found if self._numpy else self._implicit(found, p, q)

    @final
    def _implicit(self, found: Tensor, p: Tensor, q: Tensor) -> Tensor:
        """The quantile with its derivative by every parameter θ, −(∂F/∂θ)/f."""
        sign = torch.where(p <= q, 1.0, -1.0).to(found)
        tail = self._log_tail(found, sign).exp()
        if not tail.requires_grad:
            return found
        density = self._log_prob(found).detach().exp()
        return found - sign * (tail - tail.detach()) / density


def _rows_of(rows: slice | Tensor) -> TensorMap:
    return lambda tensor, lead: tensor[(slice(None),) * lead + (rows,)]
