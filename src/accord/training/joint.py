"""Networks with several outputs that depend on each other: heads and the loss of a joint rule."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from accord._numerics import Region, log_normal_density, log_normal_in, training_points
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
    """−log P(ŷ − t in the row's region) for jointly normal ŷ; exact agreement is NLL.

    Columns: ``target`` (M, B, D); unless agreement is exact, ``lower`` and ``upper`` (M, B, D), the
    semi-axes ``axes`` of ``n_ellipsoids`` (M, B, D · n_ellipsoids), and ``log_volume`` (M, B, 1),
    which is added.
    """

    heads: JointHeads
    exact: bool
    n_ellipsoids: int = 0

    def __call__(self, raw: Tensor, columns: Columns) -> Tensor:
        mean, cholesky = self.heads(raw)
        shift = mean - columns["target"]
        if self.exact:
            return -log_normal_density(shift, cholesky)[..., None]
        log_p = log_normal_in(
            self.region(columns), shift, cholesky, training_points(shift.shape[-1])
        )
        return (columns["log_volume"] - log_p[..., None]).to(raw.dtype)

    def error(self, raw: Tensor, columns: Columns) -> Tensor:
        """How far the loss is from that with other points: its error, about."""
        mean, cholesky = self.heads(raw)
        region, shift = self.region(columns), mean - columns["target"]
        fine, coarse = (
            log_normal_in(region, shift, cholesky, training_points(shift.shape[-1], coarse=coarse))
            for coarse in (False, True)
        )
        return (fine - coarse).abs()

    def region(self, columns: Columns) -> Region:
        axes = columns["axes"].chunk(self.n_ellipsoids, -1) if self.n_ellipsoids else ()
        return Region(
            columns["lower"].double(), columns["upper"].double(), tuple(a.double() for a in axes)
        )
