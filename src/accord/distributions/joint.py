"""Several outputs per row that depend on each other: joint distributions, and the normal one."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import (
    RandomState,
    check_count,
    check_not_nan,
    check_positive,
    check_probability,
    check_scalar,
    generator_from,
)
from accord._numerics import log_normal_density, standard_errors
from accord.distributions.batch import (
    Batch,
    Generator,
    TensorMap,
    Values,
    of_one_kind,
    rows_of,
)
from accord.distributions.distribution import Distribution
from accord.distributions.families import Normal

_BLOCK = 2**22  # numbers held at a time
_DRAWS = 2048  # behind a level or a box: their coverage has a standard error of at most 0.011


class JointDistribution(Batch):
    """A batch of distributions of D outputs together, one per element of ``shape``.

    Built from arrays it answers in numpy (float64); built from tensors, in tensors.

    **Shape**: ``(N,)`` for N rows, ``(M, N)`` for M members; values have a last axis D more.
    """

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """D."""

    @property
    @abstractmethod
    def marginals(self) -> Distribution:
        """The distribution of each output alone, ``(*shape, D)``: intervals, quantiles, scores."""

    @abstractmethod
    def _mean(self) -> Tensor: ...

    @abstractmethod
    def _covariance(self) -> Tensor: ...

    @abstractmethod
    def _log_prob(self, value: Tensor) -> Tensor: ...

    @abstractmethod
    def _draw(self, n: int, rng: Generator) -> Tensor: ...

    @property
    def mean(self) -> Values:
        """E[Y], ``(*shape, D)``."""
        return self._answer(self._mean())

    @property
    def covariance(self) -> Values:
        """Cov[Y], ``(*shape, D, D)``."""
        return self._answer(self._covariance())

    @property
    def std(self) -> Values:
        """The standard deviation of each output, ``(*shape, D)``."""
        return self._answer(self._std())

    @property
    def correlation(self) -> Values:
        """The correlations of the outputs, ``(*shape, D, D)``."""
        std = self._std()
        return self._answer(self._covariance() / (std[..., :, None] * std[..., None, :]))

    def log_prob(self, value: Values) -> Values:
        """Log-density at ``value`` ``(..., *shape, D)``, one for all outputs together."""
        return self._answer(self._log_prob(self._receive_vectors("value", value)))

    def sample(self, n: int, *, random_state: RandomState = None) -> Values:
        """Independent draws of every row, ``(n, *shape, D)``."""
        check_count("n", n)
        return self._answer(self._draw(int(n), generator_from(random_state)))

    def level(self, value: Values) -> Values:
        """The coverage of the ellipsoid about the mean on whose rim ``value`` lies.

        It has the shape of the covariance. Observations from this distribution have levels that are
        uniform on [0, 1]: a share c of them lies in the ellipsoid of coverage c. Exact for a normal
        distribution, else by 2048 draws (a standard error of at most 0.011).

        **Shape**: value ``(*shape, D)`` → ``shape``.
        """
        own = self._distances(self._receive_vectors("value", value))
        parts = [
            (part._distances(part._draw(_DRAWS, rng)) <= own.reshape(-1)[rows]).double().mean(0)
            for rows, part, rng in self._drawn_parts()
        ]
        return self._answer(torch.cat(parts).reshape(self.shape))

    def box(self, coverage: float) -> Values:
        """An interval for each output, such that all of them hold at once with ``coverage``.

        The widest that are needed: mean ± q standard deviations, with the same q for every output
        of a row. By 2048 draws: the coverage has a standard error of at most 0.011.

        **Shape**: ``(*shape, D, 2)``, lower and upper end.
        """
        check_scalar("coverage", coverage)
        check_probability("coverage", coverage, strict=True, remedy="Write 0.95 for 95 %.")
        place = int(np.ceil(coverage * (_DRAWS + 1))) - 1
        reach = [
            part._reach(part._draw(_DRAWS, rng)).sort(0).values[min(place, _DRAWS - 1)]
            for _, part, rng in self._drawn_parts()
        ]
        mean, std = self._mean(), self._std()
        half = torch.cat(reach).reshape(self.shape)[..., None] * std
        return self._answer(torch.stack([mean - half, mean + half], -1))

    @final
    def _drawn_parts(self) -> Iterator[tuple[slice, Self, Generator]]:
        """Stretches of rows, flattened, few enough for all draws of them to be held at once."""
        flat, rng = self._flat(), generator_from(0)
        step = max(1, _BLOCK // (_DRAWS * self.n_outputs**2))
        for start in range(0, len(flat), step):
            rows = slice(start, start + step)
            yield rows, flat._map(rows_of(rows)), rng

    def _reach(self, value: Tensor) -> Tensor:
        """The largest error of a row's outputs, in standard deviations."""
        return ((value - self._mean()) / self._std()).abs().amax(-1)

    def _std(self) -> Tensor:
        return self._covariance().diagonal(dim1=-2, dim2=-1).sqrt()

    def _distances(self, value: Tensor) -> Tensor:
        """Squared Mahalanobis distances from the mean."""
        factor = torch.linalg.cholesky(self._covariance())
        return standard_errors(value - self._mean(), factor).square().sum(-1)

    @final
    def _receive_vectors(self, name: str, value: Values) -> Tensor:
        tensor, wanted = self._convert(name, value), (*self.shape, self.n_outputs)
        if tuple(tensor.shape[max(0, tensor.ndim - len(wanted)) :]) != wanted:
            raise ValueError(
                f"{name} must end in the shape {wanted} of the rows and outputs, got shape "
                f"{tuple(tensor.shape)}. Pass one value per output, in the order of the fit."
            )
        check_not_nan(name, tensor)
        return tensor


