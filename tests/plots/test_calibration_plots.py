"""What the calibration plots draw is what the metrics say."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from accord import Normal, metrics, plots
from accord.plots.style import BLUE, VERMILLION

N = 200
RNG = np.random.default_rng(0)
MU = RNG.normal(size=N)
S = np.exp(0.4 * RNG.normal(size=N))
Y = MU + S * RNG.normal(size=N)


def labelled(ax, start):
    return next(line for line in ax.get_lines() if str(line.get_label()).startswith(start))


def test_reliability_lines_are_the_curves() -> None:
    curves = {
        "honest": metrics.reliability_curve(y_true=Y, mean=MU, std=S),
        "bold": metrics.reliability_curve(y_true=Y, mean=MU, std=S / 3),
    }
    ax = plots.reliability_diagram(curves)
    for name, curve in curves.items():
        line = labelled(ax, name)
        np.testing.assert_array_equal(line.get_xdata(), curve.expected)
        np.testing.assert_array_equal(line.get_ydata(), curve.observed)
        assert f"ECE {curve.ece:.3f}" in line.get_label()
    assert labelled(ax, "honest").get_marker() != labelled(ax, "bold").get_marker()


def drawn_band(ax, levels):
    """The band's lower and upper edge, read off the drawn polygon."""
    (band,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    vertices = band.get_paths()[0].vertices
    edges = [vertices[np.isclose(vertices[:, 0], level), 1] for level in levels]
    return np.array([(edge.min(), edge.max()) for edge in edges])


def test_reliability_band_holds_the_diagonal_and_is_the_metrics() -> None:
    curve = metrics.reliability_curve(y_true=Y, mean=MU, std=S)
    band = drawn_band(plots.reliability_diagram(curve), curve.expected)
    np.testing.assert_allclose(band, curve.band())
    assert np.all((band[:, 0] < curve.expected) & (curve.expected < band[:, 1]))


def test_a_perfect_model_stays_inside_the_drawn_band() -> None:
    rng = np.random.default_rng(1)
    curves = [
        metrics.reliability_curve(y_true=rng.normal(size=N), mean=np.zeros(N), std=np.ones(N))
        for _ in range(300)
    ]
    low, high = drawn_band(plots.reliability_diagram(curves[0]), curves[0].expected).T
    inside = [np.all((low <= curve.observed) & (curve.observed <= high)) for curve in curves]
    assert 0.91 <= np.mean(inside) <= 0.99
    bold = metrics.reliability_curve(y_true=Y, mean=MU, std=S / 2)
    assert np.all(bold.observed < low)


def test_samples_of_different_size_have_their_own_bands() -> None:
    curves = {
        str(n): metrics.reliability_curve(y_true=Y[:n], mean=MU[:n], std=S[:n]) for n in (200, 40)
    }
    ax = plots.reliability_diagram(curves)
    # the two are told apart by their greys, of which the legend has one key
    labels = [str(c.get_label()) for c in ax.collections]
    assert len(labels) == 2
    assert sum("(n = 40; darker: 200)" in label for label in labels) == 1


def test_pit_bars_are_relative_frequencies() -> None:
    ax = plots.pit_histogram(y_true=Y, mean=MU, std=S, n_bins=8)
    bars = [patch for patch in ax.patches if patch.get_width() < 0.5]
    heights = np.array([bar.get_height() for bar in bars])
    counts, _ = np.histogram(metrics.pit(y_true=Y, mean=MU, std=S), bins=8, range=(0, 1))
    np.testing.assert_allclose(heights, counts * 8 / N)
    assert heights.mean() == pytest.approx(1.0)


def test_pit_of_a_bold_model_leaves_the_band_at_the_ends() -> None:
    from matplotlib.colors import to_hex

    ax = plots.pit_histogram(y_true=Y, mean=MU, std=S / 3)
    colors = [to_hex(p.get_facecolor()) for p in ax.patches if p.get_width() < 0.5]
    assert colors[0] == colors[-1] == VERMILLION
    honest = plots.pit_histogram(y_true=Y, mean=MU, std=S)
    assert {to_hex(p.get_facecolor()) for p in honest.patches if p.get_width() < 0.5} == {BLUE}


def test_error_against_deviation_shows_the_ence_bins() -> None:
    dist = Normal(MU, S)
    ax = plots.error_against_deviation(y_true=Y, dist=dist, n_bins=5)
    bins = metrics.deviation_bins(y_true=Y, dist=dist, n_bins=5)
    line = labelled(ax, "root mean squared error")
    np.testing.assert_array_equal(line.get_xdata(), bins.predicted)
    np.testing.assert_array_equal(line.get_ydata(), bins.observed)
    points = ax.collections[-1].get_offsets()
    np.testing.assert_allclose(points, np.column_stack([S, Y - MU]))


def test_of_many_points_only_some_are_drawn() -> None:
    many = 4000
    ax = plots.error_against_deviation(y_true=np.zeros(many), mean=np.ones(many), std=np.ones(many))
    assert len(ax.collections[-1].get_offsets()) == 800
    assert len(plots.to_svg(ax.figure)) < 200_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.reliability_diagram({}), "curves must not be empty"),
        (lambda: plots.pit_histogram(y_true=[np.nan], mean=[0.0], std=[1.0]), "must be finite"),
        (
            lambda: plots.pit_histogram(y_true=Y, mean=MU, std=S, n_bins=1),
            "n_bins must be at least",
        ),
        (lambda: plots.pit_histogram(y_true=[0.0], mean=[0.0], std=[1.0]), "at least 10 values"),
        (lambda: plots.pit_histogram(y_true=Y, mean=MU, std=-S), "std must be positive"),
        (
            lambda: plots.error_against_deviation(y_true=Y[:5], mean=MU[:5], std=S[:5]),
            "at least 20",
        ),
    ],
)
def test_bad_input(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_coverage_by_distance_shows_where_intervals_fail() -> None:
    distance = np.arange(80.0)
    inside = distance < 60  # the furthest quarter is never inside
    ax = plots.coverage_by_distance(distance=distance, inside=inside, coverage=0.9, n_groups=4)
    (points,) = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points.get_ydata(), [1, 1, 1, 0])
    assert "stated, 90 %" in ax.get_legend_handles_labels()[1]
    with pytest.raises(ValueError, match="the same shape"):
        plots.coverage_by_distance(distance=distance, inside=inside[:3], coverage=0.9)


def test_one_far_row_does_not_hide_the_errors_of_the_others() -> None:
    rng = np.random.default_rng(0)
    std = np.append(rng.uniform(0.5, 1.5, 99), 1e6)
    error = np.append(std[:-1] * rng.normal(size=99), 3e6)
    ax = plots.error_against_deviation(y_true=error, mean=np.zeros(100), std=std)
    assert ax.get_xlim()[1] < 5
    assert ax.get_ylim()[1] < 20
    assert "1 row lies beyond these axes" in [text.get_text() for text in ax.texts]


def test_ticks_are_written_as_text_writes_numbers() -> None:
    rng = np.random.default_rng(0)
    y = 1e6 * rng.normal(size=50)
    ax = plots.error_against_deviation(y_true=y, mean=np.zeros(50), std=np.full(50, 1e6))
    ax.figure.canvas.draw()
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert "1,000,000" in labels
    assert ax.xaxis.get_offset_text().get_text() == ""
