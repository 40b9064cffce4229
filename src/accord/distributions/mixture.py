"""Mixtures: what an ensemble predicts, and what a network with a mixture head does."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, Self, final, get_args

import torch
from torch import Tensor

from accord._checks import check_choice, check_finite, check_non_negative
from accord.distributions.batch import (
    Generator,
    TensorMap,
    Values,
    abridged,
    to_floats,
    torch_generator,
)
from accord.distributions.crps import BoxedGaussians, of_members
from accord.distributions.distribution import Distribution, Pointwise, Variances

Spread = Literal["disagreement", "noise"]

# So few values are averaged sooner than their members are counted.
_FEW = 2**13


@final
class Mixture(Distribution):
    """The weighted mixture over the leading axis of its components, Σ_m w_m ρ_m.

    Its mean is μ* = Σ w_m μ_m, and its variance Σ w_m σ_m² + Σ w_m (μ_m − μ*)². The second part,
    the spread between members, counts as ``spread`` says: as the *disagreement* of the members of
    an ensemble, or as *noise* where the members are the components of one network's mixture head.
    A mixture of such mixtures therefore has the right parts.

    Args:
        components: One distribution whose first axis runs over the members, or a sequence of
            such distributions, of different families, for members of several kinds.
        weights: Of all members in the order of the components, for all rows or for each row; equal
            unless given, normalised to sum to 1.
        spread: What the spread between the members' means counts as.

    **Shape**: components ``(M, *shape)``, weights ``(M,)`` or ``(M, *shape)``; the mixture has
    ``shape``.

    >>> from accord.distributions import Laplace, Normal
    >>> ensemble = Mixture(Normal(mean=[[0.0, 1.0], [2.0, 1.0]], std=1.0))
    >>> ensemble.mean, ensemble.variance
    (array([1., 1.]), array([2., 1.]))
    >>> ensemble.noise, ensemble.disagreement
    (array([1., 1.]), array([1., 0.]))
    >>> two_kinds = Mixture([Normal([[0.0]], 1.0), Laplace([[3.0]], 1.0)], weights=[[0.8], [0.2]])
    >>> two_kinds.mean.round(2), two_kinds.cdf(0.0).round(3)
    (array([0.6]), array([0.405]))
    """

    _smoothed_by = "Smooth its components: Mixture(Smoothed(components, tolerance))."

    def __init__(
        self,
        components: Distribution | Sequence[Distribution],
        weights: Values | None = None,
        *,
        spread: Spread = "disagreement",
    ) -> None:
        check_choice("spread", spread, get_args(Spread))
        groups = (components,) if isinstance(components, Distribution) else tuple(components)
        _check_components(groups)
        self._groups, self._numpy, self._spread = groups, groups[0]._numpy, spread
        self._weights = _normalised(weights, groups)
        self._by_row = self._weights.ndim > 1  # whether they have the axes of the rows, too

    @property
    def components(self) -> Distribution:
        """The members, as one distribution with a leading axis."""
        if len(self._groups) > 1:
            raise TypeError(
                "components must be of one family to be one distribution, got "
                f"{len(self._groups)} kinds. Use groups, or members."
            )
        return self._groups[0]

    @property
    def groups(self) -> tuple[Distribution, ...]:
        """The members of each family, as distributions with a leading axis."""
        return self._groups

    @property
    def members(self) -> tuple[Distribution, ...]:
        """The members one by one."""
        return tuple(group[m] for group in self._groups for m in range(group.shape[0]))

    @property
    def weights(self) -> Values:
        """The members' weights, which sum to 1, ``(M,)`` or ``(M, *shape)``."""
        return self._answer(self._weights)

    @property
    def spread(self) -> Spread:
        """What the spread between the members' means counts as."""
        return self._spread

    @property
    def _reference(self) -> Tensor:
        return self._groups[0]._reference[0]

    @property
    def _width(self) -> int:
        return sum(group._width * group.shape[0] for group in self._groups)

    @property
    def _by_newton(self) -> bool:
        return True

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        groups = tuple(group._map(function, lead + 1) for group in self._groups)
        weights = function(self._weights, lead + 1) if self._by_row else self._weights
        return self._replace(_groups=groups, _weights=weights)

    def _mean(self) -> Tensor:
        first, offsets = _offsets(self._joined("_mean"), self._axis)
        return first + self._average(offsets)

    def _variances(self) -> Variances:
        parts = [group._variances() for group in self._groups]
        return self._with_spread(self._joined("_mean"), parts)

    def _with_spread(self, means: Tensor, parts: Sequence[Variances]) -> Variances:
        noise, disagreement, distance = (
            self._average(_cat(part, self._axis)) for part in zip(*parts, strict=True)
        )
        _, offsets = _offsets(means, self._axis)
        # Σ w μ² − μ*² would lose its digits far from 0, and can turn negative.
        center = self._average(offsets).unsqueeze(self._axis)
        spread = self._average((offsets - center) ** 2)
        if self._spread == "noise":
            return noise + spread, disagreement, distance
        return noise, disagreement + spread, distance

    def _tolerance_variance(self) -> Tensor:
        return self._average(self._joined("_tolerance_variance"))

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        moments = [group._moments_through(function) for group in self._groups]
        means = _cat([mean for mean, _ in moments], self._axis)
        first, offsets = _offsets(means, self._axis)
        mean = first + self._average(offsets)
        return mean, self._with_spread(means, [parts for _, parts in moments])

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(_groups=tuple(g._moved(shift, factor) for g in self._groups))

    def _inner(self) -> tuple[Distribution, ...]:
        return self._groups

    def _smoothable(self) -> Self:
        return self._replace(_groups=tuple(group._smoothable() for group in self._groups))

    def _boxed_gaussians(self) -> BoxedGaussians | None:
        groups = [group._boxed_gaussians() for group in self._groups]
        known = [group for group in groups if group is not None]
        if len(known) < len(groups):
            return None
        return of_members(known, to_floats(self._weights), self.shape)

    def _landmarks(self, *, far: bool) -> Tensor:
        """Those of every member."""
        marks = [group._flat()._landmarks(far=far) for group in self._groups]
        n = len(self)
        return torch.cat([m.reshape(-1, n) for m in marks])

    @property
    def _n_uniforms(self) -> int:
        return 1 + max(group._n_uniforms for group in self._groups)

    def _from_uniforms(self, u: Tensor) -> Tensor:
        """The first number chooses the member of every row, the others draw from it."""
        ends = self._member_weights().cumsum(0)  # (M, n)
        chosen = torch.zeros(len(u), len(self), dtype=torch.long)
        for end in ends[:-1]:
            chosen += u[:, :1] > end
        out = torch.empty(len(u), len(self), dtype=u.dtype)
        for m, member in enumerate(self.members):
            here = chosen == m
            rows = here.any(1)
            if bool(rows.any()):
                drawn = member._from_uniforms(u[rows, 1 : 1 + member._n_uniforms])
                out[rows] = torch.where(here[rows], drawn, out[rows])
        return out

    def _tail_and_density(self, value: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
        members = self._to_members(value), self._to_members(sign)
        parts = [group._tail_and_density(*members) for group in self._groups]
        tail, density = (_cat(part, self._axis) for part in zip(*parts, strict=True))
        return self._average(tail), self._average(density)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._log_average(self._joined("_log_prob", value))

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        return self._log_average(self._joined("_log_tail", value, sign))

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        return self._log_average_below_one(self._joined("_log_between", lower, upper))

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        return self._log_average_below_one(self._joined("_log_within", center, half_width))

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Between the members' own quantiles; in the tails, closer.

        F ≥ w_m F_m: with probability p/w_m below it for one member, a point has at least p below it
        for the mixture. Likewise above.
        """
        weights = self._shares(p)
        lower, upper = self._member_brackets(self._to_members(p), self._to_members(q))
        lowest = torch.where(weights > 0, lower, torch.inf).amin(self._axis)
        highest = torch.where(weights > 0, upper, -torch.inf).amax(self._axis)
        share = self._to_members(p) / weights
        _, enough = self._member_brackets(share.clamp(max=1), (1 - share).clamp(min=0))
        enough = torch.where(share < 1, enough, torch.inf).amin(self._axis)
        share = self._to_members(q) / weights
        short, _ = self._member_brackets((1 - share).clamp(min=0), share.clamp(max=1))
        short = torch.where(share < 1, short, -torch.inf).amax(self._axis)
        return torch.maximum(lowest, short), torch.minimum(highest, enough)

    def _member_brackets(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Of all members, for levels of one for all or of one for each."""
        sizes = [group.shape[0] for group in self._groups]
        starts, found = [0, *accumulate(sizes)], []
        for group, start, size in zip(self._groups, starts, sizes, strict=False):
            levels = [
                x if x.shape[self._axis] == 1 else x.narrow(self._axis, start, size) for x in (p, q)
            ]
            found.append(group._bracket(*levels))
        lower, upper = (_cat(part, self._axis) for part in zip(*found, strict=True))
        return lower, upper

    def _draw(self, n: int, rng: Generator) -> Tensor:
        flat, generator = self._flat(), torch_generator(rng)
        n_rows, weights = len(flat), flat._member_weights().cpu().T.contiguous()
        rows, step = torch.arange(n_rows), max(1, 2**20 // (n_rows * self._width))
        draws = []
        for start in range(0, n, step):
            size = min(step, n - start)
            chosen = weights.multinomial(size, replacement=True, generator=generator).T
            draws.append(flat._draw_of(chosen, rows, rng))
        return torch.cat(draws).reshape((n, *self.shape))

    def _draw_of(self, chosen: Tensor, rows: Tensor, rng: Generator) -> Tensor:
        """One draw of the chosen member for each (draw, row)."""
        start, drawn = 0, None
        for group in self._groups:
            size = group.shape[0]
            inside = (chosen >= start) & (chosen < start + size)
            members = (chosen - start).clamp(0, size - 1)
            part = group._map(_pick(members, rows))._draw(1, rng)[0]
            drawn = part if drawn is None else torch.where(inside.to(part.device), part, drawn)
            start += size
        if drawn is None:
            raise RuntimeError("a mixture has no members. Report this as a bug.")
        return drawn

    def _describe(self) -> str:
        groups = ", ".join(map(repr, self._groups))
        listed = groups if len(self._groups) == 1 else f"[{groups}]"
        extra = "" if self._spread == "disagreement" else f", spread={self._spread!r}"
        return f"{listed}, weights={abridged(self._weights)}{extra}"

    @property
    def _axis(self) -> int:
        return -self._groups[0]._reference.ndim

    def _to_members(self, value: Tensor) -> Tensor:
        return value.unsqueeze(self._axis)

    def _joined(self, method: str, *values: Tensor) -> Tensor:
        """``method`` of all members, along their axis."""
        members = [self._to_members(value) for value in values]
        return _cat([getattr(group, method)(*members) for group in self._groups], self._axis)

    def _member_weights(self) -> Tensor:
        """Of a flat batch, in full, (M, n)."""
        return self._weights.reshape(len(self._weights), -1).expand(-1, len(self))

    def _shares(self, like: Tensor) -> Tensor:
        """The weights along the members' axis."""
        weights = self._weights.to(like)
        return weights if self._by_row else weights.reshape((-1,) + (1,) * (-1 - self._axis))

    def _average(self, values: Tensor) -> Tensor:
        shares = self._shares(values)
        if values.numel() < _FEW or values.requires_grad or shares.requires_grad:
            return (shares * values).sum(self._axis)
        # member by member: a sum over a short axis that is not the last takes three times as long
        weights, parts = shares.unbind(self._axis), values.unbind(self._axis)
        total = weights[0] * parts[0]
        for weight, part in zip(weights[1:], parts[1:], strict=True):
            total = torch.addcmul(total, weight, part)
        return total

    def _log_average(self, logs: Tensor) -> Tensor:
        return torch.logsumexp(logs + self._shares(logs).log(), dim=self._axis)

    def _log_average_below_one(self, logs: Tensor) -> Tensor:
        """The same for probabilities, with the digits of log p kept where p is near 1."""
        missing = self._average(torch.expm1(logs.clamp(max=0)))
        near_one = torch.log1p(missing.clamp(min=-0.5))
        return torch.where(missing > -0.5, near_one, self._log_average(logs))


def _cat(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=axis)


def _offsets(means: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The first member's mean and what the others add to it: nothing, if they agree."""
    first = means.select(axis, 0)
    return first, means - first.unsqueeze(axis)


def _pick(members: Tensor, rows: Tensor) -> TensorMap:
    """The parameters of one member per row, for several draws at once."""
    return lambda tensor, lead: tensor[(slice(None),) * lead + (members, rows)]


def _check_components(groups: tuple[Distribution, ...]) -> None:
    wrong = [g for g in groups if not isinstance(g, Distribution) or not g.has_density]
    if wrong or not groups:
        raise TypeError(
            "components must be distributions with a leading axis of members, got "
            f"{type(wrong[0]).__name__ if wrong else 'none'}. Stack the members' parameters, as in "
            "Normal(mean, std) with shape (M, N); pool the draws of Empirical members."
        )
    shapes = [group.shape for group in groups]
    if not all(shapes):
        raise ValueError(
            "components must have a leading axis of members, got shape (). "
            "Stack the members' parameters."
        )
    if len({shape[1:] for shape in shapes}) > 1:
        raise ValueError(
            f"components must have one shape after the axis of members, got {shapes}. "
            "Predict the same rows with all of them."
        )
    kinds = {(g._numpy, g._reference.dtype, g._reference.device) for g in groups}
    if len(kinds) > 1:
        raise TypeError(
            "components must all be built from arrays, or from tensors of one kind, got both. "
            "Convert them first."
        )


def _normalised(weights: Values | None, groups: tuple[Distribution, ...]) -> Tensor:
    """Weights that sum to 1 to the digits in which mixtures are evaluated, whatever their dtype."""
    kind = groups[0]._exact()._reference
    n_members, shape = sum(group.shape[0] for group in groups), groups[0].shape[1:]
    if weights is None:
        return kind.new_full((n_members,), 1 / n_members)
    tensor = groups[0]._convert("weights", weights).to(kind)
    if tuple(tensor.shape) not in ((n_members,), (n_members, *shape)):
        raise ValueError(
            f"weights must be one number per member, or one per member and row, got shape "
            f"{tuple(tensor.shape)} for {n_members} members and rows {shape}. "
            "Use None for equal weights."
        )
    check_finite("weights", tensor)
    check_non_negative("weights", tensor, remedy="Use 0 to leave a member out.")
    total = tensor.sum(0)
    if not bool((total > 0).all()):
        raise ValueError(
            "weights must not all be zero, got a sum of 0. Use None for equal weights."
        )
    return tensor / total
