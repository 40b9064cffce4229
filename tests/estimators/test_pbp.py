"""PBP as an estimator: known noise, growing doubt, several outputs, stacks."""

import numpy as np
import pandas as pd
import pytest

from accord import PBPRegressor, load
from accord.estimators import fit_together

NOISE = 0.3


def wave(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 1))
    return x, np.sin(2 * x[:, 0]) + NOISE * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted() -> PBPRegressor:
    return PBPRegressor(random_state=0).fit(*wave(300))


def test_recovers_the_noise(fitted: PBPRegressor) -> None:
    parts = fitted.predict_uncertainty(np.linspace(-1.8, 1.8, 20)[:, None])
    np.testing.assert_allclose(parts["noise"], NOISE, rtol=0.12)
    assert np.all(parts["disagreement"] < 0.4 * NOISE)


def test_doubts_grow_away_from_the_data(fitted: PBPRegressor) -> None:
    epistemic = fitted.predict_uncertainty([[2.0], [3.0], [5.0], [9.0]])["disagreement"].to_numpy()
    assert np.all(np.diff(epistemic) > 0)
    assert epistemic[-1] > 5 * epistemic[0]


def test_intervals_cover_new_rows(fitted: PBPRegressor) -> None:
    x, y = wave(1000, seed=1)
    lower, upper = fitted.predict_interval(x, coverage=0.9).T
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(0.9, abs=0.04)
    assert fitted.score(x, y) > 0.8


def test_loss_falls(fitted: PBPRegressor) -> None:
    assert fitted.history_.shape == (40, 1)
    assert fitted.history_[-1] < fitted.history_[0] - 0.3


def test_units_do_not_matter() -> None:
    x, y = wave(100)
    plain = PBPRegressor(epochs=3, random_state=0).fit(x, y)
    scaled = PBPRegressor(epochs=3, random_state=0).fit(1e3 * x + 5, 1e-4 * y - 7)
    mean, std = plain.predict(x, return_std=True)
    scaled_mean, scaled_std = scaled.predict(1e3 * x + 5, return_std=True)
    np.testing.assert_allclose(scaled_mean, 1e-4 * mean - 7, rtol=1e-7)
    np.testing.assert_allclose(scaled_std, 1e-4 * std, rtol=1e-6)


def test_several_outputs_are_networks_of_their_own() -> None:
    x, y = wave(60)
    names = pd.DataFrame({"up": y, "down": -2 * y})
    model = PBPRegressor(epochs=3, random_state=0).fit(x, names)
    parts = model.predict_uncertainty(pd.DataFrame(x))
    assert list(parts.columns.get_level_values(0).unique()) == ["up", "down"]
    assert model.predict(x).shape == (60, 2)
    alone = PBPRegressor(epochs=3, random_state=0).fit(x, y)
    np.testing.assert_allclose(model.predict(x)[:, 0], alone.predict(x), rtol=1e-9)


def test_stack_gives_what_each_alone_gives() -> None:
    jobs = [
        (PBPRegressor(epochs=2, random_state=s), *wave(n, s)) for s, n in enumerate((50, 50, 40))
    ]
    together = fit_together(jobs)
    for s, (model, (_, x, y)) in enumerate(zip(together, jobs, strict=True)):
        alone = PBPRegressor(epochs=2, random_state=s).fit(x, y)
        np.testing.assert_allclose(model.predict(x), alone.predict(x), rtol=1e-9)


def test_saved_and_loaded(fitted: PBPRegressor, tmp_path) -> None:
    x, _ = wave(20)
    fitted.save(tmp_path / "model.accord")
    restored = load(tmp_path / "model.accord")
    np.testing.assert_array_equal(restored.predict(x), fitted.predict(x))


def test_interrupted_fit_keeps_what_it_has_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    from accord.estimators import pbp

    def interrupted(*args, **options):
        passes = original(*args, **options)
        yield next(passes)
        raise KeyboardInterrupt

    original = pbp.train_pbp
    monkeypatch.setattr(pbp, "train_pbp", interrupted)
    with pytest.warns(RuntimeWarning, match="interrupted after 1 of 40 passes"):
        model = PBPRegressor(random_state=0).fit(*wave(30))
    assert model.n_iter_ == 1
    assert np.isfinite(model.predict([[0.0]])).all()


def test_constant_target_and_feature() -> None:
    x = np.column_stack([np.arange(20.0), np.full(20, 3.0)])
    mean, std = (
        PBPRegressor(epochs=2, random_state=0).fit(x, np.full(20, 5.0)).predict(x, return_std=True)
    )
    np.testing.assert_allclose(mean, 5.0, atol=1.0)
    assert np.all(np.isfinite(std) & (std > 0))


@pytest.mark.parametrize("settings", [{"epochs": 0}, {"hidden": (0,)}])
def test_bad_settings_are_named(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be at least 1, got 0"):
        PBPRegressor(**settings).fit(*wave(10))
