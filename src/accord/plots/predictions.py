"""A model's predictions beside what was observed: one figure per question, or four in one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import check_choice, check_count, check_non_negative, check_same_shape
from accord._types import Floats
from accord._wording import number, percent
from accord.distributions import PARTS, Distribution
from accord.metrics import (
    ReliabilityCurve,
    as_array,
    finite,
    predictive,
    reliability_curve,
    targets,
)
from accord.metrics import coverage as covered
from accord.plots.diagnostics import (
    coverage_by_distance,
    error_against_deviation,
    reliability_diagram,
)
from accord.plots.envelopes import drawable_interval, residuals
from accord.plots.style import (
    BLUE,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    axes_or_new,
    figure,
    ink,
    legend,
    legend_below,
    note,
    number_axis,
    percent_axis,
    plain,
    some_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SOURCES = (
    ("noise in the data", BLUE),
    ("disagreement between models", ORANGE),
    ("distance from the training rows", PURPLE),
)
Kind = Literal[
    "overview", "predictions", "calibration", "distance", "uncertainty", "errors", "residuals"
]


def sorted_predictions(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    interval: ArrayLike | None = None,
    coverage: float = 0.95,
    max_rows: int = 150,
    show_share: bool = True,
    ax: "Axes | None" = None,
) -> "Axes":
    """Each row's interval, mean and observation, in the order of the means.

    Intervals are the central ones of ``dist`` or of ``mean`` and ``std``, or, with ``mean``, any
    ``interval``. Observations outside are marked. Of more than ``max_rows`` rows an even selection
    in that order is drawn; the share inside that is written is that of all. The axis is for the
    bulk of the values, logarithmic where positive ones span magnitudes; it is written how many
    observations lie beyond.

    **Shape**: ``y_true`` (N,), ``interval`` (N, 2).
    """
    check_count("max_rows", max_rows)
    y = targets(y_true)
    if y.ndim != 1:
        raise ValueError(f"y_true must have shape (N,), got {y.shape}. Plot one output at a time.")
    center, ends = _answers(y, dist, mean, std, interval, coverage)
    drawn = drawable_interval(ends, center, y)
    shown = some_of(np.argsort(center, kind="stable"), max_rows)
    ax = axes_or_new(ax, height=4.6)
    _draw_rows(ax, y[shown], center[shown], drawn[shown], coverage)
    if show_share:
        found = percent(covered(y_true=y, interval=ends), 1)
        rows = f"{len(shown)} of {len(y)} rows" if len(shown) < len(y) else f"{len(y)} rows"
        note(ax, 0.99, 0.03, f"{rows}, {found} of all inside", ha="right", va="bottom")
    ax.set(xlabel="rows in order of predicted mean", ylabel="target", xlim=(-1, len(shown)))
    _limit(ax, np.concatenate([y[shown], drawn[shown].ravel()]), y[shown])
    number_axis(ax.yaxis)
    ax.grid(visible=False, axis="x")
    legend_below(ax, columns=2)
    return ax


def _answers(
    y: Floats,
    dist: Distribution | None,
    mean: ArrayLike | None,
    std: ArrayLike | None,
    interval: ArrayLike | None,
    coverage: float,
) -> tuple[Floats, Floats]:
    """Means and intervals, which may be infinite, of any form of prediction."""
    if interval is None:
        q = predictive(y, dist=dist, mean=mean, std=std)
        return as_array("mean", q.mean), as_array("interval", q.interval(coverage))
    if mean is None or dist is not None or std is not None:
        raise TypeError(
            "interval= must come with mean= alone, got another form of prediction. Pass both, or "
            "dist= alone."
        )
    center, ends = finite("mean", mean), as_array("interval", interval)
    check_same_shape(y_true=y, mean=center)
    check_same_shape(y_true=y, lower=ends[..., 0])
    return center, ends


def _limit(ax: "Axes", drawn: Floats, observed: Floats) -> None:
    """An axis that the bulk of the values fills; a few far ones lie beyond, and are counted.

    Positive values over many magnitudes get a logarithmic axis.
    """
    if _spans_magnitudes(observed):
        ax.set_yscale("log")
        ax.set_ylim(observed.min() / 3, 3 * float(np.quantile(drawn, 0.98)))
        _count_beyond(ax, observed)
        return
    low, high = np.quantile(drawn, [0.02, 0.98])
    reach = 0.25 * (high - low)
    if np.ptp(drawn) > 3 * (high - low) > 0:
        ax.set_ylim(low - reach, high + reach)
        _count_beyond(ax, observed)


def _count_beyond(ax: "Axes", observed: Floats) -> None:
    low, high = ax.get_ylim()
    beyond = int(((observed < low) | (observed > high)).sum())
    if beyond:
        words = "value lies" if beyond == 1 else "values lie"
        note(ax, 0.01, 0.99, f"{beyond} observed {words} beyond this axis")


def _spans_magnitudes(values: Floats) -> bool:
    """Whether positive values are so skewed that a linear axis would hide most of them."""
    low, middle, high = np.quantile(values, [0.02, 0.5, 0.98])
    return bool(values.min() > 0 and high > 10 * low and high - middle > 4 * (middle - low))


def _draw_rows(ax: "Axes", y: Floats, center: Floats, interval: Floats, coverage: float) -> None:
    place = np.arange(len(y))
    lower, upper = interval.T
    inside = (lower <= y) & (y <= upper)
    label = f"{percent(coverage)} interval"
    ax.vlines(place, lower, upper, color=SKY, alpha=0.55, lw=2.4, label=label)
    ax.plot(place, center, color=BLUE, lw=0, marker="_", ms=4.5, mew=1.5, label="predicted mean")
    points: dict[str, Any] = {"lw": 0, "mec": "none"}
    ax.plot(place[inside], y[inside], color=ink(ax), marker="o", ms=3.2, label="observed", **points)
    if not inside.all():
        missed = place[~inside], y[~inside]
        ax.plot(*missed, color=VERMILLION, marker="D", ms=5, label="observed, outside", **points)


def uncertainty_split(
    *,
    dist: Distribution | None = None,
    noise: ArrayLike | None = None,
    disagreement: ArrayLike | None = None,
    distance: ArrayLike | None = None,
    n_groups: int = 20,
    ax: "Axes | None" = None,
) -> "Axes":
    """Where the uncertainty comes from, for rows from surest to least sure.

    Rows are put in order of their total deviation σ = √(noise² + disagreement² + distance²) and
    into groups of equal count. A bar's height is the group's root mean square σ; it is divided in
    proportion to the variances, which add up where deviations do not.

    **Shape**: ``noise``, ``disagreement`` and ``distance`` (N,) or (N, K), standard deviations;
    outputs are pooled.
    """
    check_count("n_groups", n_groups)
    variances = [part.ravel() ** 2 for part in _parts(dist, noise, disagreement, distance)]
    whole = np.sum(variances, axis=0)
    groups = np.array_split(np.argsort(whole, kind="stable"), min(n_groups, len(whole)))
    total = np.array([whole[rows].mean() for rows in groups])
    height = np.sqrt(total)
    ax = axes_or_new(ax)
    place, width, base = np.arange(len(groups)) / len(groups), 0.92 / len(groups), 0 * height
    for (name, color), part in zip(_SOURCES, variances, strict=True):
        own = np.array([part[rows].mean() for rows in groups]) / np.where(total > 0, total, 1)
        overall = part.sum() / whole.sum() if whole.any() else 0.0
        label = f"{name}, {percent(overall, 0)} of the variance"
        ax.bar(place, own * height, width, base, align="edge", color=color, label=label)
        base = base + own * height
    ax.set(xlim=(0, 1), ylim=(0, 1.3 * _tallest(height) if whole.any() else 1.0))
    if _tallest(height) < height.max():
        words = f"the last bar reaches {number(height.max())}"
        note(ax, 0.02, 0.78, words)
    ax.set(xlabel="rows, from surest to least sure", ylabel="standard deviation σ")
    percent_axis(ax.xaxis)
    number_axis(ax.yaxis)
    ax.grid(visible=False, axis="x")
    legend(ax, loc="upper left")
    return ax


def _tallest(height: Floats) -> float:
    """The tallest bar, unless it would leave all others too low to be seen."""
    others = float(height[:-1].max()) if len(height) > 1 else 0.0
    return others if float(height.max()) > 5 * others > 0 else float(height.max())


def _parts(dist: Distribution | None, *given: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
    known = [name for name, value in zip(PARTS, given, strict=True) if value is not None]
    if (dist is not None) == bool(known) or (known and len(known) < 3):
        received = ["dist"] * (dist is not None) + known
        raise TypeError(
            "uncertainties must be dist= alone, or noise=, disagreement= and distance= together, "
            f"got {' and '.join(received) or 'none of them'}. Pass one of the two forms."
        )
    values = given if dist is None else [getattr(dist, name) for name in PARTS]
    found = {name: finite(name, value) for name, value in zip(PARTS, values, strict=True)}
    check_same_shape(**found)
    for name, part in found.items():
        check_non_negative(name, part)
    return found["noise"], found["disagreement"], found["distance"]


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
        kinds: tuple[str, ...] = get_args(Kind)
        return tuple(kind for kind in kinds if kind != "distance" or self.how_far is not None)


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
    if ax is None:
        width, height = (5.0, 5.5) if kind == "calibration" else (7.2, 4.4)
        _, (ax,) = figure(width=width, height=height)
    _draw(found, kind, ax)
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
        _draw(found, kind, ax)
    return made


def _draw(found: Evidence, kind: str, ax: "Axes") -> None:
    match kind:
        case "predictions":
            sorted_predictions(
                y_true=found.y,
                mean=found.mean,
                interval=found.interval,
                coverage=found.coverage,
                max_rows=100,
                ax=ax,
            )
            ax.set_ylabel(plain(found.target))
        case "calibration":
            reliability_diagram(found.reliability, ax=ax)
        case "distance":
            assert found.how_far is not None, "evidence_figure has checked it"
            lower, upper = found.interval.T
            inside = (lower <= found.y) & (found.y <= upper)
            coverage_by_distance(
                distance=found.how_far, inside=inside, coverage=found.coverage, ax=ax
            )
        case "uncertainty":
            uncertainty_split(
                noise=found.noise, disagreement=found.disagreement, distance=found.distance, ax=ax
            )
        case "errors":
            error_against_deviation(y_true=found.y, mean=found.mean, std=found.std, ax=ax)
        case "residuals":
            name = f"predicted {plain(found.target)}"
            residuals(against=found.mean, residual=found.y - found.mean, xlabel=name, ax=ax)
