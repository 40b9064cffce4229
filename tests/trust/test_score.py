"""The trust score: unusual rows score low, and usual ones raise no more alarms than stated."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from accord import load
from accord.distributions import Decomposed, Mixture, Normal, Smoothed
from accord.estimators import BVMRegressor, DeepEnsembleRegressor
from accord.persistence import save
from accord.trust import TrustScore
from accord.trust.score import _epistemic_share


class Knows:
    """A stand-in for an ensemble: its epistemic share grows with the first feature."""

    def predict_dist(self, X):
        share = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
        return Decomposed(Normal(np.zeros(len(share)), 2.0), 2 * np.sqrt(share))


def rows(n, seed, shift=0.0):
    return np.random.default_rng(seed).normal(shift, 1, size=(n, 3))


@pytest.mark.parametrize("kind", ["distance", "epistemic", "both"])
def test_shifted_rows_score_lower(kind):
    trust = TrustScore(Knows(), kind=kind).fit(rows(300, 0), X_held_out=rows(200, 1))
    usual, unusual = trust.score_samples(rows(300, 2)), trust.score_samples(rows(300, 3, 2.5))
    is_unusual = np.repeat([0, 1], 300)
    assert roc_auc_score(is_unusual, -np.concatenate([usual, unusual])) > 0.9
    assert trust.is_unusual(rows(300, 3, 2.5)).mean() > 0.4


def test_each_kind_sees_what_the_other_does_not():
    train, held_out = rows(300, 0), rows(200, 1)
    far_but_known = np.array([[-6.0, 0.0, 0.0]])
    near_but_unknown = np.array([[1.8, 0.0, 0.0]])
    distance, epistemic = (
        TrustScore(Knows(), kind=kind).fit(train, X_held_out=held_out)
        for kind in ("distance", "epistemic")
    )
    assert distance.p_value(far_but_known) < 0.01 < distance.p_value(near_but_unknown)
    assert epistemic.p_value(near_but_unknown) < 0.06 < 0.9 < epistemic.p_value(far_but_known)


@pytest.mark.parametrize(("n", "rate"), [(19, 0.05), (50, 0.1), (200, 0.02)])
def test_false_alarms_are_as_rare_as_stated(n, rate):
    """600 repetitions; exactly ⌊rate (n + 1)⌋/(n + 1), held to 4 standard errors."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(600):
        train, held_out, fresh = (rng.normal(size=(size, 1)) for size in (30, n, 20))
        trust = TrustScore(kind="distance", false_alarm_rate=rate)
        shares.append(trust.fit(train, X_held_out=held_out).is_unusual(fresh).mean())
    exact = np.floor(rate * (n + 1) + 1e-9) / (n + 1)
    assert exact <= rate
    assert np.mean(shares) == pytest.approx(exact, abs=4 * np.std(shares) / np.sqrt(600))


def test_p_values_are_those_of_the_ranks():
    """Usual rows: uniform. An alarm is a p-value of at most the rate, ties apart."""
    trust = TrustScore(kind="distance").fit(rows(400, 0), X_held_out=rows(400, 1))
    p = trust.p_value(rows(2000, 2))
    assert p.min() >= 1 / 401
    assert np.quantile(p, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.1)
    np.testing.assert_array_equal(trust.is_unusual(rows(2000, 2)), p <= 20 / 401)


def test_training_rows_can_serve_for_the_distance():
    """1,000 rows left out in turn: 5 % false alarms, ± 3 standard errors of two samples."""
    trust = TrustScore(kind="distance").fit(rows(1000, 0))
    assert trust.is_unusual(rows(2000, 1)).mean() == pytest.approx(0.05, abs=0.03)


def test_without_a_word_it_is_the_distance_which_needs_no_model():
    train, held_out, new = rows(100, 0), rows(100, 1), rows(20, 2)
    plain, distance = (
        trust.fit(train, X_held_out=held_out).score_samples(new)
        for trust in (TrustScore(), TrustScore(Knows(), kind="distance"))
    )
    np.testing.assert_array_equal(plain, distance)


