"""Joint distributions made of others: smoothed by a tolerance, and mixed over members."""

import math
from functools import cache
from typing import Literal, Self, final, get_args

import numpy as np
import torch
from scipy.special import roots_jacobi
from torch import Tensor

from accord._checks import check_choice, check_non_negative, check_positive
from accord._numerics import Region, log_normal_in, training_points
from accord._types import Floats
from accord.distributions.batch import Generator, TensorMap, Values, to_tensor
from accord.distributions.distribution import Distribution
from accord.distributions.joint import JointDistribution, MultivariateNormal
from accord.distributions.mixture import Mixture
from accord.distributions.smoothed import Smoothed

AgreedShape = Literal["box", "ellipsoid"]
_SHELLS = 8  # boxes that a marginal of an ellipsoid is made of: 30 of its moments are exact
_BLOCK = 2**21  # numbers held at a time


@final
class JointSmoothed(JointDistribution):
    """A multivariate normal whose outputs have one more error, uniform in a box or an ellipsoid.

    That is the density whose likelihood the probability of agreement is: with A the rule "all
    within h" or "norm within", q(y) = P(A)/volume.

    Args:
        base: the normal distribution.
        half_width: h of each output: half the edges of the box, or the ellipsoid's semi-axes.
        figure: "box" or "ellipsoid".

    **Shape**: half_width a number, ``(D,)``, or ``(*shape, D)``.

    >>> pair = MultivariateNormal([[0.0, 1.0]], [[1.0, 0.0], [0.8, 0.6]])
    >>> JointSmoothed(pair, [0.3, 0.6], figure="box").covariance.round(2)
    array([[[1.03, 0.8 ],
            [0.8 , 1.12]]])
    """

    def __init__(
        self, base: MultivariateNormal, half_width: Values, *, figure: AgreedShape = "box"
    ) -> None:
        check_choice("figure", figure, get_args(AgreedShape))
        like = base._mean()
        half = to_tensor("half_width", half_width, like.dtype, like.device)
        check_positive("half_width", half, remedy="Use the base for exact agreement.")
        self._base, self._figure, self._numpy = base, figure, base._numpy
        self._half = half.expand(like.shape)

    @property
    def n_outputs(self) -> int:
        return self._base.n_outputs

    @property
    def base(self) -> MultivariateNormal:
        """The normal distribution."""
        return self._base

    @property
    def marginals(self) -> Distribution:
        normal = self._base.marginals
        if self._figure == "box":
            return Smoothed(normal, self._answer(self._half))
        sizes, weights = shells(self.n_outputs)
        shares = torch.from_numpy(sizes).to(self._half)
        half = shares.view(-1, *(1 for _ in self._half.shape)) * self._half
        copies = normal._map(lambda tensor, _: tensor.expand(len(weights), *tensor.shape))
        return Mixture(Smoothed(copies, self._answer(half)), weights, spread="noise")

    @property
    def _reference(self) -> Tensor:
        return self._base._reference

    @property
    def _width(self) -> int:
        return self._base._width

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead), _half=function(self._half, lead)
        )

    def _mean(self) -> Tensor:
        return self._base._mean()

    def _covariance(self) -> Tensor:
        part = 3 if self._figure == "box" else self.n_outputs + 2
        return self._base._covariance() + torch.diag_embed(self._half.square() / part)

    def _log_prob(self, value: Tensor) -> Tensor:
        shift = self._base._mean() - value
        points = training_points(self.n_outputs)
        rows = [
            x.expand(*shift.shape, *x.shape[self._half.ndim :])
            for x in (self._half, self._base._lower)
        ]
        flat = [shift.reshape(-1, self.n_outputs)]
        flat += [x.reshape(-1, *x.shape[shift.ndim - 1 :]) for x in rows]
        step = max(1, _BLOCK // len(points.unit))
        log_p = [
            log_normal_in(region_of(self._figure, half), m, lower, points)
            for m, half, lower in zip(*(torch.split(x, step) for x in flat), strict=True)
        ]
        found = torch.cat(log_p).reshape(shift.shape[:-1])
        return found - log_volume(self._figure, self._half.double())

    def _draw(self, n: int, rng: Generator) -> Tensor:
        u = rng.uniform(-1, 1, (n, *self._half.shape))
        if self._figure == "ellipsoid":
            u = rng.standard_normal(u.shape)
            radius = rng.uniform(size=u.shape[:-1]) ** (1 / self.n_outputs)
            u *= (radius / np.linalg.norm(u, axis=-1))[..., None]
        return self._base._draw(n, rng) + self._half * torch.from_numpy(u).to(self._half)

    def __repr__(self) -> str:
        return f"JointSmoothed({self._base!r}, figure={self._figure!r})"


def region_of(figure: AgreedShape, half_width: Tensor) -> Region:
    """A box or an ellipsoid about 0, (*S, D), in float64."""
    half = half_width.double()
    if figure == "box":
        return Region(-half, half)
    free = torch.full_like(half, torch.inf)
    return Region(-free, free, (half,))


def log_volume(figure: AgreedShape, half_width: Tensor) -> Tensor:
    """log of the volume of a box or an ellipsoid, (*S, D) → (*S).

    >>> round(float(log_volume("ellipsoid", torch.tensor([1.0, 2.0])).exp() / math.pi), 3)
    2.0
    """
    d, sides = half_width.shape[-1], torch.log(half_width).sum(-1)
    if figure == "box":
        return sides + d * math.log(2)
    return sides + d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)


