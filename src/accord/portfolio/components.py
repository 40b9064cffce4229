"""What the models of a portfolio predict for a row: a few bell curves, and how they are calibrated.

Every model answers with K components per member and row, in scaled target units: weights, means and
deviations. Calibration keeps the means and turns the deviations σ into

    √(s² (σ² + f²) + ε²/3),

with a factor s, a floor f, and the tolerance ε of training (docs/theory.md: agreement within ε is
the likelihood of the model smoothed by ε, whose variance is larger by ε²/3), and the normal curve
into a Student-t with ν degrees of freedom. s, f and ν are chosen out of fold, by likelihood. The
likelihood of a censored target is the probability of all values that it may have: without such
rows, targets that reach far would count for less than they should.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize
from scipy.special import gammaln, ndtr, stdtr

from accord._types import Floats, Indices

_LOG_FACTORS = (math.log(0.2), math.log(20.0))
DEGREES = (math.inf, 12.0, 6.0, 4.0, 3.0)
# Floors to try, in units of the median absolute error out of fold.
_FLOORS = (0.0, 0.3, 0.8)
# A row that no component explains must not decide a calibration alone.
_LOWEST_LOG_DENSITY = -25.0
# An error counts as so many times the median of those that are far off, at most.
_LARGEST_STRAY = 4.0
# What stands for the largest of logarithms that are all −∞.
LOWEST = -1e300


@dataclass(frozen=True)
class Components:
    """Bell curves per member and row, in scaled target units.

    **Shape**: each (S, N, K) for S members.
    """

    weight: Floats
    mean: Floats
    std: Floats

    @property
    def n_members(self) -> int:
        return len(self.mean)

    @staticmethod
    def single(mean: Floats, std: Floats) -> "Components":
        """One curve per row of one member; mean and std (N,)."""
        return Components(np.ones((1, len(mean), 1)), mean[None, :, None], std[None, :, None])

    @staticmethod
    def stacked(parts: "list[Components]") -> "Components":
        """The members of several, for the same rows."""
        return Components(*(np.concatenate(p) for p in zip(*map(_arrays, parts), strict=True)))

    @staticmethod
    def assembled(parts: "list[Components]", rows: list[Indices]) -> "Components":
        """Different rows of the same members, put where they belong."""
        n = sum(len(own) for own in rows)
        members, _, k = parts[0].mean.shape
        whole = [np.empty((members, n, k)) for _ in range(3)]
        for part, own in zip(parts, rows, strict=True):
            for into, values in zip(whole, _arrays(part), strict=True):
                into[:, own] = values
        return Components(*whole)

    def with_stray(self, stray: "Stray") -> "Components":
        """One more curve per member and row, around the mean of the others."""
        if not stray.share:
            return self
        center = (self.weight * self.mean).sum(axis=2, keepdims=True)
        more = Components(*(np.full_like(center, v) for v in (stray.share, 0.0, stray.std)))
        own = replace(self, weight=(1 - stray.share) * self.weight)
        pairs = zip(_arrays(own), _arrays(replace(more, mean=center)), strict=True)
        return Components(*(np.concatenate(pair, axis=2) for pair in pairs))

    def __getitem__(self, rows: Indices) -> "Components":
        return Components(*(values[:, rows] for values in _arrays(self)))

    @property
    def center(self) -> Floats:
        """The mean over members and components, (N,)."""
        return np.asarray((self.weight * self.mean).sum(axis=2).mean(axis=0))


def _arrays(part: Components) -> tuple[Floats, Floats, Floats]:
    return part.weight, part.mean, part.std


@dataclass(frozen=True)
class Stray:
    """The share of targets that have nothing to do with a model, and how far off they are.

    ``std`` is in scaled target units, before calibration.
    """

    share: float = 0.0
    std: float = 1.0

    @staticmethod
    def of(errors: Floats, n: int) -> "Stray":
        """Of the errors of those among n rows; one that is far larger than most counts less."""
        size = np.abs(errors)
        bounded = np.minimum(size, _LARGEST_STRAY * np.median(size))
        return Stray(len(errors) / n, float(np.sqrt(np.mean(np.square(bounded)))))


NO_STRAY = Stray()


@dataclass(frozen=True)
class Calibration:
    """s, f, ε²/3 and ν of the module's formula; all in scaled target units."""

    factor: float = 1.0
    floor: float = 0.0
    tolerance_variance: float = 0.0
    df: float = math.inf

    def scale(self, std: Floats, local: Floats | float = 0.0) -> Floats:
        """The calibrated scale of components; of a Student-t it is not the standard deviation.

        ``local`` is the local tolerance of each row as a standard deviation.

        **Shape**: std (S, N, K), local (N,).
        """
        variance = self.factor**2 * (np.square(std) + self.floor**2) + self.tolerance_variance
        return np.asarray(np.sqrt(variance + np.square(local)[..., None]))

    @property
    def variance_of_curve(self) -> float:
        """The variance of the curve with scale 1."""
        return 1.0 if math.isinf(self.df) else self.df / (self.df - 2)

    def log_density(
        self,
        part: Components,
        z: Floats,
        local: Floats | float = 0.0,
        *,
        upper: Floats | None = None,
    ) -> Floats:
        """log of the members' mean density at z, (N,).

        Where ``upper`` is above z, it is the probability between them.
        """
        scale = self.scale(part.std, local)
        standard = (z[None, :, None] - part.mean) / scale
        curve = log_curve(standard, self.df) - np.log(scale)
        if upper is not None:
            censored = upper > z
            end = (upper[None, :, None] - part.mean) / scale
            curve[:, censored] = _log_between(standard[:, censored], end[:, censored], self.df)
        with np.errstate(divide="ignore"):
            joint = np.log(part.weight) + curve
        # scipy's logsumexp takes several times as long, and a calibration asks a hundred times
        largest = np.maximum(joint.max(axis=(0, 2)), LOWEST)
        total = np.exp(joint - largest[:, None]).sum(axis=(0, 2))
        with np.errstate(divide="ignore"):
            return np.asarray(largest + np.log(total) - math.log(part.n_members))


