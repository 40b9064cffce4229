"""Predictions, envelopes, columns and comparisons: what is drawn is what was given."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from accord import Mixture, Normal, metrics, plots
from accord.calibration import Conformal

N = 120
RNG = np.random.default_rng(4)
MU = RNG.normal(size=N)
S = np.exp(0.4 * RNG.normal(size=N))
Y = MU + S * RNG.normal(size=N)
X = np.linspace(0.0, 1.0, 120)


def labelled(ax, start):
    return next(line for line in ax.get_lines() if str(line.get_label()).startswith(start))


def test_sorted_predictions_are_sorted_and_complete() -> None:
    ax = plots.sorted_predictions(y_true=Y, mean=MU, std=S, coverage=0.8)
    order = np.argsort(MU, kind="stable")
    np.testing.assert_allclose(labelled(ax, "predicted mean").get_ydata(), MU[order])
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, Normal(MU, S).interval(0.8)[order])


def test_observations_outside_are_marked() -> None:
    ax = plots.sorted_predictions(y_true=Y, mean=MU, std=S, coverage=0.8)
    inside = metrics.coverage(y_true=Y, mean=MU, std=S, coverage=0.8, average=False)
    outside = labelled(ax, "observed, outside").get_ydata()
    np.testing.assert_allclose(np.sort(outside), np.sort(Y[inside == 0]))
    assert len(labelled(ax, "observed").get_ydata()) == inside.sum()


@pytest.mark.filterwarnings("ignore:100% of the conformal bounds are infinite")
def test_infinite_intervals_reach_the_edge() -> None:
    rows = Normal(MU, S)
    dist = Conformal().fit(rows[:5], Y[:5])(rows)
    ax = plots.sorted_predictions(y_true=Y, dist=dist, coverage=0.99)
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert np.isfinite(ends).all()
    assert ends[:, 0].max() < Y.min()
    assert ends[:, 1].min() > Y.max()


def test_many_rows_are_thinned_but_counted() -> None:
    ax = plots.sorted_predictions(y_true=Y, mean=MU, std=S, max_rows=30)
    assert len(labelled(ax, "predicted mean").get_ydata()) == 30
    found = metrics.coverage(y_true=Y, mean=MU, std=S)
    assert any(f"30 of 120 rows, {100 * found:.1f} % of all" in t.get_text() for t in ax.texts)


def test_uncertainty_split_adds_up() -> None:
    members = Normal(MU + RNG.normal(size=(4, N)), np.tile(S, (4, 1)))
    dist = Mixture(members)
    ax = plots.uncertainty_split(dist=dist, n_groups=6)
    noise, disagreement, distance = (
        np.array([bar.get_height() for bar in bars]) for bars in ax.containers
    )
    ignorance = disagreement + distance
    groups = np.array_split(np.argsort(dist.variance, kind="stable"), 6)
    np.testing.assert_allclose(
        noise + ignorance, [np.sqrt(dist.variance[rows].mean()) for rows in groups]
    )
    np.testing.assert_allclose(
        ignorance / (noise + ignorance),
        [(dist.epistemic[r] ** 2).mean() / dist.variance[r].mean() for r in groups],
    )
    assert np.all(np.diff(noise + ignorance) >= 0)


def test_uncertainty_split_from_arrays_is_the_same() -> None:
    dist = Mixture(Normal(MU + RNG.normal(size=(4, N)), np.tile(S, (4, 1))))
    drawn = [
        [bar.get_height() for box in ax.containers for bar in box]
        for ax in (
            plots.uncertainty_split(dist=dist),
            plots.uncertainty_split(
                noise=dist.aleatoric, disagreement=dist.epistemic, distance=np.zeros(N)
            ),
        )
    ]
    np.testing.assert_allclose(drawn[0], drawn[1])


def test_envelope_spans_three_deviations() -> None:
    x = np.array([2.0, 0.0, 1.0])  # any order
    ax = plots.envelope(x=x, mean=x**2, std=np.array([3.0, 1.0, 2.0]), truth=x**2 + 1)
    (band,) = ax.collections
    vertices = band.get_paths()[0].vertices
    for at, half in ((0.0, 3.0), (1.0, 6.0), (2.0, 9.0)):
        ends = vertices[vertices[:, 0] == at, 1]
        assert ends.min() == pytest.approx(at**2 - half)
        assert ends.max() == pytest.approx(at**2 + half)
    np.testing.assert_allclose(labelled(ax, "truth").get_xydata(), [[0, 1], [1, 2], [2, 5]])


def test_split_envelope_has_the_same_outer_edge() -> None:
    x = np.linspace(0, 1, 5)
    dist = Mixture(Normal(np.stack([x, 3 * x]), np.ones((2, 5))))
    plain, split = (plots.envelope(x=x, dist=dist, split=s) for s in (False, True))
    reach = [
        max(path.vertices[:, 1].max() for band in ax.collections for path in band.get_paths())
        for ax in (plain, split)
    ]
    assert reach[0] == pytest.approx(reach[1])
    inner = split.collections[0].get_paths()[0].vertices[:, 1].max()
    assert inner == pytest.approx((2 * x + 3 * dist.aleatoric).max())


def test_series_envelope_draws_each_methods_interval() -> None:
    dates = np.arange("2017-01-03", "2017-01-13", dtype="datetime64[D]")
    y = RNG.normal(size=len(dates))
    methods = {"narrow": Normal(y + 1, 0.1), "wide": Normal(y, 5.0)}
    ax = plots.series_envelope(x=dates, y_true=y, methods=methods, coverage=0.9)
    np.testing.assert_allclose(labelled(ax, "narrow").get_ydata(), y + 1)
    np.testing.assert_allclose(labelled(ax, "observed").get_ydata(), y)
    edges = [line.get_ydata() for line in ax.get_lines()]
    for end in methods["wide"].interval(0.9).T:
        assert any(np.allclose(edge, end) for edge in edges)
    assert labelled(ax, "narrow").get_label() == "narrow: 0 % in its 90 % interval"
    assert labelled(ax, "wide").get_label() == "wide: 100 % in its 90 % interval"


@dataclass
class Curve:
    values: list[float] = field(default_factory=lambda: [0.0, 0.01, 0.1])
    in_distribution: list[float] = field(default_factory=lambda: [2.0, 2.0, 2.5])
    out_of_distribution: list[float] = field(default_factory=lambda: [5.0, 4.0, 3.0])
    chosen: float = 0.01


def test_tolerance_curve_marks_the_choice() -> None:
    ax = plots.tolerance_curve(Curve())
    np.testing.assert_allclose(labelled(ax, "held-out outliers").get_ydata(), [5.0, 4.0, 3.0])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "0.01", "0.1"]
    assert any(text.get_text() == "chosen: ε = 0.01" for text in ax.texts)
    marked = {tuple(line.get_xydata()[0]) for line in ax.get_lines() if len(line.get_xdata()) == 1}
    assert marked == {(1.0, 2.0), (1.0, 4.0)}


def test_training_curves_show_members_and_their_mean() -> None:
    history = RNG.random((12, 3))
    ax = plots.training_curves(history, validation=history[:, 0])
    mean = labelled(ax, "training loss, mean of 3 members")
    np.testing.assert_allclose(mean.get_ydata(), history.mean(axis=1))
    np.testing.assert_array_equal(mean.get_xdata(), np.arange(1, 13))
    np.testing.assert_allclose(labelled(ax, "held-out loss").get_ydata(), history[:, 0])
    assert len(ax.get_lines()) == 5


def test_metric_by_method_fills_the_best() -> None:
    scores = {"a": 2.0, "b": 1.5, "c": 3.0}
    low = plots.metric_by_method(scores, errors={"a": 0.1})
    filled = [line for line in low.get_lines() if line.get_markerfacecolor() == line.get_color()]
    assert [tuple(line.get_xydata()[0]) for line in filled] == [(1.5, 1.0)]
    assert [text.get_text() for text in low.texts] == ["2.00 ± 0.10", "1.50", "3.00"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: plots.sorted_predictions(y_true=Y.reshape(-1, 2), mean=MU, std=S),
            ValueError,
            "Plot one output at a time",
        ),
        (
            lambda: plots.sorted_predictions(y_true=Y, mean=MU, std=S, coverage=95),
            ValueError,
            "coverage must lie strictly",
        ),
        (lambda: plots.uncertainty_split(), TypeError, "got none of them"),
        (lambda: plots.uncertainty_split(noise=S), TypeError, "got noise"),
        (
            lambda: plots.uncertainty_split(noise=-S, disagreement=S, distance=S),
            ValueError,
            "noise must be non-negative",
        ),
        (lambda: plots.envelope(x=[0, 1], mean=[0], std=[1]), ValueError, "the same shape"),
        (
            lambda: plots.envelope(x=[0, 1], mean=[0, 1], std=[1, 1], x_data=[0]),
            TypeError,
            "x_data= with y_data=",
        ),
        (lambda: plots.series_envelope(x=[0], y_true=[0.0], methods={}), ValueError, "methods"),
        (lambda: plots.tolerance_curve(Curve(values=[0.0])), ValueError, "the same shape"),
        (lambda: plots.training_curves([]), ValueError, "history must not be empty"),
        (lambda: plots.training_curves([np.nan]), ValueError, "history must be finite"),
        (lambda: plots.metric_by_method({}), ValueError, "estimates must not be empty"),
        (
            lambda: plots.metric_by_method({"a": 1.0}, errors={"a": -1.0}),
            ValueError,
            "errors must be non-negative",
        ),
    ],
)
def test_bad_input(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


def test_one_bar_does_not_hide_the_others() -> None:
    noise = np.append(np.linspace(1, 2, 99), 1e6)
    nothing = np.zeros(100)
    ax = plots.uncertainty_split(noise=noise, disagreement=nothing, distance=nothing)
    assert ax.get_ylim()[1] < 4
    assert any("the last bar reaches" in text.get_text() for text in ax.texts)


def test_residuals_show_the_mean_error_of_groups() -> None:
    error = np.where(X < 0.5, -1.0, 1.0)
    ax = plots.residuals(against=X, residual=error, xlabel="time", n_groups=4)
    line = ax.containers[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [-1, -1, 1, 1])
    assert ax.get_xlabel() == "time"


def test_residuals_leave_out_rows_without_a_place() -> None:
    against = X.copy()
    against[:20] = np.nan
    ax = plots.residuals(against=against, residual=X, xlabel="time")
    assert len(ax.collections[0].get_offsets()) == 100


def test_a_curve_has_its_bands() -> None:
    ax = plots.dependence_curve(at=X, mean=X, lower=X - 3, upper=X + 3, unknown=0 * X + 0.5)
    outer, inner = (band.get_paths()[0].vertices[:, 1] for band in ax.collections)
    assert (outer.min(), outer.max()) == (-3, 4)
    assert (inner.min(), inner.max()) == (-1, 2)


def test_categories_and_dates_are_named() -> None:
    three = np.arange(3.0)
    ax = plots.dependence_curve(
        at=three, mean=three, lower=three, upper=three, unknown=three, labels=["a", "b", "c"]
    )
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    days = 86_400 * 366 * np.arange(3.0)
    ax = plots.dependence_curve(
        at=days, mean=three, lower=three, upper=three, unknown=three, dates=True
    )
    ax.figure.draw_without_rendering()
    years = {label.get_text() for label in ax.get_xticklabels()}
    assert {"1970", "1971", "1972"} & years


def test_a_plane_of_methods() -> None:
    ax = plots.trade_off(
        {"a": (1.0, 0.9), "b": (100.0, 0.95)}, xlabel="s", ylabel="c", aim=0.95, log_x=True
    )
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["stated", "a", "b"]
    with pytest.raises(ValueError, match="points"):
        plots.trade_off({"a": (np.nan, 1.0)}, xlabel="s", ylabel="c")