def test_both_is_the_mean_of_the_two():
    train, held_out, new = rows(100, 0), rows(100, 1), rows(20, 2)
    scores = {
        kind: TrustScore(Knows(), kind=kind).fit(train, X_held_out=held_out).score_samples(new)
        for kind in ("distance", "epistemic", "both")
    }
    np.testing.assert_allclose(scores["both"], (scores["distance"] + scores["epistemic"]) / 2)


def test_a_tolerance_is_not_counted_as_noise():
    members = Normal([[0.0, 0.0], [2.0, 2.0]], 1.0)
    plain = _epistemic_share(Mixture(members))
    smoothed = _epistemic_share(Mixture(Smoothed(members, [0.0, 5.0])))
    np.testing.assert_allclose(plain, 0.5)
    np.testing.assert_allclose(smoothed, 0.5)


def test_an_ensemble_in_a_pipeline_is_saved_with_its_score(tmp_path):
    X = rows(120, 0)
    ensemble = DeepEnsembleRegressor(n_members=3, epochs=3, random_state=0)
    model = make_pipeline(StandardScaler(), ensemble).fit(X[:80], X[:80, 0])
    trust = TrustScore(model, kind="both").fit(X[:80], X_held_out=X[80:])
    save(trust, tmp_path / "trust.accord")
    again = load(tmp_path / "trust.accord", TrustScore)
    np.testing.assert_array_equal(again.score_samples(X), trust.score_samples(X))


def test_rows_that_repeat_training_rows_are_most_usual():
    train = rows(100, 0)
    trust = TrustScore(kind="distance", n_neighbors=1).fit(train, X_held_out=rows(50, 1))
    scores = trust.score_samples(np.concatenate([train[:5], rows(50, 2)]))
    assert np.all(np.isfinite(scores))
    assert scores[:5].min() > scores[5:].max()


@pytest.mark.parametrize(
    ("trust", "held_out", "message"),
    [
        (TrustScore(kind="density"), rows(30, 1), "kind must be one of"),
        (TrustScore(kind="both"), rows(30, 1), "needs a fitted model, got None"),
        (TrustScore(Knows(), kind="both"), None, "X_held_out=None"),
        (TrustScore(kind="distance"), rows(5, 1), "at least 10 held-out rows, got 5"),
        (TrustScore(kind="distance", false_alarm_rate=0.01), rows(30, 1), "at least 99 held-out"),
        (TrustScore(kind="distance", false_alarm_rate=5), rows(30, 1), "strictly between 0 and 1"),
        (
            TrustScore(BayesianRidge().fit(rows(9, 0), range(9)), kind="both"),
            rows(30, 1),
            "share of 0 in every",
        ),
    ],
)
def test_bad_input(trust, held_out, message):
    with pytest.raises(ValueError, match=message):
        trust.fit(rows(50, 0), X_held_out=held_out)


def test_unfitted_score_is_told():
    with pytest.raises(Exception, match="not fitted"):
        TrustScore(kind="distance").score_samples(rows(3, 0))


def test_a_chosen_tolerance_is_not_counted_as_noise_either():
    """Away from the data the members disagree, whatever the tolerance adds there."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(200, 1))
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=200)
    model = BVMRegressor(random_state=0, epochs=20).fit(x, y)
    assert model.tolerance == "local"
    trust = TrustScore(model, kind="epistemic").fit(x[:100], X_held_out=x[100:])
    far = np.array([[3.0], [-3.0]])
    share = np.exp(trust._signals(far)[:, 0])
    with_tolerance = _epistemic_share(model.predict_dist(far))
    model.predictive = "model"
    np.testing.assert_allclose(share, _epistemic_share(model.predict_dist(far)))
    assert (share > with_tolerance).all()
