"""What every distribution answers, for all its rows at once."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self, final

import torch
from torch import Tensor

from accord._checks import (
    RandomState,
    check_count,
    check_non_negative,
    check_ordered,
    check_positive,
    check_probability,
    check_scalar,
    generator_from,
)
from accord._numerics import NORMAL
from accord._types import Floats
from accord.distributions.batch import Batch, Generator, Values, broadcast, to_floats, to_tensor
from accord.distributions.crps import BoxedGaussians, crps_boxed_gaussians, crps_quadrature
from accord.distributions.numerical import invert, newton

if TYPE_CHECKING:
    from accord.distributions.families import Normal

Pointwise = Callable[[Tensor], Tensor]
PARTS = ("noise", "disagreement", "distance")
"""Those of a prediction's standard deviation: their squares add up to its square."""
Variances = tuple[Tensor, Tensor, Tensor]
"""The squares of ``PARTS``."""


class Distribution(Batch):
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

    has_density: ClassVar[bool] = True
    """Whether it has a density; draws have none."""

    _smoothed_by: ClassVar[str] = ""  # how to smooth by a tolerance what Smoothed does not take

    @abstractmethod
    def _mean(self) -> Tensor: ...

    @abstractmethod
    def _variances(self) -> Variances:
        """The parts of the variance: noise, disagreement of members, distance from the data."""

    @abstractmethod
    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        """Mean and variances of ``function(Y)`` for an increasing function."""

    @abstractmethod
    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        """The distribution of shift + factor · Y, factor > 0, with the closed forms that it has."""

    @abstractmethod
    def _landmarks(self, *, far: bool) -> Tensor:
        """Quantiles from the median far into both tails, among them every kink of the density.

        ``far`` goes further out than probabilities of 1e-16. Of a flat batch, ``(L, n)``, unsorted.
        """

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

    # What follows has an answer for every distribution; a class with a shorter one replaces it.

    def _tolerance_variance(self) -> Tensor:
        """The part ε²/3 of the variance, of whichever kind, that smoothing by a tolerance adds."""
        return torch.zeros_like(self._reference)

    def _inner(self) -> "tuple[Distribution, ...]":
        """The distributions that this one is made of; none for a family."""
        return ()

    @property
    def _n_uniforms(self) -> int:
        """How many uniform numbers `_from_uniforms` turns into a draw."""
        return 1

    def _from_uniforms(self, u: Tensor) -> Tensor:
        """Draws by inverse transforms, ``(m, axes)`` → ``(m, n)``, for a flat batch."""
        return self._quantile(u[:, :1], 1 - u[:, :1])

    def _tail_and_density(self, value: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
        """P(Y ≤ value) where sign is 1, P(Y ≥ value) where it is −1, and the density there."""
        return self._log_tail(value, sign).exp(), self._log_prob(value).exp()

    @property
    def _by_newton(self) -> bool:
        """Whether density and tail are cheap to evaluate together, and no quantile is known."""
        return False

    @final
    def _plain_cdf(self, value: Tensor) -> Tensor:
        """P(Y ≤ value), to rounding of 1."""
        return self._tail_and_density(value, torch.ones_like(value))[0]

    def _smoothable(self) -> "Distribution":
        """The same distribution with a tolerance of 0 where it can have one and has none."""
        return self

    def _boxed_gaussians(self) -> BoxedGaussians | None:
        """As a mixture of Gaussians, each smoothed by a tolerance; None where it is none."""
        return None

    def _closed_crps(self, value: Floats) -> Floats | None:
        """`crps` of another closed form; None where it has to be integrated."""
        return None

    def as_normal(self) -> "Normal | None":
        """The same distribution as a `Normal` where it is one, else None.

        >>> from accord.distributions import Decomposed, Laplace, Normal
        >>> Decomposed(Normal([0.0], 1.0), disagreement=0.5).as_normal()
        Normal(mean=[0.], std=[1.])
        >>> Laplace([0.0], 1.0).as_normal() is None
        True
        """
        return None

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

    def deviations(self) -> dict[str, Values]:
        """``std`` and its parts by their names, in the time that one of them takes.

        >>> from accord.distributions import Mixture, Normal
        >>> list(Mixture(Normal(mean=[[0.0], [2.0]], std=1.0)).deviations())
        ['std', 'noise', 'disagreement', 'distance']
        """
        parts = self._variances()
        found = zip(("std", *PARTS), (_total(parts), *parts), strict=True)
        return {name: self._answer(variance.sqrt()) for name, variance in found}

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

    def crps(self, value: Values) -> Values:
        """The continuous ranked probability score ∫ (F(x) − 1{x ≥ value})² dx, without a gradient.

        Exact for every single family, for mixtures of Gaussians, smoothed by a tolerance or not,
        and for draws (the score of their step function). What else there is is integrated with an
        error below 1e-8 standard deviations.

        >>> from accord.distributions import Normal
        >>> Normal([0.0, 10.0], 1.0).crps([0.0, 12.0]).round(4)
        array([0.2337, 1.4528])
        """
        points = self._receive("value", value)
        score = self._crps(to_floats(points))
        return self._answer(torch.from_numpy(score).to(points.device))

    @final
    def _crps(self, y: Floats) -> Floats:
        boxed = self._boxed_gaussians()
        if boxed is not None:
            return crps_boxed_gaussians(boxed, y)
        closed = self._closed_crps(y)
        return self._integrated_crps(y) if closed is None else closed

    @final
    def _integrated_crps(self, y: Floats) -> Floats:
        marks = self._exact()._landmarks(far=False).reshape(-1, *self.shape)
        # not by way of its logarithm, which is dear in tails that add nothing here
        return crps_quadrature(
            lambda x: to_floats(self._evaluate("_plain_cdf", torch.from_numpy(x).to(marks))),
            to_floats(marks),
            y,
        )

    def quantile(self, alpha: Values) -> Values:
        """The smallest y with P(Y ≤ y) ≥ alpha.

        Those of larger levels are never smaller, not even by rounding.

        **Shape**: a scalar ``alpha`` gives ``shape``, levels ``(K,)`` give ``(*shape, K)``.

        >>> from accord.distributions import Normal
        >>> Normal([0.0, 10.0], 1.0).quantile([0.025, 0.975]).round(2)
        array([[-1.96,  1.96],
               [ 8.04, 11.96]])
        """
        levels = to_tensor("alpha", alpha, torch.float64, self._reference.device).detach()
        check_probability("alpha", levels, remedy="Write 0.95 for the 95 % quantile.")
        if levels.ndim > 1:
            raise ValueError(
                f"alpha must be a scalar or one-dimensional, got shape {tuple(levels.shape)}. "
                "Pass the levels as one list; every row answers all of them."
            )
        rising = levels.reshape(-1).sort()
        quantiles = self._quantiles(rising.values, 1 - rising.values).cummax(-1).values
        quantiles = quantiles[..., rising.indices.argsort()]
        return self._answer(quantiles if levels.ndim else quantiles[..., 0])

    def interval(self, coverage: float) -> Values:
        """The central interval: (1 − coverage)/2 of the probability on either side.

        **Shape**: ``(*shape, 2)``, lower and upper end.
        """
        check_scalar("coverage", coverage, remedy="Ask for one after the other.")
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe()})"

    @final
    def _variance(self) -> Tensor:
        return _total(self._variances())

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


def _total(parts: Variances) -> Tensor:
    noise, disagreement, distance = parts
    # members without a mean have no disagreement (NaN), but an infinite variance
    return torch.where(noise.isinf(), torch.inf, noise + disagreement + distance)
