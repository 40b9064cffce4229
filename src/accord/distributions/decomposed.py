"""A distribution whose epistemic part is known."""

from typing import Self, final

import torch
from torch import Tensor

from accord._checks import check_non_negative, check_trailing
from accord.distributions.conversion import Values, shown
from accord.distributions.distribution import Distribution, Generator, TensorMap


@final
class Decomposed(Distribution):
    """The base, of whose variance a stated part is epistemic; the rest is aleatoric.

    For predictions that know the two parts but are not mixtures: var = aleatoric² + epistemic².

    **Shape**: that of the base; ``epistemic`` (a standard deviation) is a scalar or has that shape.

    >>> from accord.distributions import Normal
    >>> prediction = Decomposed(Normal(mean=[0.0, 1.0], std=5.0), epistemic=[3.0, 0.0])
    >>> prediction.aleatoric, prediction.epistemic, prediction.std
    (array([4., 5.]), array([3., 0.]), array([5., 5.]))
    """

    def __init__(self, base: Distribution, epistemic: Values) -> None:
        stated = base._convert("epistemic", epistemic)
        check_non_negative("epistemic", stated, remedy="Use 0 where nothing is epistemic.")
        check_trailing("epistemic", stated, base.shape, owner="base")
        self._base, self._numpy = base, base._numpy
        self._epistemic = stated.expand(base.shape)
        self._check_parts()

    def _check_parts(self) -> None:
        total = self._base._variance().sqrt()
        # A part computed on its own route may exceed the whole by rounding.
        slack = 1e-4 if total.dtype == torch.float32 else 1e-9
        over = self._epistemic > total * (1 + slack)
        if bool(over.any()):
            raise ValueError(
                "epistemic must not exceed the standard deviation of the base, got "
                f"{float(self._epistemic[over][0])} with {float(total[over][0])}. "
                "Pass a standard deviation, not a variance."
            )

    @property
    def base(self) -> Distribution:
        """The distribution itself."""
        return self._base

    @property
    def _reference(self) -> Tensor:
        return self._base._reference

    @property
    def _width(self) -> int:
        return self._base._width

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead), _epistemic=function(self._epistemic, lead)
        )

    def _mean(self) -> Tensor:
        return self._base._mean()

    def _variances(self) -> tuple[Tensor, Tensor]:
        total = self._base._variance()
        epistemic = torch.minimum(self._epistemic**2, total)
        return total - epistemic, epistemic

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._base._log_prob(value)

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        return self._base._log_tail(value, sign)

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        return self._base._log_between(lower, upper)

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        return self._base._log_within(center, half_width)

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        return self._base._bracket(p, q)

    def _draw(self, n: int, rng: Generator) -> Tensor:
        return self._base._draw(n, rng)

    def _describe(self) -> str:
        return f"{self._base!r}, epistemic={shown(self._epistemic)}"
