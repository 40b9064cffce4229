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


def test_parts_hold_each_row_once_and_never_what_they_are_judged_by() -> None:
    rows = held_out(np.ones(57), np.zeros(57, bool))
    parts = rows.parted(seed=3)
    assert sorted(np.concatenate([part.rows for part, _ in parts])) == list(range(57))
    for part, rest in parts:
        assert not set(part.rows) & set(rest.rows)
        assert set(rest.without(part).rows) == set(rest.rows)


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