@cache
def shells(n_outputs: int) -> tuple[Floats, Floats]:
    """One coordinate of a point that is uniform in the unit ball, as a mixture of Uniform(−h, h).

    Its density falls on both sides as (1 − x²)^((D−1)/2), so that it is such a mixture over h
    (Khinchin), with h² distributed as Beta(3/2, (D−1)/2): by that law's Gauss rule.
    """
    if n_outputs == 1:
        return np.ones(1), np.ones(1)
    nodes, weights = roots_jacobi(_SHELLS, (n_outputs - 3) / 2, 0.5)
    return np.sqrt((1 + nodes) / 2), weights / weights.sum()


@final
class JointMixture(JointDistribution):
    """The weighted mixture over the leading axis of joint distributions: what an ensemble predicts.

    Its covariance is the members' mean covariance, and that of their means: members that part
    together make outputs correlated.

    Args:
        components: a joint distribution whose first axis runs over the members.
        weights: of the members; equal unless given, normalised to sum to 1.

    **Shape**: components ``(M, *shape)``, weights ``(M,)``; the mixture has ``shape``.

    >>> members = MultivariateNormal([[[0.0, 0.0]], [[2.0, 2.0]]], [[1.0, 0.0], [0.0, 1.0]])
    >>> float(JointMixture(members).correlation[0, 0, 1].round(3))
    0.5
    """

    def __init__(self, components: JointDistribution, weights: Values | None = None) -> None:
        if not components.shape:
            raise ValueError(
                "components must have an axis of members, got shape (). Stack them along axis 0."
            )
        like, m = components._reference, components.shape[0]
        given = torch.ones(m) if weights is None else weights
        w = to_tensor("weights", given, like.dtype, like.device)
        check_non_negative("weights", w)
        if tuple(w.shape) != (m,) or not bool(w.sum() > 0):
            raise ValueError(
                f"weights must be one per member ({m}), not all 0, got shape {tuple(w.shape)}."
            )
        self._members, self._numpy = components, components._numpy
        self._weights = w / w.sum()

    @property
    def components(self) -> JointDistribution:
        """The members, as one joint distribution with a leading axis."""
        return self._members

    @property
    def weights(self) -> Values:
        """The members' weights, which sum to 1."""
        return self._answer(self._weights)

    @property
    def n_outputs(self) -> int:
        return self._members.n_outputs

    @property
    def marginals(self) -> Distribution:
        return Mixture(self._members.marginals, self._answer(self._weights))

    @property
    def _reference(self) -> Tensor:
        return self._members._reference[0]

    @property
    def _width(self) -> int:
        return self._members._width * self._members.shape[0]

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(_members=self._members._map(function, lead + 1))

    def _average(self, values: Tensor) -> Tensor:
        weights = self._weights.reshape(-1, *(1 for _ in values.shape[1:]))
        return (weights * values).sum(0)

    def _mean(self) -> Tensor:
        return self._average(self._members._mean())

    def _covariance(self) -> Tensor:
        away = self._members._mean() - self._mean()
        between = away[..., :, None] * away[..., None, :]
        return self._average(self._members._covariance() + between)

    def _log_prob(self, value: Tensor) -> Tensor:
        # the members come first, before whatever axes the values have more
        values = value.unsqueeze(-1 - self._members._mean().ndim + 1)
        log_weights = self._weights.log().reshape(-1, *(1 for _ in self.shape))
        together = self._members._log_prob(values) + log_weights
        return torch.logsumexp(together, -1 - len(self.shape))

    def _draw(self, n: int, rng: Generator) -> Tensor:
        rows = math.prod(self.shape)
        chosen = rng.choice(
            len(self._weights), size=(n, rows), p=self._weights.double().cpu().numpy()
        )
        draws = self._mean().new_empty(n, rows, self.n_outputs)
        flat = self._flat()._members
        for member in np.unique(chosen):
            place = np.nonzero(chosen == member)
            draws[place] = flat[int(member), place[1]]._draw(1, rng)[0]
        return draws.reshape(n, *self.shape, self.n_outputs)

    def __repr__(self) -> str:
        return f"JointMixture({len(self._weights)} members, shape={self.shape})"
