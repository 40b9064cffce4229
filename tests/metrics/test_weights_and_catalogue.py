"""A weight of 2 is the same as the row twice; the catalogue computes what the functions do."""

import dataclasses

import numpy as np
import pytest

from accord import metrics
from accord.distributions import Mixture, Normal
from accord.metrics import scorers

RNG = np.random.default_rng(0)
N = 60
Y = RNG.normal(size=N)
DIST = Mixture(Normal(RNG.normal(size=(2, N)) * 0.3, np.exp(0.3 * RNG.normal(size=(2, N)))))
COUNT = RNG.integers(0, 4, N)
TWICE = np.repeat(np.arange(N), COUNT)

SCORES = ["rmse", "mae", "r2", "squared_error", "nll", "gaussian_nll", "crps", "coverage"]
SCORES += ["interval_width", "interval_score", "ece", "mce"]


@pytest.mark.parametrize("name", SCORES)
def test_weights_repeat_rows(name: str) -> None:
    metric = getattr(metrics, name)
    weighted = metric(y_true=Y, dist=DIST, sample_weight=COUNT)
    assert weighted == pytest.approx(metric(y_true=Y[TWICE], dist=DIST[TWICE]), rel=1e-12)
    assert weighted != pytest.approx(metric(y_true=Y, dist=DIST), rel=1e-6)


@pytest.mark.parametrize("name", [*SCORES, "ence"])
def test_equal_weights_change_nothing(name: str) -> None:
    metric = getattr(metrics, name)
    equal = metric(y_true=Y, dist=DIST, sample_weight=np.full(N, 3.0))
    assert equal == pytest.approx(metric(y_true=Y, dist=DIST), rel=1e-12)


def test_weighted_sharpness_pinball_and_agreement() -> None:
    weighted = metrics.sharpness(dist=DIST, sample_weight=COUNT)
    assert weighted == pytest.approx(metrics.sharpness(dist=DIST[TWICE]))
    given = {"alpha": [0.1, 0.9]}
    weighted = metrics.pinball(y_true=Y, dist=DIST, sample_weight=COUNT, **given)
    assert weighted == pytest.approx(metrics.pinball(y_true=Y[TWICE], dist=DIST[TWICE], **given))
    weighted = metrics.agreement(y_true=Y, dist=DIST, rule=0.5, sample_weight=COUNT)
    repeated = metrics.agreement(y_true=Y[TWICE], dist=DIST[TWICE], rule=0.5)
    assert weighted == pytest.approx(repeated)


def test_weighted_bins_of_deviation() -> None:
    """Bins of equal weight hold what bins of equally many copies hold."""
    count = COUNT.copy()
    count[0] += -COUNT.sum() % 10
    rows = np.repeat(np.arange(N), count)
    weighted = metrics.deviation_bins(y_true=Y, dist=DIST, sample_weight=count)
    repeated = metrics.deviation_bins(y_true=Y[rows], dist=DIST[rows])
    np.testing.assert_allclose(weighted.predicted, repeated.predicted, rtol=1e-12)
    np.testing.assert_allclose(weighted.observed, repeated.observed, rtol=1e-12)
    ence = metrics.ence(y_true=Y, dist=DIST, sample_weight=count)
    assert ence == pytest.approx(metrics.ence(y_true=Y[rows], dist=DIST[rows]), rel=1e-12)
    assert ence != pytest.approx(metrics.ence(y_true=Y, dist=DIST), rel=1e-6)


@pytest.mark.parametrize("outputs", [1, 2])
def test_weighted_median_width(outputs: int) -> None:
    std = np.exp(RNG.normal(size=(N, outputs)))
    count = RNG.integers(0, 4, N)
    rows, y = np.repeat(np.arange(N), count), np.zeros((N, outputs))
    name = ["median_width"]
    weighted = metrics.summary(y_true=y, dist=Normal(y, std), sample_weight=count, names=name)
    repeated = metrics.summary(y_true=y[rows], dist=Normal(y[rows], std[rows]), names=name)
    assert weighted == pytest.approx(repeated)


def test_scorers_take_weights() -> None:
    model = LinearModel()
    for scorer in (scorers.crps_scorer, scorers.coverage_scorer(0.8)):
        weighted = scorer(model, Y, Y, sample_weight=COUNT)
        assert weighted == pytest.approx(scorer(model, Y[TWICE], Y[TWICE]), rel=1e-12)
        assert weighted != pytest.approx(scorer(model, Y, Y), rel=1e-6)


class LinearModel:
    """Predicts half of what it is given."""

    def predict_dist(self, X: np.ndarray) -> Normal:
        return Normal(X / 2, 0.3)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"one number per row, \(60,\), got \(3,\)"),
        (np.zeros(N), "must not all be zero"),
        (-np.ones(N), "non-negative"),
    ],
)
def test_bad_weights(weight: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.mae(y_true=Y, dist=DIST, sample_weight=weight)


def test_catalogue_computes_what_the_functions_do() -> None:
    found = metrics.summary(y_true=Y, dist=DIST, coverage=0.9, sample_weight=COUNT)
    assert set(found) == set(metrics.METRICS)
    for name in ("rmse", "nll", "crps", "ece", "ence"):
        expected = getattr(metrics, name)(y_true=Y, dist=DIST, sample_weight=COUNT)
        assert found[name] == pytest.approx(expected)
    expected = metrics.coverage(y_true=Y, dist=DIST, coverage=0.9, sample_weight=COUNT)
    assert found["coverage"] == pytest.approx(expected)
    few = metrics.summary(y_true=Y[:3], dist=DIST[:3], names=["rows", "ece", "mae"])
    assert list(few) == ["rows", "ece", "mae"]
    assert few["rows"] == 3
    assert np.isnan(few["ece"])


def test_catalogue_is_complete_and_readable() -> None:
    for name, metric in metrics.METRICS.items():
        assert metric.name == name
        assert metric.title
        assert len(metric.meaning) < 80


def test_a_new_metric_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    worst = dataclasses.replace(
        metrics.METRICS["mae"],
        name="worst error",
        title="worst error",
        meaning="largest absolute error of the mean",
        compute=lambda case: float(np.abs(case.dist.mean - case.y).max()),
        better="neither",
    )
    monkeypatch.setitem(metrics.METRICS, worst.name, worst)
    found = metrics.summary(y_true=Y, dist=DIST)
    assert found[worst.name] == pytest.approx(np.abs(DIST.mean - Y).max())


def test_bias_is_signed_and_weighted() -> None:
    far = Normal([2.0, 5.0], [1.0, 1.0])
    assert metrics.summary(y_true=[1.0, 2.0], dist=far, names=["bias"]) == {"bias": 2.0}
    weighted = metrics.summary(y_true=[1.0, 2.0], dist=far, names=["bias"], sample_weight=[3, 1])
    assert weighted == {"bias": 1.5}
