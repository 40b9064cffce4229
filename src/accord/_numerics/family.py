"""What a standard family (location 0, scale 1, symmetric about 0) has to know, and their register.

A family is one module: a kernel, a subclass of :class:`StandardFamily`, and a call of
:func:`register_family` that gives it the name under which losses and estimators take it.

What smoothing by a window does to a cdf follows here for all families. For Y = Z + hU with U
uniform on (−1, 1),

    P(Y ≤ z) = A(z; h) = (1/2h) ∫_{z−h}^{z+h} F(u) du,        1 − A(z; h) = A(−z; h),

so that only z ≤ 0, the lower tail, needs a formula: each family has its own, `log_mean_lower`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from accord._numerics.interval import log_between, log_within
from accord._numerics.kernel import Kernel, log1mexp

STEEP = math.log(1.5)  # growth over a window above which differences keep their digits
_LOG_2 = math.log(2)
_TINY = 1e-290  # below it a float loses digits, and the logarithm is computed on its own
_LEGENDRE = np.polynomial.legendre.leggauss(12)
_PANELS = 64  # of a window over which a family without a closed form is averaged


class StandardFamily(ABC):
    """A distribution with location 0 and scale 1, given by functions that hold in the tails.

    ``variance`` is that of scale 1 (infinite if there is none), ``kernel`` knows the probability of
    an interval, ``support`` is half the width of the interval outside which the density is 0, and
    ``kinks`` are the points where the density is not smooth. ``takes_normal_noise`` says that with
    independent normal noise it is of the same family, the variances added.
    """

    name: str
    variance: float
    kernel: Kernel
    support: float = math.inf
    kinks: tuple[float, ...] = ()
    has_mean: bool = True
    takes_normal_noise: bool = False

    @abstractmethod
    def log_pdf(self, z: Tensor) -> Tensor:
        """log f(z), differentiable."""

    def pdf(self, z: Tensor) -> Tensor:
        """f(z), without a gradient."""
        return torch.exp(self.log_pdf(z))

    @abstractmethod
    def cdf(self, z: Tensor) -> Tensor:
        """F(z), with its relative precision kept in the lower tail."""

    @abstractmethod
    def quantile(self, p: Tensor) -> Tensor:
        """The z with F(z) = p; p = 0 and 1 give the ends of the support."""

    @abstractmethod
    def draws(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """Independent draws, of the shape, dtype and device of ``like``."""

    def log_cdf(self, z: Tensor) -> Tensor:
        """log F(z), differentiable."""
        return log_between(self, torch.full_like(z, -torch.inf), z)

    def log_sf(self, z: Tensor) -> Tensor:
        """log(1 − F(z)), differentiable."""
        return log_between(self, z, torch.full_like(z, torch.inf))

    # What follows has a form for every family; one with a better form of its own replaces it.

    def log_lower(self, z: Tensor) -> Tensor:
        """log F(z) without a gradient, also where F underflows."""
        tail = self.cdf(-z.abs())
        value = torch.where(z > 0, torch.log1p(-tail), torch.log(tail))
        return replaced(value, (tail < _TINY) & (z < 0), self.log_cdf, z)

    def log_mean_lower(self, z: Tensor, h: Tensor) -> Tensor:
        """log of the mean of F over z ± h, for z ≤ 0 and h > 0, without a gradient.

        By Gauss–Legendre nodes in 64 panels: exact to rounding up to h = 100, and to 1e-6 beyond.
        """
        steps = torch.linspace(-1, 1, _PANELS + 1).to(z)[1:] - 1 / _PANELS
        steps = steps.reshape(-1, *(1 for _ in z.shape))
        parts = log_mean_by_nodes(self, z + steps * h, (h / _PANELS).expand_as(steps * h))
        return torch.logsumexp(parts, dim=0) - math.log(_PANELS)

    def mean_cdf_and_pdf(self, z: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """The means of F and of f over z ± h, F and f themselves at h = 0, without a gradient.

        Of A(z; h) the relative precision is kept in the lower tail.
        """
        smooth = torch.exp(log_within(self, z, torch.where(h > 0, h, 1.0), density=True))
        density = torch.where(h > 0, smooth, self.pdf(z))
        return torch.exp(log_mean_cdf(self, z, h)), density

    def crps(self, z: Tensor) -> Tensor | None:
        """∫(F(x) − 1{x ≥ z})² dx in closed form; None where it has to be integrated."""
        return None

    def __repr__(self) -> str:
        return self.name


def log_mean_by_nodes(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    """log of the mean of F over z ± h, where F is smooth over the window."""
    column = (-1, *(1 for _ in z.shape))
    nodes, weights = (torch.from_numpy(x).to(z).reshape(column) for x in _LEGENDRE)
    return torch.logsumexp(family.log_lower(z + nodes * h) + torch.log(weights / 2), dim=0)


def replaced(
    values: Tensor, where: Tensor, function: Callable[..., Tensor], *arguments: Tensor
) -> Tensor:
    """``values`` with ``function`` of the arguments in the places marked, computed only there."""
    if not bool(where.any()):
        return values
    part = function(*(argument[where] for argument in arguments))
    return values.masked_scatter(where, part)


# --- the register ------------------------------------------------------------------------------

Maker = Callable[[float | None], StandardFamily]
"""From degrees of freedom (None for a family without) to the family."""

_MAKERS: dict[str, tuple[Maker, bool]] = {}


def register_family(name: str, make: Maker, *, takes_df: bool = False) -> None:
    """Make a family known by its name to losses and estimators."""
    _MAKERS[name] = make, takes_df


def family_names() -> tuple[str, ...]:
    """The names of all families that are known."""
    return tuple(_MAKERS)


def family_named(name: str, df: float | None = None) -> StandardFamily:
    """The standard family of that name; ``df`` belongs to families with degrees of freedom.

    >>> family_named("student-t", df=4).variance
    2.0
    """
    if name not in _MAKERS:
        raise ValueError(f"family must be one of {family_names()}, got {name!r}.")
    make, takes_df = _MAKERS[name]
    if df is not None and not takes_df:
        takers = " or ".join(repr(known) for known, (_, takes) in _MAKERS.items() if takes)
        raise ValueError(f"df belongs to family {takers}, got df={df} with {name!r}. Leave it out.")
    return make(df)


def family_with_variance(name: str, df: float | None = None) -> StandardFamily:
    """The family of that name, if it has the variance that a network predicts."""
    family = family_named(name, df)
    if not math.isfinite(family.variance):
        raise ValueError(f"df must be above 2 for the variance to exist, got {df}. Use df=3.")
    return family


# --- averages over a window --------------------------------------------------------------------


def log_cdf(family: StandardFamily, z: Tensor) -> Tensor:
    """log F(z), also where F underflows."""
    with torch.no_grad():
        value = family.log_lower(z)
    if not z.requires_grad:
        return value
    return _linearised(value, z, torch.exp(family.log_pdf(z.detach()) - value))


def log_mean_cdf(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    """log A(z; h), the log-cdf of the family convolved with Uniform(−h, h); log F(z) at h = 0."""
    z, h = torch.broadcast_tensors(z, h)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        lower, width = -z.abs(), torch.where(h > 0, h, 1.0)
        log_tail = family.log_mean_lower(lower, width).clamp(max=-_LOG_2)
        value = torch.where(z > 0, torch.log1p(-torch.exp(log_tail)), log_tail)
        value = replaced(value, h == 0, family.log_lower, z)
        value = torch.where(z.isinf(), torch.where(z > 0, 0.0, -torch.inf), value)
    if not (z.requires_grad or h.requires_grad):
        return value
    dz, dh = _slopes(family, z.detach(), h.detach(), value)
    return _linearised(_linearised(value, z, dz), h, dh)


def log_mean_between(
    family: StandardFamily, a: Tensor, b: Tensor, z: Tensor, half: Tensor, window: Tensor
) -> Tensor:
    """log of the mean of F(b + u) − F(a + u) over |u| ≤ window, for a, b = z ∓ half.

    The two widths may change places, the mean divided by ``half`` being symmetric in them: the
    closed form goes over the wider, the mean over the narrower.
    """
    given = (a, b, z, half, window)
    a, b, z, half, window = torch.broadcast_tensors(*given)  # type: ignore[no-untyped-call]
    flip = z > 0
    a, b, z = torch.where(flip, -b, a), torch.where(flip, -a, b), -z.abs()
    wide, narrow = torch.maximum(half, window), torch.minimum(half, window)
    inner = half < window
    low, high = torch.where(inner, z - window, a), torch.where(inner, z + window, b)
    upper = log_mean_cdf(family, high, narrow)
    drop = upper - log_mean_cdf(family, low, narrow)
    steep = drop > STEEP
    difference = upper + log1mexp(torch.where(steep, drop, 1.0))
    mean = replaced(difference, ~steep, lambda *x: _nodes_within(family, *x), z, wide, narrow)
    return mean + torch.where(half < window, torch.log(half / wide), 0.0)


def _nodes_within(family: StandardFamily, z: Tensor, wide: Tensor, narrow: Tensor) -> Tensor:
    """Gauss–Legendre over |u − z| ≤ narrow, in panels between the kinks of F(u ± wide)."""
    offsets = [
        (kink + side * wide - z).clamp(-narrow, narrow) for kink in family.kinks for side in (-1, 1)
    ]
    ends = torch.stack([-narrow, *offsets, narrow]).sort(dim=0).values
    middle, radius = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    share = torch.where(narrow > 0, radius / narrow, 1 / len(middle))
    nodes, log_weights = _nodes(z)
    points = z + (middle + nodes * radius)
    return torch.logsumexp(log_within(family, points, wide) + log_weights + share.log(), dim=(0, 1))


def _nodes(like: Tensor) -> tuple[Tensor, Tensor]:
    """Gauss–Legendre nodes on (−1, 1) and the logarithms of their shares, before two more axes."""
    nodes, weights = (torch.from_numpy(x).to(like).reshape(-1, 1, 1) for x in _LEGENDRE)
    return nodes, torch.log(weights / 2)


def _slopes(
    family: StandardFamily, z: Tensor, h: Tensor, log_mean: Tensor
) -> tuple[Tensor, Tensor]:
    """∂ log A/∂z = q/A with the smoothed density q, and ∂ log A/∂h = [½(F(a) + F(b)) − A]/hA."""
    dz = torch.exp(log_within(family, z, h, density=True) - log_mean)
    low, high = z - h, z + h
    edges = 0.5 * (torch.exp(log_cdf(family, low)) + torch.exp(log_cdf(family, high)))
    wide = (edges - torch.exp(log_mean)) / torch.where(h > 0, h, 1.0)
    # the limit for small h, h f'(z)/3
    narrow = (torch.exp(family.log_pdf(high)) - torch.exp(family.log_pdf(low))) / 6
    dh = torch.where(h < 1e-3, narrow, wide) * torch.exp(-log_mean)
    return dz, dh


def _linearised(value: Tensor, argument: Tensor, slope: Tensor) -> Tensor:
    """``value`` with the given derivative by ``argument``."""
    known = slope.isfinite() & argument.isfinite()
    change = torch.where(known, argument - argument.detach(), 0.0)
    return value + torch.where(known, slope, 0.0) * change
