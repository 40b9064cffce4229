"""A fit: the honesty of its figures, the model it leaves, and what it does with odd requests."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from accord._files import OptionError
from accord.distributions import Normal
from accord.tables import TableError
from accord.workflows import FitResult, fit_table, load_model, table_model
from accord.workflows.explain import feature_effects


def quick(frame: pd.DataFrame, target: str = "price", **options: Any) -> FitResult:
    return fit_table(table_model(effort="quick"), frame, target, **options)


def test_the_same_seed_gives_the_same_model_by_either_path(
    fitted: FitResult, houses: pd.DataFrame
) -> None:
    import accord

    model = accord.TableRegressor(effort="quick", random_state=0).fit(houses, "price")
    np.testing.assert_array_equal(model.held_out_.mean, fitted.held_out.mean)
    np.testing.assert_array_equal(model.predict(houses), fitted.model.predict(houses))


def test_every_row_is_judged_by_models_that_had_not_seen_it(fitted: FitResult) -> None:
    assert sorted(fitted.held_out.rows) == list(range(1, 151))
    # Models that had seen the rows would be closer to them than the noise allows.
    assert fitted.held_out.figures()["rmse"] > 15
    assert 0.85 < fitted.held_out.covered <= 1
    assert len(fitted.shifted) == 15


def test_reliability_and_use_are_in_one_sentence(fitted: FitResult) -> None:
    assert "95 % intervals" in fitted.verdict.headline
    assert "without a model" in fitted.verdict.headline
    assert "with a linear model" in fitted.verdict.summary
    assert "mean" in fitted.verdict.summary
    assert "median" in fitted.verdict.summary
    assert fitted.to_json()["held_out"]["coverage"] == fitted.held_out.covered


def test_a_target_that_the_columns_say_nothing_about_gets_no_green_tick() -> None:
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"x": rng.normal(size=150), "price": rng.normal(size=150)})
    verdict = quick(noise).verdict
    assert verdict.level != "good"
    assert "narrower than without a model" in verdict.headline


def test_twenty_rows_are_too_few_to_tell(houses: pd.DataFrame) -> None:
    result = quick(houses.iloc[:20])
    assert result.verdict.level != "good"
    assert result.verdict.headline.startswith("Too few rows to tell whether")
    assert "confidence range" in result.verdict.headline


def test_what_matters_is_found_to_matter(fitted: FitResult) -> None:
    assert fitted.effects[0].name == "area"
    assert fitted.effects[0].direction == "rises with it"
    directions = {effect.name: effect.direction for effect in fitted.effects}
    assert directions["town"] == "highest for Ulm"
    assert fitted.effects[0].mean > 3 * fitted.effects[-1].mean


def test_the_file_gives_the_same_predictions(
    fitted: FitResult, model_file: Path, houses: pd.DataFrame
) -> None:
    loaded = load_model(model_file)
    np.testing.assert_array_equal(loaded.predict(houses), fitted.model.predict(houses))
    assert loaded.card_ == fitted.model.card_
    assert loaded.schema_ == fitted.model.schema_


def test_progress_never_goes_back_and_is_full_only_at_the_end(houses: pd.DataFrame) -> None:
    seen: list[tuple[float, str]] = []
    quick(houses.iloc[:40], progress=lambda share, what="": seen.append((share, what)))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert all(share < 1 - 1e-9 for share in shares[:-1])
    assert {"Reading", "Training", "Explaining"} <= {what for _, what in seen}


def test_hundreds_of_columns() -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(24, 250))).add_prefix("x")
    frame = wide.assign(price=wide["x3"] * 5 + rng.normal(0, 0.1, 24))
    result = quick(frame)
    assert result.model.card_.n_columns == 250
    assert len(result.effects) == 15


def test_a_broken_request_is_refused_before_training(houses: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match="tolerance must be a number"):
        table_model(tolerance="much")
    with pytest.raises(OptionError, match="Did you mean 'price'"):
        quick(houses, target="prize")
    with pytest.raises(TableError, match="must hold numbers"):
        quick(houses, target="town")


def test_directions_are_those_of_the_column_itself() -> None:
    """A falls although rows with a large a have large predictions, by way of b."""
    rng = np.random.default_rng(0)
    b = rng.normal(size=300)
    frame = pd.DataFrame({"a": b + 0.3 * rng.normal(size=300), "b": b})
    frame["kind"] = np.where(rng.random(300) < 0.7, "low", "high")

    def predict(X: pd.DataFrame) -> Normal:
        raised = np.where(X["kind"] == "high", 2.0, 0.0)
        return Normal((-X["a"] + 5 * X["b"] + raised).to_numpy(), np.ones(len(X)))

    found = {e.name: e.direction for e in feature_effects(predict, frame, random_state=0)}
    assert found == {"a": "falls with it", "b": "rises with it", "kind": "highest for high"}


def test_rounding_is_no_effect() -> None:
    """A row's prediction differs in its last digits from batch to batch."""

    def predict(X: pd.DataFrame) -> Normal:
        tiny = 1e-9 * (X["idle"] - X["idle"].iloc[0])
        return Normal((100 + X["used"] + tiny).to_numpy(), np.full(len(X), 2.0))

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"used": rng.normal(size=60), "idle": rng.normal(size=60)})
    used, idle = feature_effects(predict, frame, random_state=0)
    assert used.mean > 0.1
    assert (idle.name, idle.mean, idle.uncertainty) == ("idle", 0.0, 0.0)


def test_columns_that_no_model_looks_at_need_no_prediction() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"idle": rng.normal(size=60), "used": rng.normal(size=60)})
    asked: list[pd.DataFrame] = []

    def predict(X: pd.DataFrame) -> Normal:
        asked.append(X)
        return Normal(X["used"].to_numpy(), np.ones(len(X)))

    used, idle = feature_effects(predict, frame, unused=["idle"], random_state=0)
    assert (used.name, used.direction) == ("used", "rises with it")
    assert (idle.name, idle.mean, idle.uncertainty) == ("idle", 0.0, 0.0)
    assert all(X["idle"].tolist() == frame["idle"].tolist() * (len(X) // 60) for X in asked)


def test_a_line_without_skill_is_no_narrower_than_no_model() -> None:
    """Both intervals are made alike, also where the target is skewed."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    frame["y"] = np.exp(1.5 * rng.normal(size=400))
    use = fit_table(table_model(effort="quick", time_budget=1e-3), frame, "y").use
    assert use.linear == pytest.approx(use.without_model, rel=0.1)


def test_a_line_that_knows_nothing_of_censored_rows_is_not_compared_with() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=120)})
    frame["y"] = frame["a"] + 0.3 * rng.normal(size=120)
    frame["least"] = np.where(frame["y"] > 1, 1.0, np.nan)
    frame.loc[frame["y"] > 1, "y"] = np.nan
    model = table_model(effort="quick", time_budget=1e-3)
    assert fit_table(model, frame, "y", y_lower="least").use.linear is None
