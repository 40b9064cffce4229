"""A fit: the honesty of its figures, the model it leaves, and what it does with odd requests."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from accord.tables import OptionError, TableError
from accord.workflows import FitResult, fit_table, load_model
from accord.workflows.plan import Plan, Tolerance, fit_budget, parse_tolerance, plan_for


def test_columns_are_used_or_set_aside(fitted: FitResult) -> None:
    schema = fitted.model.schema
    assert schema.names == ["area", "age", "town", "sold", "<script>alert(1)</script>"]
    assert set(schema.ignored) == {"house", "country"}


def test_held_out_figures_are_from_rows_that_were_held_out(fitted: FitResult) -> None:
    assert len(set(fitted.random.rows)) == len(fitted.random) == 150
    assert len(fitted.unusual) == 15
    # A model that had seen the rows would be closer to them than the noise allows.
    held_out = fitted.random.figures()["rmse"]
    dist = fitted.model.predict_dist(_features(fitted))
    assert held_out > 15
    assert 0.85 < fitted.random.covered <= 1
    assert dist.shape == (150,)


def _features(fitted: FitResult) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "area": rng.uniform(40, 200, 150),
            "age": np.nan,
            "town": "Ulm",
            "sold": pd.Timestamp("2021-01-01"),
            "<script>alert(1)</script>": 0.0,
        }
    )


def test_the_summary_says_it_in_words(fitted: FitResult) -> None:
    summary = fitted.verdict.summary
    assert summary.startswith("95 % intervals cover")
    assert "of held-out rows and" in summary
    assert "typical width" in summary
    assert fitted.to_json()["held_out"]["coverage"] == fitted.random.covered


def test_what_matters_is_found_to_matter(fitted: FitResult) -> None:
    assert fitted.effects[0].name == "area"
    assert fitted.effects[0].mean > 5 * fitted.effects[-1].mean


def test_the_file_gives_the_same_predictions(fitted: FitResult, model_file: Path) -> None:
    X = _features(fitted)
    loaded = load_model(model_file)
    before, after = fitted.model.predict_dist(X), loaded.predict_dist(X)
    np.testing.assert_array_equal(before.mean, after.mean)
    np.testing.assert_array_equal(before.interval(0.9), after.interval(0.9))
    features = loaded.features(X)
    np.testing.assert_array_equal(
        loaded.trust.is_unusual(features), fitted.model.trust.is_unusual(features)
    )
    assert loaded.card == fitted.model.card
    assert loaded.schema == fitted.model.schema


def test_the_card_says_where_the_model_comes_from(fitted: FitResult) -> None:
    card = fitted.model.card
    assert card.n_rows == 150
    assert len(card.sha256) == 64
    assert card.settings["members"] == 5
    assert card.held_out == fitted.random.figures()
    assert {"accord", "torch", "python"} <= set(card.versions)
    assert any("few" in limit for limit in card.limits)


def test_the_same_seed_gives_the_same_model(houses: pd.DataFrame, fitted: FitResult) -> None:
    again = fit_table(houses, target="price", tolerance="2%")
    np.testing.assert_array_equal(again.random.mean, fitted.random.mean)
    assert again.effects == fitted.effects


def quick(frame: pd.DataFrame, **options: Any) -> FitResult:
    return fit_table(frame, **{"target": "price", "tolerance": "2%", "members": 2, **options})


def test_censored_rows_pull_predictions_beyond_their_bound() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 200)
    life = 10 + 10 * x + rng.normal(0, 1, 200)
    seen = np.minimum(life, 16)
    frame = pd.DataFrame({"x": x, "price": seen})
    frame["at least"] = np.where(life > 16, 16.0, np.nan)
    naive = quick(frame.drop(columns="at least"))
    aware = quick(frame, lower_column="at least")
    late = pd.DataFrame({"x": [0.95]})
    assert aware.model.predict_dist(late).mean > naive.model.predict_dist(late).mean
    assert len(aware.random) < len(naive.random)
    assert any("censored" in limit for limit in aware.model.card.limits)


def test_tolerances_of_rows_are_used() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 120)
    frame = pd.DataFrame({"x": x, "price": np.round(10 * x), "tol": 0.5})
    result = quick(frame, tolerance_column="tol")
    assert result.model.schema.names == ["x"]
    assert result.model.card.settings["chosen_tolerance"] == pytest.approx(0.05)


@pytest.mark.parametrize("method", ["conformal", "variance", "none"])
def test_recalibration_by_name(houses: pd.DataFrame, method: Any) -> None:
    result = quick(houses, recalibrate=method)
    assert result.model.card.settings["recalibration"] == method
    assert (result.model.calibrator is None) == (method == "none")


def test_too_few_rows_for_the_method_fall_back(houses: pd.DataFrame) -> None:
    result = quick(houses.iloc[:40])
    assert result.model.card.settings["recalibration"] == "variance"
    assert any("one factor" in note for note in result.notes)


def test_twenty_rows_are_enough_to_run(houses: pd.DataFrame) -> None:
    result = quick(houses.iloc[:20])
    assert len(result.random) == 20


def test_ten_thousand_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.workflows.plan._EPOCHS", 4)
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(24, 10_000))).add_prefix("x")
    frame = wide.assign(price=wide["x3"] * 5 + rng.normal(0, 0.1, 24))
    result = quick(frame)
    assert result.model.card.n_columns == 10_000
    assert len(result.effects) == 15


def test_a_broken_request_is_refused_before_training(houses: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match="tolerance must be a number"):
        quick(houses, tolerance="much")
    with pytest.raises(OptionError, match="Did you mean 'price'"):
        quick(houses, target="prize")
    with pytest.raises(TableError, match="must hold numbers"):
        quick(houses, target="town")


# --- the plan ----------------------------------------------------------------------------------


def test_tolerances_as_they_are_typed() -> None:
    assert parse_tolerance("0.5").for_range(10.0) == 0.05
    assert parse_tolerance("1%").for_range(10.0) == 0.01
    assert parse_tolerance(" Local ").for_range(10.0) == "local"
    assert parse_tolerance(0).for_range(10.0) == 0.0
    for wrong in ("-1", "nan", "inf", "x%"):
        with pytest.raises(OptionError):
            parse_tolerance(wrong)


def test_small_tables_are_split_often_and_large_ones_trained_shortly() -> None:
    tolerance = Tolerance(choice="local")
    assert plan_for(100, tolerance).n_folds == 5
    assert plan_for(5_000, tolerance).n_folds == 1
    small, large = plan_for(5_000, tolerance), plan_for(1_000_000, tolerance)
    steps = [plan.epochs * n / plan.batch_size for plan, n in ((small, 5e3), (large, 1e6))]
    assert steps[1] < 10 * steps[0]


def test_a_budget_gives_up_what_costs_most() -> None:
    asked: list[Plan] = []

    def run(plan: Plan, rows: int) -> None:
        asked.append(plan)
        time.sleep(0.001 * plan.epochs)

    plan = plan_for(100, Tolerance(choice="local"))
    assert fit_budget(plan, 1e9, n_rows=100, run=run) == plan
    assert len(asked) == 2
    cheapest = fit_budget(plan, 0.0, n_rows=100, run=run)
    assert cheapest.n_folds == 1
    assert cheapest.tolerance.share == 0.02
    assert cheapest.epochs < plan.epochs
    assert "fixed tolerance" in cheapest.notes[0]