@final
class MultivariateNormal(JointDistribution):
    """Normal outputs with any correlation between them, Y = μ + L z.

    Args:
        mean: μ.
        cholesky: L, lower triangular with a positive diagonal; the covariance is L Lᵀ.

    **Shape**: mean ``(*shape, D)``; cholesky ``(*shape, D, D)``, or ``(D, D)`` for all rows.

    >>> pair = MultivariateNormal([[0.0, 1.0]], [[1.0, 0.0], [0.8, 0.6]])
    >>> pair.shape, float(pair.correlation[0, 1, 0].round(3))
    ((1,), 0.8)
    >>> pair.marginals.interval(0.95).round(2)
    array([[[-1.96,  1.96],
            [-0.96,  2.96]]])
    >>> pair.projected([1.0, -1.0]).std.round(3)  # of the difference
    array([0.632])
    """

    def __init__(self, mean: Values, cholesky: Values) -> None:
        (self._mu, lower), self._numpy = of_one_kind(mean=mean, cholesky=cholesky)
        _check_factor(self._mu, lower)
        self._lower = lower.expand(*self._mu.shape, self._mu.shape[-1])

    @classmethod
    def from_covariance(cls, mean: Values, covariance: Values) -> "MultivariateNormal":
        """From the covariance ``(*shape, D, D)``, which must be positive definite."""
        (mu, matrix), from_numpy = of_one_kind(mean=mean, covariance=covariance)
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if bool(failed.any()):
            raise ValueError(
                "covariance must be positive definite, got one that is not. "
                "Add a small number to its diagonal."
            )
        return cls(mu, factor)._replace(_numpy=from_numpy)

    @classmethod
    def independent(cls, marginals: Normal) -> "MultivariateNormal":
        """Uncorrelated outputs, from normal ones of shape ``(*shape, D)``."""
        mean, std = torch.as_tensor(marginals.mean), torch.as_tensor(marginals.std)
        return cls(mean, torch.diag_embed(std))._replace(_numpy=marginals._numpy)

    @property
    def cholesky(self) -> Values:
        """L, ``(*shape, D, D)``."""
        return self._answer(self._lower)

    @property
    def n_outputs(self) -> int:
        return self._mu.shape[-1]

    @property
    def marginals(self) -> Normal:
        return Normal(self._answer(self._mu), self._answer(self._std()))

    def projected(self, weights: Values) -> Normal:
        """The distribution of Σ_d w_d Y_d: a sum, a difference, a mean of the outputs.

        **Shape**: weights ``(D,)``.
        """
        w = self._convert("weights", weights)
        if tuple(w.shape) != (self.n_outputs,):
            raise ValueError(
                f"weights must be one per output ({self.n_outputs}), got shape {tuple(w.shape)}."
            )
        std = (w @ self._lower).square().sum(-1).sqrt()
        check_positive("the standard deviation of the sum", std, remedy="Use weights beside 0.")
        return Normal(self._answer(self._mu @ w), self._answer(std))

    def plus(self, noise: "MultivariateNormal") -> "MultivariateNormal":
        """The distribution of Y + W for an independent W of mean 0 and this covariance."""
        covariance = self._covariance() + noise._covariance().to(self._mu)
        return self._replace(_lower=torch.linalg.cholesky(covariance))

    @property
    def _reference(self) -> Tensor:
        return self._mu[..., 0]

    @property
    def _width(self) -> int:
        return self.n_outputs**2

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(_mu=function(self._mu, lead), _lower=function(self._lower, lead))

    def _mean(self) -> Tensor:
        return self._mu

    def _covariance(self) -> Tensor:
        return self._lower @ self._lower.mT

    def _log_prob(self, value: Tensor) -> Tensor:
        return log_normal_density(self._mu - value, self._lower)

    def _draw(self, n: int, rng: Generator) -> Tensor:
        z = torch.from_numpy(rng.standard_normal((n, *self._mu.shape))).to(self._mu)
        # summed by hand: as products, so many and so small, they take ten times as long
        return self._mu + (self._lower * z[..., None, :]).sum(-1)

    def level(self, value: Values) -> Values:
        distances = self._distances(self._receive_vectors("value", value))
        return self._answer(
            torch.special.gammainc(distances.new_tensor(self.n_outputs / 2), distances / 2)
        )

    def __repr__(self) -> str:
        return f"MultivariateNormal(shape={self.shape}, outputs={self.n_outputs})"


def _check_factor(mean: Tensor, cholesky: Tensor) -> None:
    d = mean.shape[-1] if mean.ndim else 0
    if not d or tuple(cholesky.shape) not in ((d, d), (*mean.shape, d)):
        raise ValueError(
            "mean must have a last axis of D outputs, and cholesky one of D × D beside it, got "
            f"{tuple(mean.shape)} and {tuple(cholesky.shape)}. Build it with from_covariance."
        )
    check_positive("the diagonal of cholesky", cholesky.diagonal(dim1=-2, dim2=-1))
    if bool(torch.triu(cholesky, 1).any()):
        raise ValueError(
            "cholesky must be lower triangular, got numbers above its diagonal. "
            "Use from_covariance for a covariance."
        )
