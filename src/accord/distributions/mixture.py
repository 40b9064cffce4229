"""Mixtures: what an ensemble predicts."""

from math import prod
from typing import Self, final

import torch
from torch import Tensor

from accord._checks import check_finite, check_non_negative
from accord.distributions.conversion import Values, shown
from accord.distributions.distribution import Distribution, Generator, TensorMap, torch_generator
from accord.distributions.empirical import Empirical


@final
class Mixture(Distribution):
    """The weighted mixture over the leading axis of its components, Σ_m w_m ρ_m.

    Its mean is μ* = Σ w_m μ_m and its variance the sum of two parts: the aleatoric Σ w_m σ_m²,
    and the epistemic Σ w_m (μ_m − μ*)² = Σ w_m μ_m² − μ*², the disagreement of the members.

    ``components`` is one distribution whose first axis runs over the members; ``weights`` are
    uniform unless given, and are normalised to sum to 1.

    **Shape**: components ``(M, *shape)``, weights ``(M,)``; the mixture has ``shape``.

    >>> from accord.distributions import Normal
    >>> ensemble = Mixture(Normal(mean=[[0.0, 1.0], [2.0, 1.0]], std=1.0))
    >>> ensemble.mean, ensemble.variance
    (array([1., 1.]), array([2., 1.]))
    >>> ensemble.aleatoric, ensemble.epistemic
    (array([1., 1.]), array([1., 0.]))
    >>> ensemble.quantile(0.5)
    array([1., 1.])
    """

    def __init__(self, components: Distribution, weights: Values | None = None) -> None:
        if not isinstance(components, Distribution) or isinstance(components, Empirical):
            raise TypeError(
                "components must be one distribution with a leading axis of members, got "
                f"{type(components).__name__}. Stack the members' parameters, as in "
                "Normal(mean, std) with shape (M, N); pool the draws of Empirical members."
            )
        if not components.shape:
            raise ValueError(
                "components must have a leading axis of members, got shape (). "
                "Stack the members' parameters."
            )
        self._components, self._numpy = components, components._numpy
        self._weights = _normalised(weights, components)

    @property
    def components(self) -> Distribution:
        """The members, as one distribution with a leading axis."""
        return self._components

    @property
    def weights(self) -> Values:
        """The members' weights, which sum to 1."""
        return self._answer(self._weights)

    @property
    def _reference(self) -> Tensor:
        return self._components._reference[0]

    @property
    def _width(self) -> int:
        return self._components._width * self._components.shape[0]

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(_components=self._components._map(function, lead + 1))

    def _mean(self) -> Tensor:
        first, offsets = self._offsets()
        return first + self._average(offsets)

    def _variances(self) -> tuple[Tensor, Tensor]:
        aleatoric, epistemic = self._components._variances()
        _, offsets = self._offsets()
        # Σ w μ² − μ*² would lose its digits far from 0, and can turn negative.
        spread = (offsets - self._average(offsets)) ** 2
        return self._average(aleatoric), self._average(epistemic + spread)

    def _offsets(self) -> tuple[Tensor, Tensor]:
        """The first member's mean and what the others add to it: nothing, if they agree."""
        means = self._components._mean()
        first = means.select(self._axis, 0)
        return first, means - self._to_members(first)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._log_average(self._components._log_prob(self._to_members(value)))

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        members = self._to_members(value), self._to_members(sign)
        return self._log_average(self._components._log_tail(*members))

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        members = self._to_members(lower), self._to_members(upper)
        return self._log_average_below_one(self._components._log_between(*members))

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        members = self._to_members(center), self._to_members(half_width)
        return self._log_average_below_one(self._components._log_within(*members))

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Between the members' own quantiles; in the tails, closer.

        F ≥ w_m F_m: with probability p/w_m below it for one member, a point has at least p below it
        for the mixture. Likewise above.
        """
        p, q = self._to_members(p), self._to_members(q)
        weights = self._weights.to(p).reshape(self._member_shape)
        lower, upper = self._components._bracket(p, q)
        lowest = torch.where(weights > 0, lower, torch.inf).amin(self._axis)
        highest = torch.where(weights > 0, upper, -torch.inf).amax(self._axis)
        share = p / weights
        _, enough = self._components._bracket(share.clamp(max=1), (1 - share).clamp(min=0))
        enough = torch.where(share < 1, enough, torch.inf).amin(self._axis)
        share = q / weights
        short, _ = self._components._bracket((1 - share).clamp(min=0), share.clamp(max=1))
        short = torch.where(share < 1, short, -torch.inf).amax(self._axis)
        return torch.maximum(lowest, short), torch.minimum(highest, enough)

    def _draw(self, n: int, rng: Generator) -> Tensor:
        flat, generator = self._flat(), torch_generator(rng)
        n_rows, weights = flat.shape[0], self._weights.cpu()
        rows = torch.arange(n_rows)
        step = max(1, 2**20 // (n_rows * self._components._width))
        draws = []
        for start in range(0, n, step):
            size = (min(step, n - start), n_rows)
            members = weights.multinomial(prod(size), replacement=True, generator=generator)
            chosen = flat._components._map(_pick(members.reshape(size), rows))
            draws.append(chosen._draw(1, rng)[0])
        return torch.cat(draws).reshape((n, *self.shape))

    def _describe(self) -> str:
        return f"{self._components!r}, weights={shown(self._weights)}"

    @property
    def _axis(self) -> int:
        return -1 - self._reference.ndim

    @property
    def _member_shape(self) -> tuple[int, ...]:
        return (-1, *(1 for _ in self.shape))

    def _to_members(self, value: Tensor) -> Tensor:
        return value.unsqueeze(self._axis)

    def _average(self, values: Tensor) -> Tensor:
        return (self._weights.to(values).reshape(self._member_shape) * values).sum(self._axis)

    def _log_average(self, logs: Tensor) -> Tensor:
        weights = self._weights.to(logs).reshape(self._member_shape)
        return torch.logsumexp(logs + weights.log(), dim=self._axis)

    def _log_average_below_one(self, logs: Tensor) -> Tensor:
        """The same for probabilities, with the digits of log p kept where p is near 1."""
        missing = self._average(torch.expm1(logs.clamp(max=0)))
        near_one = torch.log1p(missing.clamp(min=-0.5))
        return torch.where(missing > -0.5, near_one, self._log_average(logs))


def _pick(members: Tensor, rows: Tensor) -> TensorMap:
    """The parameters of one member per row, for several draws at once."""
    return lambda tensor, lead: tensor[(slice(None),) * lead + (members, rows)]


def _normalised(weights: Values | None, components: Distribution) -> Tensor:
    """Weights that sum to 1 to the digits in which mixtures are evaluated, whatever their dtype."""
    kind, n_members = components._exact()._reference, components.shape[0]
    if weights is None:
        return kind.new_full((n_members,), 1 / n_members)
    tensor = components._convert("weights", weights).to(kind)
    if tuple(tensor.shape) != (n_members,):
        raise ValueError(
            f"weights must be one number per member, got shape {tuple(tensor.shape)} for "
            f"{n_members} members. Use None for equal weights."
        )
    check_finite("weights", tensor)
    check_non_negative("weights", tensor, remedy="Use 0 to leave a member out.")
    total = tensor.sum()
    if not bool(total > 0):
        raise ValueError(
            "weights must not all be zero, got a sum of 0. Use None for equal weights."
        )
    return tensor / total
