"""BVMRegressor on data with a known answer, and in the places where people use estimators."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from accord import BVMRegressor
from accord.distributions import Mixture, Normal
from accord.estimators import fit_together

QUICK = {"epochs": 10, "random_state": 0, "tolerance": "2%"}


def make_sine(n=200, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(n, 1))
    return x, np.sin(2 * x[:, 0]) + noise * rng.normal(size=n)


@pytest.fixture(scope="module")
def sine():
    return make_sine()


@pytest.fixture(scope="module")
def fitted(sine):
    return BVMRegressor(**QUICK).fit(*sine)


class TestTheKnownAnswer:
    """Homoscedastic noise s on a constant: the smoothed predictive must recover s."""

    S = 0.5

    def fit(self, ratio):
        rng = np.random.default_rng(1)
        x = rng.uniform(-1, 1, size=(4000, 1))
        y = self.S * rng.normal(size=4000)
        model = BVMRegressor(
            tolerance=ratio * self.S,
            n_members=2,
            target_scaling="standard",
            mean_head="identity",
            variance_head="exp",
            hidden=(8,),
            epochs=40,
            batch_size=64,
            schedule="cosine",
            random_state=0,
        ).fit(x, y)
        truth = y.std()  # what the sample says of s
        return model, np.linspace(-0.9, 0.9, 50)[:, None], truth

    @pytest.mark.parametrize("ratio", [0.25, 0.5, 1.0])
    def test_smoothed_predictive_recovers_the_noise(self, ratio):
        model, grid, truth = self.fit(ratio)
        _, smoothed = model.predict(grid, return_std=True)
        assert smoothed.mean() == pytest.approx(truth, rel=0.03)

    def test_the_model_alone_does_not(self):
        model, grid, truth = self.fit(1.0)
        model.predictive = "model"
        _, alone = model.predict(grid, return_std=True)
        # the population optimum is σ² = s² − ε²/3 up to the .673 of the exact solution
        assert alone.mean() / truth == pytest.approx(math.sqrt(0.673), rel=0.03)


def test_shapes_and_parts(fitted, sine):
    x, _ = sine
    mean, std = fitted.predict(x, return_std=True)
    assert mean.shape == std.shape == (200,)
    assert fitted.predict(x).shape == (200,)
    assert fitted.predict_interval(x).shape == (200, 2)
    assert fitted.predict_quantiles(x, alpha=[0.1, 0.5, 0.9]).shape == (200, 3)
    parts = fitted.predict_uncertainty(x)
    squares = np.square(parts[["noise", "disagreement", "distance"]]).sum(axis=1)
    np.testing.assert_allclose(parts["total"] ** 2, squares, rtol=1e-10)
    np.testing.assert_allclose(parts["total"], std)


def test_quantiles_and_intervals_come_from_the_mixture(fitted, sine):
    x, _ = sine
    dist = fitted.predict_dist(x)
    bounds = fitted.predict_interval(x, coverage=0.8)
    np.testing.assert_allclose(dist.cdf(bounds[:, 0]), 0.1, atol=1e-9)
    np.testing.assert_allclose(dist.cdf(bounds[:, 1]), 0.9, atol=1e-9)


def test_combine_moments_is_the_gaussian_with_the_same_moments(fitted, sine):
    x, y = sine
    mixture = fitted.predict_dist(x)
    matched = clone(fitted).set_params(combine="moments").fit(*sine).predict_dist(x)
    np.testing.assert_allclose(matched.std, mixture.std)
    np.testing.assert_allclose(matched.epistemic, mixture.epistemic, atol=1e-12)
    expected = Normal(mixture.mean, mixture.std).log_prob(y)
    np.testing.assert_allclose(matched.log_prob(y), expected)


def test_one_member_is_its_member(sine):
    x, _ = sine
    model = BVMRegressor(**(QUICK | {"n_members": 1})).fit(*sine)
    parts = model.predict_uncertainty(x)
    np.testing.assert_array_equal(parts["disagreement"], 0)
    assert isinstance(model.predict_dist(x), Mixture)


def test_zero_tolerance_is_nll(sine):
    exact = BVMRegressor(**(QUICK | {"tolerance": 0.0})).fit(*sine)
    tiny = BVMRegressor(**(QUICK | {"tolerance": 1e-7})).fit(*sine)
    np.testing.assert_allclose(exact.predict(sine[0]), tiny.predict(sine[0]), atol=1e-3)


def test_uncertainty_grows_away_from_the_data(sine):
    model = BVMRegressor(random_state=0).fit(*sine)
    _, std = model.predict([[0.0], [8.0]], return_std=True)
    assert std[1] > 2 * std[0]


@pytest.mark.parametrize("choice", ["validate", "robust", "local"])
def test_the_choice_of_tolerance_is_shown(sine, choice):
    model = BVMRegressor(tolerance=choice, random_state=0, epochs=5, n_members=2).fit(*sine)
    curve = model.tolerance_curve_
    assert model.tolerance_ == pytest.approx(curve.chosen * np.ptp(sine[1]))
    assert curve.chosen in curve.values
    if choice == "validate":
        assert curve.values[np.argmin(curve.in_distribution)] == curve.chosen
    if choice == "robust":
        assert curve.chosen >= curve.values[np.argmin(curve.out_of_distribution)]
    assert np.isfinite(curve.in_distribution).all()


def test_a_learnt_tolerance_finds_the_width_of_uniform_errors():
    # errors uniform on ±0.5: agreement within 0.5 explains them all
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(2000, 1))
    y = rng.uniform(-0.5, 0.5, size=2000)
    model = BVMRegressor(
        tolerance="learn", random_state=0, epochs=40, n_members=2, hidden=(8,), learning_rate=0.01
    ).fit(x, y)
    assert model.tolerance_ == pytest.approx(0.5, rel=0.1)


def test_a_learnt_tolerance_is_in_each_targets_units(sine):
    x, y = sine
    model = BVMRegressor(**(QUICK | {"tolerance": "learn"}))
    model.fit(x, np.stack([y, 1000 * y], axis=1))
    ratio = model.member_tolerance_[:, 1] / model.member_tolerance_[:, 0]
    np.testing.assert_allclose(ratio, 1000)


def test_a_learnt_tolerance_needs_known_targets(sine):
    x, y = sine
    upper = np.where(np.arange(200) < 20, np.inf, np.nan)
    with pytest.raises(ValueError, match="tolerance='learn' needs targets that are all known"):
        BVMRegressor(**(QUICK | {"tolerance": "learn"})).fit(x, y, y_lower=y, y_upper=upper)
    given = BVMRegressor(**(QUICK | {"tolerance": "learn"}))
    given.fit(x, y, y_tolerance=0.1, y_lower=y, y_upper=upper)
    assert given.tolerance_ == pytest.approx(0.1)


def test_row_tolerances_in_target_units(sine):
    x, y = sine
    eps = 0.02 * np.ptp(y)
    by_number = BVMRegressor(**(QUICK | {"tolerance": eps})).fit(x, y)
    by_share = BVMRegressor(**(QUICK | {"tolerance": "2%"})).fit(x, y)
    by_rows = BVMRegressor(**QUICK).fit(x, y, y_tolerance=np.full(len(y), eps))
    np.testing.assert_allclose(by_number.predict(x), by_rows.predict(x), atol=1e-5)
    np.testing.assert_allclose(by_number.predict(x), by_share.predict(x), atol=1e-5)
    assert by_number.tolerance_ == eps


def test_known_measurement_error_is_not_predicted():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(3000, 1))
    y = 0.3 * rng.normal(size=3000) + 0.4 * rng.normal(size=3000)
    model = BVMRegressor(
        tolerance=0.0, n_members=1, epochs=30, batch_size=64, random_state=0, schedule="cosine"
    ).fit(x, y, y_std=np.full(3000, 0.4))
    _, std = model.predict(x[:50], return_std=True)
    assert std.mean() == pytest.approx(0.3, rel=0.1)


def test_censored_targets_are_recovered():
    # lifetimes cut off at 1.0: taking the cut as the lifetime would bias the mean by −0.4
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(3000, 1))
    life = 1.0 + 0.5 * x[:, 0] + 0.3 * rng.normal(size=3000)
    cut = np.minimum(life, 1.0)
    upper = np.where(life > 1.0, np.inf, np.nan)
    model = BVMRegressor(
        tolerance=0.0,
        n_members=2,
        epochs=40,
        batch_size=64,
        random_state=0,
        mean_head="identity",
        variance_head="exp",
        target_scaling="standard",
    ).fit(x, cut, y_lower=np.where(life > 1.0, 1.0, np.nan), y_upper=upper)
    grid = np.array([[-0.5], [0.0], [0.5]])
    np.testing.assert_allclose(model.predict(grid), 1.0 + 0.5 * grid[:, 0], atol=0.08)


@pytest.mark.parametrize("family", ["laplace", "logistic", "student-t"])
def test_other_families(sine, family):
    df = 5.0 if family == "student-t" else None
    model = BVMRegressor(**(QUICK | {"family": family, "df": df})).fit(*sine)
    bounds = model.predict_interval(sine[0], coverage=0.9)
    inside = (bounds[:, 0] <= sine[1]) & (sine[1] <= bounds[:, 1])
    assert inside.mean() > 0.75


def test_several_outputs_with_names(sine):
    x, y = sine
    frame = pd.DataFrame(x, columns=["x"], index=np.arange(1000, 1200))
    targets = pd.DataFrame({"up": y, "down": -2 * y}, index=frame.index)
    model = BVMRegressor(**QUICK).fit(frame, targets)
    assert model.predict(frame).shape == (200, 2)
    table = model.predict_interval(frame)
    assert list(table.columns) == [
        ("up", "lower"),
        ("up", "upper"),
        ("down", "lower"),
        ("down", "upper"),
    ]
    assert table.index.equals(frame.index)
    assert (table["up"]["lower"] < table["up"]["upper"]).all()


def test_frames_keep_index_and_names(sine):
    x, y = sine
    frame = pd.DataFrame(x, columns=["x"], index=[f"row{i}" for i in range(200)])
    model = BVMRegressor(**QUICK).fit(frame, y)
    parts = model.predict_uncertainty(frame)
    assert list(parts.columns) == ["mean", "noise", "disagreement", "distance", "total"]
    assert list(model.predict_quantiles(frame, alpha=[0.05, 0.95]).columns) == ["0.05", "0.95"]
    assert parts.index.equals(frame.index)


def test_fit_together_is_fitting_one_by_one(sine):
    x, y = sine
    other = make_sine(150, seed=3)
    make = lambda seed: BVMRegressor(**(QUICK | {"random_state": seed}))  # noqa: E731
    together = fit_together([(make(1), x, y), (make(2), *other)])
    for model, seed, data in zip(together, (1, 2), ((x, y), other), strict=True):
        alone = make(seed).fit(*data)
        np.testing.assert_allclose(model.predict(x), alone.predict(x), atol=1e-4)


def test_the_same_seed_gives_the_same_bits(sine):
    one, two = (BVMRegressor(**QUICK).fit(*sine).predict(sine[0]) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_early_stopping_stops(sine):
    settings = QUICK | {"epochs": 200, "early_stopping": True, "patience": 3, "learning_rate": 0.02}
    model = BVMRegressor(**settings).fit(*sine)
    assert len(model.history_) < 200
    assert len(model.held_out_history_) == len(model.history_)


def test_warm_start_goes_on(sine):
    model = BVMRegressor(**(QUICK | {"warm_start": True})).fit(*sine)
    first = model.score(*sine)
    for _ in range(4):
        model.fit(*sine)
    assert model.score(*sine) > first


def test_partial_fit_learns_from_batches(sine):
    x, y = sine
    model = BVMRegressor(**QUICK)
    model.partial_fit(x, y)
    early = model.score(x, y)
    for start in list(range(0, 200, 50)) * 20:
        model.partial_fit(x[start : start + 50], y[start : start + 50])
    assert model.score(x, y) > early


def test_partial_fit_keeps_tolerance_and_range(sine):
    x, y = sine
    model = BVMRegressor(**(QUICK | {"tolerance": "5%"})).partial_fit(x, y)
    plan = model._plan(x[:2], y[:2], goes_on=True, epochs=1)
    expected = 0.05 * np.ptp(y) / model.y_scale_
    np.testing.assert_allclose(plan.tasks[0].columns["tolerance"], np.tile(expected, (2, 1)))


def test_partial_fit_goes_on_learning_the_tolerance(sine):
    x, y = sine
    model = BVMRegressor(**(QUICK | {"tolerance": "learn"})).partial_fit(x, y)
    seen = [model.tolerance_]
    for _ in range(3):
        model.partial_fit(x, y)
        seen.append(model.tolerance_)
    assert len(set(seen)) == 4
    started = model._plan(x, y, goes_on=True, epochs=1).tasks[0].extra
    assert np.exp(started) * model.y_scale_ == pytest.approx(seen[-1])


@pytest.mark.parametrize("change", [{"hidden": (9,)}, {"n_members": 4}, {"hidden": (20, 20)}])
def test_going_on_needs_the_same_networks(sine, change):
    model = BVMRegressor(**(QUICK | {"warm_start": True})).fit(*sine)
    with pytest.raises(ValueError, match="n_members and hidden must stay"):
        model.set_params(**change).fit(*sine)


def test_training_that_diverges_says_so(sine):
    model = BVMRegressor(**(QUICK | {"tolerance": "1%", "learning_rate": 1e38}))
    with (
        pytest.warns(RuntimeWarning, match="diverged"),
        pytest.raises(ValueError, match="must reach a finite loss"),
    ):
        model.fit(*sine)


def test_weights_count_in_the_choice_of_a_tolerance(sine):
    """Rows of weight 0 have no say: their targets may be anything."""
    x, y = sine
    ignored = np.arange(200) % 2 == 0
    weight = np.where(ignored, 0.0, 1.0)
    models = [
        BVMRegressor(**(QUICK | {"tolerance": "validate", "epochs": 3})).fit(
            x, np.where(ignored, noise, y), sample_weight=weight
        )
        for noise in (0.5 * y, 0.4 * y)
    ]
    one, other = (m.tolerance_curve_.in_distribution for m in models)
    np.testing.assert_allclose(one, other)


def test_in_scikit_learns_tools(sine):
    x, y = sine
    pipeline = make_pipeline(StandardScaler(), BVMRegressor(**QUICK))
    assert cross_val_score(pipeline, x, y, cv=2).shape == (2,)
    search = GridSearchCV(pipeline, {"bvmregressor__hidden": [(5,), (20,)]}, cv=2).fit(x, y)
    assert search.best_params_["bvmregressor__hidden"] in [(5,), (20,)]
    log = TransformedTargetRegressor(BVMRegressor(**QUICK), func=np.exp, inverse_func=np.log)
    assert log.fit(x, y).predict(x).shape == (200,)


def test_pickle_keeps_predictions(fitted, sine):
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(sine[0]), fitted.predict(sine[0]))


def test_presets_hold_the_papers_settings():
    table1 = BVMRegressor.preset("table1")
    assert (table1.optimizer, table1.learning_rate, table1.batch_size) == ("adamw", 3e-4, 32)
    assert (table1.tolerance, table1.predictive, table1.epochs) == ("1%", "model", 40)
    assert table1.variance_floor <= 1e-30
    assert BVMRegressor.preset("table1-protein").hidden == (100,)
    assert BVMRegressor.preset("stocks-identity").mean_head == "identity"
    stocks = BVMRegressor.preset("stocks", tolerance=0.1)
    assert (stocks.hidden, stocks.learning_rate, stocks.tolerance) == ((50,) * 4, 1e-3, 0.1)


def test_the_floor_bounds_how_sure_a_member_may_be():
    """Targets without noise let σ collapse; a floor of 0.01 keeps it at a tenth of the range."""
    x = np.linspace(0, 1, 64)[:, None]
    settings = {"tolerance": 0.0, "epochs": 400, "learning_rate": 1e-3, "random_state": 0}
    free, floored = (
        BVMRegressor(**settings, variance_floor=floor).fit(x, x[:, 0]) for floor in (0.0, 0.01)
    )
    assert free.predict_uncertainty(x)["noise"].max() < 0.05
    assert floored.predict_uncertainty(x)["noise"].min() >= 0.1


@pytest.mark.filterwarnings("ignore:training ended at a loss")  # one epoch is not enough
def test_targets_may_stay_as_they_are():
    x = np.linspace(-4, 4, 40)[:, None]
    model = BVMRegressor.preset("toy", tolerance=0.0, epochs=1, random_state=0).fit(x, x[:, 0] ** 3)
    assert (model.y_shift_, model.y_scale_) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": -0.1}, "tolerance must be non-negative, got -0.1"),
        ({"hidden": 50}, "hidden must list the units of each hidden layer, got 50"),
        ({"clip_norm": 0.0}, "clip_norm must be positive, got 0.0"),
        ({"device": "bogus"}, "device must be one that torch has here, got 'bogus'"),
        (
            {"validation_fraction": 0.0},
            "validation_fraction must lie strictly between 0 and 1, got 0.0",
        ),
        ({"tolerance": "locale"}, "tolerance must be a number in target units, a percentage"),
        ({"tolerance": np.ones(3)}, "tolerance must be one number"),
        ({"tolerance": math.inf}, "tolerance must be finite"),
        ({"tolerance": None}, "tolerance must be a number, got None"),
        ({"learning_rate": "fast"}, "learning_rate must be a number, got 'fast'"),
        ({"n_members": 0}, "n_members"),
        ({"variance_floor": -1e-6}, "variance_floor must be non-negative"),
        ({"activation": "sigmoid"}, "activation must be one of"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\)"),
        ({"family": "cauchy"}, "family"),
        ({"family": "student-t", "df": 2.0}, "df must be above 2"),
        ({"predictive": "both"}, "predictive must be one of"),
        ({"hidden": (0,)}, "hidden"),
    ],
)
def test_bad_settings(sine, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        BVMRegressor(**(QUICK | settings)).fit(*sine)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_tolerance": [0.1, 0.2]}, r"y_tolerance must be a number or have a value per row"),
        ({"y_tolerance": -1.0}, "y_tolerance must be non-negative"),
        ({"y_tolerance": math.inf}, "y_tolerance must be finite"),
        ({"y_std": -np.ones(200)}, "y_std must be non-negative"),
        ({"y_lower": np.ones(200), "y_upper": np.zeros(200)}, "must not exceed y_upper"),
        (
            {"y_lower": np.full(200, -np.inf), "y_upper": np.full(200, np.inf)},
            "must bound at least one target",
        ),
        ({"sample_weight": np.ones(3)}, "sample_weight"),
    ],
)
def test_bad_knowledge_of_targets(sine, options, message):
    with pytest.raises(ValueError, match=message):
        BVMRegressor(**QUICK).fit(*sine, **options)


@pytest.mark.parametrize("constant", ["x", "y"])
def test_constant_columns(sine, constant):
    x, y = sine
    x = np.column_stack([x, np.ones(len(x))]) if constant == "x" else x
    y = np.full(len(y), 3.0) if constant == "y" else y
    model = BVMRegressor(**QUICK).fit(x, y)
    mean, std = model.predict(x, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_one_row():
    model = BVMRegressor(random_state=0, epochs=2).fit([[1.0]], [2.0])
    assert np.isfinite(model.predict([[1.0]])).all()


def test_verbose_draws_a_bar(sine, capsys, at_once):
    BVMRegressor(**(QUICK | {"verbose": 1})).fit(*sine)
    assert "BVMRegressor" in capsys.readouterr().err


def test_training_that_fails_says_so(sine):
    x, y = sine
    with pytest.warns(ConvergenceWarning, match="worse than .* without any network"):
        BVMRegressor(
            tolerance=0.0,
            epochs=5,
            learning_rate=10.0,
            mean_head="identity",
            variance_head="softplus",
            random_state=0,
        ).fit(x, y)


def test_an_exponential_head_is_finite_far_away(sine):
    model = BVMRegressor(**(QUICK | {"variance_head": "exp", "epochs": 2})).fit(*sine)
    dist = model.predict_dist([[1e6], [-1e30], [1e300]])
    assert np.isfinite(np.concatenate([dist.mean, dist.std, dist.interval(0.95).ravel()])).all()


def test_the_name_of_a_column_is_no_target() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 2.0]})
    with pytest.raises(
        TypeError, match=r"got the text 'y'. .* accord.TableRegressor takes the name"
    ):
        BVMRegressor().fit(frame, "y")
