"""A model's predictions beside what was observed: one figure per question, or four in one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from numpy.typing import ArrayLike

from accord._checks import check_choice
from accord._types import Floats
from accord.distributions import Distribution
from accord.metrics import ReliabilityCurve, as_array, reliability_curve, targets
from accord.plots.calibration import (
    coverage_by_distance,
    error_against_deviation,
    reliability_diagram,
)
from accord.plots.columns import residuals
from accord.plots.figures import figure
from accord.plots.predictions import sorted_predictions, uncertainty_split
from accord.plots.style import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Evidence", "evidence_figure", "plot_model"]

Kind = Literal[
    "overview", "predictions", "calibration", "distance", "uncertainty", "errors", "residuals"
]


@dataclass(frozen=True)
class Evidence:
    """Rows that a model was not trained on, what it predicted for them, and what was observed.

    ``noise``, ``disagreement`` and ``distance`` are the parts of ``std``; ``how_far`` says how far
    each row is from the training rows, where that is known.

    **Shape**: arrays (N,), ``interval`` (N, 2).
    """

    y: Floats
    mean: Floats
    std: Floats
    noise: Floats
    disagreement: Floats
    distance: Floats
    interval: Floats
    reliability: ReliabilityCurve
    coverage: float
    target: str = "target"
    how_far: Floats | None = None

    @classmethod
    def of(
        cls, dist: Distribution, y_true: ArrayLike, *, coverage: float, target: str = "target"
    ) -> "Evidence":
        """Of predictive distributions and observed values; several outputs are refused."""
        y = targets(y_true)
        if y.ndim != 1:
            raise ValueError(f"y must have shape (N,), got {y.shape}. Plot one output at a time.")
        return cls(
            y=y,
            mean=as_array("mean", dist.mean),
            std=as_array("std", dist.std),
            noise=as_array("noise", dist.noise),
            disagreement=as_array("disagreement", dist.disagreement),
            distance=as_array("distance", dist.distance),
            interval=as_array("interval", dist.interval(coverage)),
            reliability=reliability_curve(y_true=y, dist=dist),
            coverage=coverage,
            target=target,
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The figures that can be drawn of it."""
        known = (name for name in _FIGURES if name != "distance" or self.how_far is not None)
        return ("overview", *known)


class Predicts(Protocol):
    """A fitted model that predicts distributions."""

    def predict_dist(self, X: Any) -> Distribution: ...


def plot_model(
    model: Predicts,
    kind: Kind = "overview",
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    coverage: float = 0.95,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw a model's predictions for labelled rows beside their targets.

    Args:
        kind: "overview", four of the others in one figure; "predictions", rows with their
            intervals; "calibration", observed against stated coverage; "uncertainty", where it
            comes from; "errors", errors against the stated deviation; "residuals", errors against
            the prediction.
        X, y: Rows that the model was not trained on, and their targets.
        coverage: Share of the values that intervals should contain.
        ax: Axes to draw into, instead of a new figure.

    Returns:
        The matplotlib figure. A notebook shows it; ``savefig`` writes it.
    """
    if X is None or y is None:
        raise TypeError(
            "plot needs X and y, rows that the model was not trained on and their targets, got "
            "none: it remembers no rows. Call plot('calibration', X_test, y_test)."
        )
    target = str(getattr(y, "name", None) or "target")
    found = Evidence.of(model.predict_dist(X), y, coverage=coverage, target=target)
    return evidence_figure(found, kind, ax=ax)


def evidence_figure(
    found: Evidence, kind: str = "overview", *, ax: "Axes | None" = None
) -> "Figure":
    """A figure of a model's predictions: see :attr:`Evidence.kinds`.

    "overview" has four of the others side by side and a figure of its own.

    >>> import numpy as np
    >>> from accord.distributions import Normal
    >>> y = np.linspace(-2, 2, 40)
    >>> found = Evidence.of(Normal(np.zeros(40), 1.0), y, coverage=0.9)
    >>> evidence_figure(found, "calibration").axes[0].get_xlabel()
    'expected coverage'
    """
    check_choice("kind", kind, found.kinds)
    if kind == "overview":
        if ax is not None:
            raise TypeError(
                "ax must be left out for kind 'overview', which has four axes, got one. Name "
                f"another kind: {', '.join(found.kinds[1:])}."
            )
        return _overview(found)
    width, height = _SIZES.get(kind, (7.2, 4.4))
    if ax is None:
        _, (ax,) = figure(width=width, height=height)
    _FIGURES[kind](found, ax)
    return _whole_figure(ax)


def _whole_figure(ax: "Axes") -> "Figure":
    made: Any = ax.get_figure(root=True)
    return made  # type: ignore[no-any-return]


def _overview(found: Evidence) -> "Figure":
    fourth = "errors" if found.how_far is None else "distance"
    shown = {
        "predictions": "Does each interval hold?",
        "calibration": "Do they hold at every level?",
        fourth: "How large are the errors?" if fourth == "errors" else "Far from the data too?",
        "uncertainty": "Where does the uncertainty come from?",
    }
    made, axes = figure(2, 2, width=11.0, height=9.6, titles=tuple(shown.values()))
    for kind, ax in zip(shown, axes, strict=True):
        _FIGURES[kind](found, ax)
    return made


def _predictions(found: Evidence, ax: "Axes") -> None:
    sorted_predictions(
        y_true=found.y,
        mean=found.mean,
        interval=found.interval,
        coverage=found.coverage,
        max_rows=100,
        ax=ax,
    )
    ax.set_ylabel(plain(found.target))


def _calibration(found: Evidence, ax: "Axes") -> None:
    reliability_diagram(found.reliability, ax=ax)


def _distance(found: Evidence, ax: "Axes") -> None:
    assert found.how_far is not None, "evidence_figure has checked it"
    lower, upper = found.interval.T
    inside = (lower <= found.y) & (found.y <= upper)
    coverage_by_distance(distance=found.how_far, inside=inside, coverage=found.coverage, ax=ax)


def _uncertainty(found: Evidence, ax: "Axes") -> None:
    uncertainty_split(
        noise=found.noise, disagreement=found.disagreement, distance=found.distance, ax=ax
    )


def _errors(found: Evidence, ax: "Axes") -> None:
    error_against_deviation(y_true=found.y, mean=found.mean, std=found.std, ax=ax)


def _residuals(found: Evidence, ax: "Axes") -> None:
    name = f"predicted {plain(found.target)}"
    residuals(against=found.mean, residual=found.y - found.mean, xlabel=name, ax=ax)


_FIGURES: dict[str, Callable[[Evidence, "Axes"], None]] = {
    "predictions": _predictions,
    "calibration": _calibration,
    "distance": _distance,
    "uncertainty": _uncertainty,
    "errors": _errors,
    "residuals": _residuals,
}
_SIZES = {"calibration": (5.0, 5.5)}