def log_curve(r: Floats, df: float) -> Floats:
    """log density of the standard normal, or of Student-t with ``df`` degrees of freedom."""
    if math.isinf(df):
        return np.asarray(-0.5 * np.square(r) - 0.5 * math.log(2 * math.pi))
    constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * math.log(df * math.pi)
    return np.asarray(constant - (df + 1) / 2 * np.log1p(np.square(r) / df))


def _log_between(a: Floats, b: Floats, df: float) -> Floats:
    """log probability between a and b, of the curves of :func:`log_curve`."""
    # above the middle, the two tails have the digits that two cdfs near 1 lack
    low, high = np.where(a > 0, -b, a), np.where(a > 0, -a, b)
    probability = ndtr(high) - ndtr(low) if math.isinf(df) else stdtr(df, high) - stdtr(df, low)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))


def calibrated(
    part: Components,
    z: Floats,
    weight: Floats,
    *,
    upper: Floats | None = None,
    tolerance_variance: float,
    degrees: Sequence[float] = DEGREES,
) -> Calibration:
    """The calibration under which out-of-fold predictions are most likely.

    Targets with an ``upper`` end above z are censored: they lie between the two.

    **Shape**: z, weight and upper (N,).
    """
    known = slice(None) if upper is None else upper == z
    error = float(np.median(np.abs(z - part.center)[known]))
    best, best_score = Calibration(), -math.inf
    for df in degrees:
        for floor in _FLOORS:
            found = _with_best_factor(
                Calibration(1.0, floor * error, tolerance_variance, df), part, z, weight, upper
            )
            score = mean_score(found.log_density(part, z, upper=upper), weight)
            if score > best_score:
                best, best_score = found, score
    return best


def _with_best_factor(
    start: Calibration, part: Components, z: Floats, weight: Floats, upper: Floats | None
) -> Calibration:
    def loss(log_factor: float) -> float:
        trial = Calibration(math.exp(log_factor), start.floor, start.tolerance_variance, start.df)
        return -mean_score(trial.log_density(part, z, upper=upper), weight)

    found = optimize.minimize_scalar(
        loss, bounds=_LOG_FACTORS, method="bounded", options={"xatol": 0.02}
    )
    return replace(start, factor=math.exp(found.x))


def mean_score(log_density: Floats, weight: Floats) -> float:
    """Mean log density, each row's bounded from below."""
    return float(np.average(bounded_below(log_density), weights=weight))


def bounded_below(log_density: Floats) -> Floats:
    """Log densities, none so low that one row decides."""
    return np.maximum(log_density, _LOWEST_LOG_DENSITY)
