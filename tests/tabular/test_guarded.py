"""A guard around any model: coverage, scales that follow the errors, and refusals."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    QuantileRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

import accord
from accord import GuardedRegressor, guard

COVERAGE = 0.9


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A line with noise that is three times as large on one side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, 2 * X[:, 0] + np.where(X[:, 1] > 0, 0.3, 0.1) * rng.normal(size=n)


X, Y = rows(500, 0)
NEW, TRUTH = rows(2_000, 1)
FAR = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 1e6], [1e300, -1e300]])


@pytest.fixture(scope="module")
def guarded() -> GuardedRegressor:
    model = make_pipeline(StandardScaler(), LinearRegression())
    return guard(model, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def prefit() -> GuardedRegressor:
    old = LinearRegression().fit(*rows(100, 2))
    return guard(old, fitted=True, coverage=COVERAGE, random_state=0).fit(X, Y)


def covered(model: GuardedRegressor) -> float:
    lower, upper = model.predict_interval(NEW, COVERAGE).T
    return float(np.mean((lower <= TRUTH) & (upper >= TRUTH)))


def test_intervals_hold_and_follow_the_noise(guarded: GuardedRegressor) -> None:
    assert 0.87 < covered(guarded) < 0.94
    noisy = NEW[:, 1] > 0.2
    std = guarded.predict(NEW, return_std=True)[1]
    assert 2 < std[noisy].mean() / std[NEW[:, 1] < -0.2].mean() < 4
    # the noise itself is the best that anybody can state: -E log p = log σ + (1 + log 2π) / 2
    best = np.log([0.1, 0.3]).mean() + 0.5 * (1 + np.log(2 * np.pi))
    assert -np.mean(guarded.predict_dist(NEW).log_prob(TRUTH)) < best + 0.08


def test_the_prediction_is_the_mean_of_the_folds_models(guarded: GuardedRegressor) -> None:
    expected = np.mean([model.predict(NEW) for model in guarded.models_], axis=0)
    np.testing.assert_allclose(guarded.predict(NEW), expected, rtol=1e-9, atol=1e-12)
    assert guarded.predict_uncertainty(NEW)["disagreement"].min() > 0


def test_a_fitted_model_is_used_as_it_is(prefit: GuardedRegressor) -> None:
    assert prefit.models_ == [prefit.model]
    np.testing.assert_allclose(prefit.predict(NEW), prefit.model.predict(NEW), rtol=1e-9)
    assert 0.87 < covered(prefit) < 0.94
    np.testing.assert_array_equal(prefit.predict_interval(NEW), prefit.predict_interval(NEW, 0.9))
    assert prefit.predict_uncertainty(NEW)["disagreement"].max() < 1e-9  # rounding


def test_a_bias_widens_and_does_not_move_the_prediction() -> None:
    class Biased(RegressorMixin, BaseEstimator):
        def fit(self, X: np.ndarray, y: np.ndarray) -> "Biased":
            self.fitted_ = True
            return self

        def predict(self, X: np.ndarray) -> np.ndarray:
            return 2 * X[:, 0] + 1.0

    found = guard(Biased(), random_state=0).fit(X, Y)
    np.testing.assert_allclose(found.predict(NEW[:5]), 2 * NEW[:5, 0] + 1.0)
    assert found.predict(NEW, return_std=True)[1].mean() > 0.9
    assert covered(found) > 0.85


def test_everything_is_finite_and_wide_far_away(guarded: GuardedRegressor) -> None:
    parts = guarded.predict_uncertainty(FAR)
    assert np.isfinite(parts.to_numpy()).all()
    squares = parts[["noise", "disagreement", "distance"]].pow(2).sum(axis=1)
    np.testing.assert_allclose(squares, parts["total"] ** 2, rtol=1e-6)
    assert (parts["total"][1:] > 3 * parts["total"][0]).all()
    # 60 is predicted where no target was above 3: it may be wrong by as much
    assert parts["distance"][1] > 50
    assert guarded.is_unusual(FAR).tolist() == [False, True, True, True]
    assert np.isfinite(guarded.predict_quantiles(FAR, [0.01, 0.99])).all()
    assert 0.02 < guarded.is_unusual(NEW).mean() < 0.1


def test_pipelines_on_frames_with_text_and_gaps(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=300), "town": rng.choice(["Ulm", "Bonn"], 300)})
    frame.loc[::10, "x"] = np.nan
    y = frame["x"].fillna(0) + 5 * (frame["town"] == "Ulm") + 0.1 * rng.normal(size=300)
    inner = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]),
            remainder="passthrough",
        ),
        HistGradientBoostingRegressor(max_iter=30),
    )
    found = guard(inner, random_state=0).fit(frame, y)
    new = pd.DataFrame(
        {"x": [0.0, np.nan, 0.0], "town": ["Ulm", "Bonn", "Rome"]}, index=list("abc")
    )
    interval = found.predict_interval(new)
    assert interval.index.tolist() == ["a", "b", "c"]
    assert (interval["lower"] < interval["upper"]).all()
    assert found.is_unusual(new).tolist() == [False, False, True]
    with pytest.raises(TypeError, match="each Pipeline of models_ in its own"):
        found.save(tmp_path / "g.accord")


@pytest.mark.parametrize("names", [["row", "constant", "x"], [0, 1, 2]])
def test_another_value_than_the_only_one_is_unusual(names: list[object]) -> None:
    rng = np.random.default_rng(4)
    values = np.column_stack([np.arange(60.0), np.ones(60), rng.normal(size=60)])
    frame = pd.DataFrame(values, columns=names)
    y = values[:, 2] + 0.1 * rng.normal(size=60)
    found = guard(LinearRegression(), random_state=0).fit(frame, y)
    assert found.models_[0].n_features_in_ == 3
    other = frame.head(1).copy()
    other[names[1]] = 1.5  # nothing is known about what a constant means when it changes
    assert found.is_unusual(other).tolist() == [True]
    assert found.is_unusual(frame.head(1)).tolist() == [False]
    parts, usual = found.predict_uncertainty(other), found.predict_uncertainty(frame.head(1))
    added = np.sqrt(parts["distance"] ** 2 - usual["distance"] ** 2)
    assert added.item() == pytest.approx(y.std(), rel=0.2)
    receipts = found.explain_uncertainty(other)
    assert f"{names[1]} 1.5: no training row has it" in receipts.unlike[0]
    by_column = dict(zip(receipts.names, receipts.distance_by_column[0], strict=True))
    assert by_column[str(names[1])] == pytest.approx(added.item() ** 2)
    assert found.predict_interval(frame.tail(3)).index.tolist() == [57, 58, 59]


def test_the_same_seed_gives_the_same_guard(guarded: GuardedRegressor) -> None:
    again = clone(guarded).fit(X, Y)
    np.testing.assert_array_equal(
        again.predict_interval(NEW[:9]), guarded.predict_interval(NEW[:9])
    )


def test_saved_without_pickle_where_the_model_allows_it(
    guarded: GuardedRegressor, tmp_path: Path
) -> None:
    guarded.save(tmp_path / "g.accord")
    loaded = accord.load(tmp_path / "g.accord")
    np.testing.assert_array_equal(loaded.predict_interval(FAR), guarded.predict_interval(FAR))
    trees = guard(HistGradientBoostingRegressor(max_iter=5), random_state=0).fit(X[:60], Y[:60])
    with pytest.raises(TypeError, match="each HistGradientBoostingRegressor of models_ in its own"):
        trees.save(tmp_path / "t.accord")
    assert not (tmp_path / "t.accord").exists()


def test_the_guard_and_the_models_bytes_apart(tmp_path: Path) -> None:
    """Trees cannot be written safely: they stay with whoever trusts their bytes."""
    trees = guard(HistGradientBoostingRegressor(max_iter=5), random_state=0).fit(X[:60], Y[:60])
    trees.save(tmp_path / "t.accord", models=False)
    loaded = accord.load(tmp_path / "t.accord")
    with pytest.raises(NotFittedError, match=r"saved alone.*attach\(models\)"):
        loaded.predict(X[:3])
    with pytest.raises(ValueError, match=r"got 1\. Give all of models_"):
        loaded.attach(trees.models_[:1])
    np.testing.assert_array_equal(
        loaded.attach(trees.models_).predict_interval(NEW[:9]), trees.predict_interval(NEW[:9])
    )


def test_receipts_say_where_the_width_comes_from(
    guarded: GuardedRegressor, prefit: GuardedRegressor
) -> None:
    rows = np.array([[0.1, 0.2], [0.0, 30.0]])
    for model in (guarded, prefit):
        found = model.explain_uncertainty(rows)
        np.testing.assert_allclose(found.parts.std, model.predict_dist(rows).std, rtol=1e-6)
        np.testing.assert_allclose(
            found.distance_by_column.sum(axis=1), np.square(found.parts.distance), rtol=1e-9
        )
        assert found.distance_by_column[1, 1] > 0.5 * np.square(found.parts.std[1])
        assert not found.unlike[0]
        assert found.unlike[1].startswith("x1 30")
        assert "more training rows like this one" in found.narrow[1]


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="with fitted=True the model must be fitted"):
        guard(LinearRegression(), fitted=True).fit(X, Y)
    with pytest.raises(ValueError, match="at least 20 rows to learn errors from, got"):
        guard(LinearRegression()).fit(X[:10], Y[:10])
    with pytest.raises(ValueError, match="y must be finite"):
        guard(LinearRegression()).fit(X, np.where(np.arange(500) == 3, np.nan, Y))
    with pytest.raises(ValueError, match="at least 2 groups to hold some out, got 1"):
        guard(LinearRegression()).fit(X, Y, groups=np.zeros(500))
    with pytest.raises(ValueError, match="as many rows, got 500 and 499"):
        guard(LinearRegression()).fit(X, Y[1:])


def shops(n: int, seed: int, names: str = "abcdefgh") -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    level, rooms, x = rng.integers(8, size=n), rng.integers(1, 8, size=n), rng.normal(size=n)
    frame = pd.DataFrame({"shop": [names[place] for place in level], "rooms": rooms, "x": x})
    return frame, pd.Series(2.0 * (level - 3.5) + rooms + 0.3 * rng.normal(size=n))


def test_unknown_categories_and_missing_numbers_are_as_uncertain_as_they_are() -> None:
    inner = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["shop"]),
            remainder="passthrough",
        ),
        HistGradientBoostingRegressor(max_iter=60),
    )
    found = guard(inner, coverage=COVERAGE, random_state=0).fit(*shops(500, 0))
    known, y = shops(1_000, 1)
    unlike = {
        "shop": shops(1_000, 1, names="ABCDEFGH")[0],
        "rooms": known.assign(rooms=np.nan),
        "x": known.assign(x=np.nan),
    }
    width = {"none": np.median(found.predict_interval(known).diff(axis=1)["upper"])}
    for name, rows in unlike.items():
        interval = found.predict_interval(rows)
        assert np.mean((interval["lower"] <= y) & (y <= interval["upper"])) > 0.85, name
        width[name] = np.median(interval["upper"] - interval["lower"])
    assert width["shop"] > width["rooms"] > 2 * width["none"]
    assert width["x"] < 1.2 * width["none"]  # it tells nothing


def test_a_model_that_takes_no_gaps_is_asked_for_none() -> None:
    found = guard(LinearRegression(), random_state=0).fit(X, Y)
    assert found.residuals_.blanks_.features == ()
    with pytest.raises(ValueError, match="NaN"):
        found.predict([[np.nan, 0.0]])


def test_a_name_is_no_target() -> None:
    """Unlike a table's regressor, a guard cannot know which columns its model is to see."""
    with pytest.raises(TypeError, match=r"got the name 'y'.*Use fit\(X.drop"):
        accord.guard(LinearRegression()).fit(pd.DataFrame({"a": range(30), "y": range(30)}), "y")


