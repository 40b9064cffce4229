"""What held-out rows teach a model about unusual ones."""

import numpy as np
import pytest

from accord.distributions import Normal
from accord.workflows import FitResult
from accord.workflows.evidence import HeldOut


def held_out(scale: np.ndarray, unusual: np.ndarray, seed: int = 0) -> HeldOut:
    """Predictions N(0, 1) for rows whose errors have another scale."""
    n = len(scale)
    y = scale * np.random.default_rng(seed).normal(size=n)
    rows = np.arange(n)
    return HeldOut(Normal(np.zeros(n), 1.0), rows, rows, y, np.zeros(n), unusual)


def test_the_widening_is_learnt_from_unusual_rows_alone() -> None:
    unusual = np.arange(1000) % 2 == 0
    rows = held_out(np.where(unusual, 3.0, 1.0), unusual)
    calibrator = rows[~unusual].calibrator("conformal")
    assert rows.widening(calibrator, 0.9) == pytest.approx(3, rel=0.15)
    assert rows[~unusual].widening(calibrator, 0.9) == 1
    assert rows.widening(None, 0.9) == 1


def test_both_kinds_are_then_covered() -> None:
    unusual = np.arange(1000) % 2 == 0
    scale = np.where(unusual, 3.0, 1.0)
    learnt, judged = held_out(scale, unusual), held_out(scale, unusual, seed=1)
    calibrator = learnt[~unusual].calibrator("conformal")
    factor = learnt.widening(calibrator, 0.9)
    for kind in (unusual, ~unusual):
        assert judged[kind].assessed(calibrator, factor, 0.9).covered == pytest.approx(
            0.9, abs=0.05
        )
    assert judged[unusual].assessed(calibrator, 1.0, 0.9).covered < 0.6


@pytest.mark.parametrize("n", [1, 7, 57])
def test_parts_hold_each_row_once(n: int) -> None:
    parts = held_out(np.ones(n), np.zeros(n, bool)).parts(seed=3)
    np.testing.assert_array_equal(np.sum(parts, axis=0), np.ones(n))
    assert len(parts) == min(n, 10)


def test_what_is_judged_is_not_learnt_from() -> None:
    unusual = np.ones(40, bool)
    scale = np.where(np.arange(40) < 20, 100.0, 3.0)
    rows, ordinary = held_out(scale, unusual), held_out(np.ones(200), np.zeros(200, bool))
    calibrator = ordinary.calibrator("conformal")
    assert rows.widening(calibrator, 0.9) > 30
    assert rows.widening(calibrator, 0.9, judged=np.arange(20)) < 10
    assert rows.widening(calibrator, 0.9, judged=np.arange(40)) == 1


def test_a_model_widens_what_it_flags(fitted: FitResult, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted.model
    features = model.trust.proximity_.references_[:2] * 0
    features[1] += 50.0
    assert model.trust.is_unusual(features).tolist() == [False, True]
    monkeypatch.setattr(model, "widening", 1.0)
    before = np.asarray(model.distribution(features).std)
    monkeypatch.setattr(model, "widening", 2.0)
    after = np.asarray(model.distribution(features).std)
    np.testing.assert_allclose(after, before * [1.0, 2.0])
