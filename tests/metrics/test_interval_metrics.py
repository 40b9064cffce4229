"""Coverage, width, interval score and sharpness."""

import warnings

import numpy as np
import pytest
import scoringrules as sr

from accord import Laplace, Normal, metrics

N = 200
RNG = np.random.default_rng(7)
MU = RNG.normal(size=N)
S = np.exp(0.5 * RNG.normal(size=N))
Y = MU + S * RNG.normal(size=N)


def test_interval_score_as_scoringrules() -> None:
    interval = Laplace(MU, S).interval(0.8)
    ours = metrics.interval_score(y_true=Y, interval=interval, coverage=0.8, average=False)
    np.testing.assert_allclose(ours, sr.interval_score(Y, *interval.T, 0.2), rtol=1e-10)
    assert metrics.interval_score(y_true=Y, dist=Laplace(MU, S), coverage=0.8) == pytest.approx(
        ours.mean()
    )


def test_interval_score_as_uncertainty_toolbox() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from uncertainty_toolbox.metrics_scoring_rule import interval_score
    levels = np.linspace(0.01, 0.99, 99)
    ours = np.mean([metrics.interval_score(y_true=Y, mean=MU, std=S, coverage=p) for p in levels])
    assert ours == pytest.approx(interval_score(MU, S, Y), abs=1e-10)


def test_sharpness_as_uncertainty_toolbox() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from uncertainty_toolbox.metrics_calibration import sharpness
    assert metrics.sharpness(std=S) == pytest.approx(sharpness(S), abs=1e-10)
    np.testing.assert_allclose(metrics.sharpness(dist=Normal(MU, S), average=False), S)


def test_coverage_and_width_of_known_intervals() -> None:
    y, interval = [0.0, 1.0, 2.0], [[0.0, 1.0], [2.0, 3.0], [-np.inf, np.inf]]
    inside = metrics.coverage(y_true=y, interval=interval, average=False)
    np.testing.assert_array_equal(inside, [1.0, 0.0, 1.0])
    assert metrics.coverage(y_true=y, interval=interval) == pytest.approx(2 / 3)
    np.testing.assert_array_equal(
        metrics.interval_width(y_true=y, interval=interval, average=False), [1.0, 1.0, np.inf]
    )


def test_coverage_of_a_true_model() -> None:
    y = RNG.normal(size=20_000)
    mean, std = np.zeros(20_000), np.ones(20_000)
    for level in (0.5, 0.9):
        found = metrics.coverage(y_true=y, mean=mean, std=std, coverage=level)
        assert found == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 20_000))


def test_the_true_interval_scores_best() -> None:
    y = RNG.normal(size=20_000)
    scores = {
        scale: metrics.interval_score(y_true=y, mean=0 * y, std=scale + 0 * y, coverage=0.9)
        for scale in (0.7, 1.0, 1.4)
    }
    assert min(scores, key=scores.__getitem__) == 1.0


def test_several_outputs() -> None:
    shape = (50, 4)
    y, mean, std = Y.reshape(shape), MU.reshape(shape), S.reshape(shape)
    inside = metrics.coverage(y_true=y, mean=mean, std=std, average=False)
    assert inside.shape == shape
    assert metrics.coverage(y_true=Y, mean=MU, std=S) == inside.mean()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"interval": [[1.0, 0.0]]}, ValueError, "lower must not exceed upper, got 1.0 and 0.0"),
        ({"interval": [[np.nan, 0.0]]}, ValueError, "lower must not be NaN"),
        ({"interval": [0.0, 1.0]}, ValueError, r"interval must have shape \(1, 2\)"),
        ({"interval": [[0.0, 1.0]], "mean": [0.0]}, TypeError, "got several"),
        ({"interval": [[0.0, 1.0]], "coverage": 95}, ValueError, "coverage must lie strictly"),
        ({"mean": [0.0], "std": [1.0], "coverage": 1.0}, ValueError, "coverage must lie strictly"),
    ],
)
@pytest.mark.parametrize(
    "metric", [metrics.coverage, metrics.interval_score, metrics.interval_width]
)
def test_bad_input(metric, arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        metric(y_true=[0.5], **arguments)


def test_sharpness_wants_one_form() -> None:
    with pytest.raises(TypeError, match="std= or dist=, got neither"):
        metrics.sharpness()
    with pytest.raises(ValueError, match="std must be positive"):
        metrics.sharpness(std=[1.0, 0.0])