class Plain:
    """A model of no library, which answers in a form of its own and remembers no parameters."""

    def __init__(self, form: Callable[[np.ndarray], Any] = list) -> None:
        self.form = form

    def fit(self, X: Any, y: Any) -> None:
        self.line = LinearRegression().fit(X, y)

    def predict(self, X: Any) -> Any:
        return self.form(self.line.predict(X))


class Stubborn(LinearRegression):  # type: ignore[misc]
    """Like CatBoost's regressor, it keeps a copy of a list, which scikit-learn's clone refuses."""

    def __init__(self, columns: list[str] | None = None) -> None:
        super().__init__()
        self.columns = list(columns or [])


@pytest.mark.parametrize(
    "model",
    [Plain(), Plain(lambda p: p[:, None]), Plain(pd.Series), Stubborn(["x0"])],
    ids=["list", "column", "series", "stubborn"],
)
def test_anything_with_fit_and_predict_is_guarded(model: Any, tmp_path: Path) -> None:
    expected = guard(LinearRegression(), random_state=0).fit(X[:60], Y[:60])
    found = guard(model, random_state=0).fit(X[:60], Y[:60])
    np.testing.assert_array_equal(found.predict_interval(NEW), expected.predict_interval(NEW))
    found.save(tmp_path / "g.accord", models=False)
    loaded = accord.load(tmp_path / "g.accord", GuardedRegressor).attach(found.models_)
    np.testing.assert_array_equal(loaded.predict(NEW), expected.predict(NEW))
    used = guard(found.models_[0], fitted=True, random_state=0).fit(NEW, NEW[:, 0])
    np.testing.assert_allclose(used.predict(X), np.ravel(found.models_[0].predict(X)))


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (lambda p: np.stack([p, p], axis=1), r"one number for each row, got shape \(\d+, 2\)"),
        (lambda p: p.mean(), r"one number for each row, got shape \(\)"),
        (lambda p: np.where(p > 0, np.nan, p), "predictions of the model must be finite, got nan"),
        (lambda p: np.where(p > 0, np.inf, p), "predictions of the model must be finite, got inf"),
    ],
    ids=["two numbers", "one for all", "nan", "inf"],
)
def test_predictions_that_are_none_are_refused(form: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        guard(Plain(form)).fit(X, Y)


def test_what_is_no_model_or_no_table_is_refused() -> None:
    for model in (LinearRegression, "linear"):
        for fitted in (False, True):
            with pytest.raises(TypeError, match="the model must have"):
                guard(model, fitted=fitted).fit(X, Y)
    with pytest.raises(TypeError, match="got a sparse csr_matrix"):
        guard(LinearRegression()).fit(csr_matrix(X), Y)
    with pytest.raises(ValueError, match=r"groups must have one value per row, \(500,\), got"):
        guard(LinearRegression()).fit(X, Y, groups=np.arange(499))


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        RidgeCV(),
        Lasso(0.01),
        LassoCV(),
        ElasticNet(0.01),
        ElasticNetCV(),
        HuberRegressor(),
        QuantileRegressor(alpha=0.0),
        make_pipeline(MinMaxScaler(), RobustScaler(), Ridge()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_linear_models_of_scikit_learn_are_saved(model: Any, tmp_path: Path) -> None:
    found = guard(model, random_state=0).fit(X[:60], Y[:60])
    found.save(tmp_path / "g.accord")
    loaded = accord.load(tmp_path / "g.accord", GuardedRegressor)
    np.testing.assert_array_equal(loaded.predict_interval(NEW), found.predict_interval(NEW))
