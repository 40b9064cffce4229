"""Networks with several outputs that depend on each other: heads and the loss of a joint rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from accord._numerics import (
    Region,
    log_normal_density,
    log_normal_in_any,
    log_normal_where,
    training_points,
)
from accord.training.objectives import Heads
from accord.training.tasks import Columns


@final
@dataclass(frozen=True)
class JointHeads:
    """How raw outputs become the mean and the Cholesky factor of D scaled targets.

    L = diag(√d) (1 + A): ``heads`` give the means and the d, the variance of each target given
    those before it; A is strictly lower triangular and made of raw outputs, which say how much of a
    target's error the errors before it explain, in units of √d.

    **Shape**: raw (…, D (D + 3)/2): means, variances, and A row by row → (…, D) and (…, D, D).
    """

    heads: Heads
    n_targets: int

    @property
    def n_outputs(self) -> int:
        return self.n_targets * (self.n_targets + 3) // 2

    def __call__(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        d = self.n_targets
        mean, variance = self.heads(raw[..., : 2 * d])
        rows, columns = torch.tril_indices(d, d, -1, device=raw.device)
        factor = torch.eye(d, dtype=raw.dtype, device=raw.device).expand(*mean.shape, d)
        factor = factor.clone()
        factor[..., rows, columns] = raw[..., 2 * d :]
        return mean, factor * variance.sqrt()[..., None]


@final
@dataclass(frozen=True)
class JointLoss:
    """−log P(ŷ − t agrees with the row) for jointly normal ŷ; exact agreement is NLL.

    The errors that agree are those of disjoint regions, whose numbers stand in a column. Where a
    rule has to be asked, ``agrees`` is given errors (K, M, B, D) and the columns, and the regions
    say where most of the agreement is.

    Columns: ``target`` (M, B, D); unless agreement is exact, ``regions`` (M, B, …), the tensors of
    the regions side by side, and ``log_volume`` (M, B, 1), which is added.

    Args:
        heads: From raw outputs to means and Cholesky factors.
        regions: Regions of the form that the columns have; none for exact agreement.
        agrees: Where the regions do not say it all, whether errors agree.
    """

    heads: JointHeads
    regions: tuple[Region, ...] = ()
    agrees: Callable[[Tensor, Columns], Tensor] | None = None

    def __call__(self, raw: Tensor, columns: Columns) -> Tensor:
        mean, cholesky = self.heads(raw)
        shift = mean - columns["target"]
        if not self.regions:
            return -log_normal_density(shift, cholesky)[..., None]
        log_p = self._log_probability(shift, cholesky, columns)
        return (columns["log_volume"] - log_p[..., None]).to(raw.dtype)

    def error(self, raw: Tensor, columns: Columns) -> Tensor:
        """How far the loss is from that with other points: its error, about."""
        mean, cholesky = self.heads(raw)
        shift = mean - columns["target"]
        fine, coarse = (
            self._log_probability(shift, cholesky, columns, coarse=coarse)
            for coarse in (False, True)
        )
        return (fine - coarse).abs()

    def _log_probability(
        self, shift: Tensor, cholesky: Tensor, columns: Columns, *, coarse: bool = False
    ) -> Tensor:
        n_outputs = shift.shape[-1]
        side_by_side = columns["regions"].double()
        numbers = iter(side_by_side.chunk(side_by_side.shape[-1] // n_outputs, -1))
        regions = [region.map(lambda _: next(numbers)) for region in self.regions]
        ask = self.agrees
        if ask is None:
            points = training_points(n_outputs, coarse=coarse)
            return log_normal_in_any(regions, shift, cholesky, points)
        return log_normal_where(
            lambda errors: ask(errors, columns), regions, shift, cholesky, coarse=coarse
        )


def numbers_of(regions: Sequence[Region]) -> list[Tensor]:
    """The tensors of regions, in the order in which a `JointLoss` reads them."""
    numbers: list[Tensor] = []

    def noted(tensor: Tensor) -> Tensor:
        numbers.append(tensor)
        return tensor

    for region in regions:
        region.map(noted)
    return numbers
