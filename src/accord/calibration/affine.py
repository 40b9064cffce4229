"""Distributions moved and stretched: Y' = a + bY."""

from torch import Tensor

from accord._checks import check_positive
from accord.calibration.conformal_predictive import ConformalPredictive
from accord.calibration.reshaped import Reshaped
from accord.distributions import Decomposed, Distribution, Empirical, Mixture, Smoothed
from accord.distributions.conversion import Values, to_tensor
from accord.distributions.families import LocationScale
from accord.distributions.varying_student_t import VaryingStudentT


def rescale(dist: Distribution, factor: Values, *, shift: Values = 0.0) -> Distribution:
    """The distribution stretched about its mean and moved by ``shift`` standard deviations.

    Y' = μ + shift · σ + factor · (Y − μ). Every distribution of the library stays what it is, with
    the closed forms that it has.

    Args:
        dist: Of Y, with mean μ and standard deviation σ.
        factor: Positive.
        shift: In standard deviations of Y.

    **Shape**: factor and shift scalar or of the distribution's shape.

    Example:
        >>> from accord.distributions import Normal
        >>> rescale(Normal([0.0, 10.0], 1.0), 2.0, shift=0.5)
        Normal(mean=[ 0.5, 10.5], std=[2., 2.])
    """
    like = dist._reference
    mean, std = dist._mean(), sum(dist._variances(), like.new_zeros(())).sqrt()
    stretch, move = (
        to_tensor(name, value, like.dtype, like.device).expand(dist.shape)
        for name, value in (("factor", factor), ("shift", shift))
    )
    check_positive("factor", stretch)
    return _moved(dist, mean + move * std - stretch * mean, stretch)


def _moved(dist: Distribution, a: Tensor, b: Tensor) -> Distribution:
    """Of a + bY: locations move and stretch, scales stretch, shapes stay."""
    match dist:
        case LocationScale() | VaryingStudentT():
            return dist._replace(_location=a + b * dist._location, _scale=b * dist._scale)
        case Smoothed():
            return dist._replace(_base=_moved(dist._base, a, b), _tolerance=b * dist._tolerance)
        case Mixture():
            return dist._replace(_components=_moved(dist._components, a, b))
        case Decomposed():
            return dist._replace(_base=_moved(dist._base, a, b), _epistemic=b * dist._epistemic)
        case Empirical():
            return dist._replace(_draws=a[..., None] + b[..., None] * dist._draws)
        case Reshaped():
            return dist._replace(_base=_moved(dist._base, a, b), _known=None)
        case ConformalPredictive():
            return dist._replace(_density=_moved(dist._density, a, b))
    raise TypeError(
        f"dist must be a distribution of accord, got {type(dist).__name__}. "
        "Give its mean and deviation as Normal(mean, std)."
    )
