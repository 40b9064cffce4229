"""Anybody's predictions against the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from accord._files import OptionError
from accord.distributions import Normal
from accord.metrics import summary
from accord.tables import TableError
from accord.workflows import validate_predictions


@pytest.fixture
def predictions() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=500)
    return pd.DataFrame(
        {"y": mean + rng.normal(0, 0.5, 500), "m": mean, "s": 0.5, "lo": mean - 1, "hi": mean + 1}
    )


def test_agreement_is_the_probability_that_the_model_lands_near_the_truth(
    predictions: pd.DataFrame,
) -> None:
    result = validate_predictions(predictions, truth="y", mean="m", std="s", rule="within 0.5")
    z = (predictions["y"] - predictions["m"]) / 0.5
    expected = norm.cdf(z + 1) - norm.cdf(z - 1)
    np.testing.assert_allclose(result.agreement.probability, expected, rtol=1e-6)
    assert result.found is not None
    assert result.belief is not None
    assert result.belief.level == "good"
    assert result.belief.headline.startswith("The stated uncertainty can be believed")
    assert result.belief.remarks == result.verdict.remarks == ()


def test_overconfidence_is_called_so(predictions: pd.DataFrame) -> None:
    bold = predictions.assign(s=0.1)
    result = validate_predictions(bold, truth="y", mean="m", std="s", rule="within 0.5")
    assert result.belief is not None
    assert result.belief.level == "poor"
    assert "too small" in result.belief.headline
    assert "accord.guard(model)" in result.belief.remarks[0]


def test_values_without_uncertainty_agree_or_not(predictions: pd.DataFrame) -> None:
    result = validate_predictions(predictions, truth="y", mean="m", rule="within 0.5")
    share = np.mean(np.abs(predictions["y"] - predictions["m"]) <= 0.5)
    assert result.agreement.mean == pytest.approx(share)
    assert result.found is None


def test_rules_over_all_rows(predictions: pd.DataFrame) -> None:
    kept = validate_predictions(predictions, truth="y", mean="m", rule="90% within 1")
    missed = validate_predictions(predictions, truth="y", mean="m", rule="99% within 0.1")
    assert kept.agreement.mean == 1
    assert missed.agreement.mean == 0
    assert missed.verdict.level == "poor"


def test_given_intervals_are_judged(predictions: pd.DataFrame) -> None:
    result = validate_predictions(
        predictions, truth="y", mean="m", lower="lo", upper="hi", rule="within 5%"
    )
    inside = np.abs(predictions["y"] - predictions["m"]) <= 1
    assert result.figures["coverage"] == pytest.approx(inside.mean())
    assert result.found is not None
    assert not result.found.has_density
    with pytest.raises(OptionError, match="both ends"):
        validate_predictions(predictions, truth="y", mean="m", lower="lo", rule="within 1")


def test_an_interval_without_an_end_contains_what_lies_there(predictions: pd.DataFrame) -> None:
    predictions.loc[:99, ["lo", "hi"]] = [-np.inf, np.inf]
    result = validate_predictions(
        predictions, truth="y", mean="m", lower="lo", upper="hi", rule="within 1"
    )
    inside = (np.abs(predictions["y"] - predictions["m"]) <= 1) | (predictions.index < 100)
    assert result.figures["coverage"] == pytest.approx(inside.mean())
    assert result.figures["rows"] == 500
    assert result.warnings == ()
    assert result.use is not None
    assert result.use.level == "poor"  # a mean width without end is of no use


def test_rows_with_gaps_are_left_out(predictions: pd.DataFrame) -> None:
    predictions.loc[0, "m"] = np.nan
    result = validate_predictions(predictions, truth="y", mean="m", std="s", rule="within 1")
    assert result.figures["rows"] == 499
    assert result.warnings == ("1 row with missing values left out.",)


def test_bad_requests(predictions: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match="rule must be"):
        validate_predictions(predictions, truth="y", mean="m", rule="near enough")
    with pytest.raises(OptionError, match="std column 'sigma'"):
        validate_predictions(predictions, truth="y", mean="m", std="sigma", rule="within 1")
    with pytest.raises(TableError, match="must be positive, but column 's' holds 0"):
        validate_predictions(
            predictions.assign(s=0.0), truth="y", mean="m", std="s", rule="within 1"
        )
    with pytest.raises(TableError, match="at least 10 whole rows, got 3"):
        validate_predictions(predictions[:3], truth="y", mean="m", rule="within 1")


def test_the_tick_answers_the_question_asked(predictions: pd.DataFrame) -> None:
    result = validate_predictions(predictions, truth="y", mean="m", std="s", rule="within 0.05")
    assert result.agreement.mean < 0.2
    assert result.verdict.level == "poor"
    assert result.verdict.headline.startswith("The predictions do not agree with the data")
    assert result.belief is not None
    assert result.belief.level == "good"


def test_the_intervals_given_are_judged_not_those_of_the_deviation(
    predictions: pd.DataFrame,
) -> None:
    narrow = predictions.assign(lo=predictions["m"] - 0.3, hi=predictions["m"] + 0.3)
    columns = {"truth": "y", "mean": "m", "rule": "within 1"}
    by_deviation = validate_predictions(narrow, std="s", **columns)
    by_interval = validate_predictions(narrow, std="s", lower="lo", upper="hi", **columns)
    assert by_deviation.belief is not None
    assert by_interval.belief is not None
    assert by_deviation.belief.level == "good"
    assert by_interval.belief.level == "poor"
    with pytest.raises(TableError, match="must not exceed upper ends"):
        validate_predictions(narrow, lower="hi", upper="lo", **columns)


def test_an_agreement_can_be_asked_for(predictions: pd.DataFrame) -> None:
    columns = {"truth": "y", "mean": "m", "rule": "within 0.5"}
    assert validate_predictions(predictions, required=0.6, **columns).failed is False
    failed = validate_predictions(predictions, required=0.9, **columns)
    assert failed.failed
    assert failed.verdict.level == "poor"
    assert "90 % was asked for" in failed.verdict.headline


def test_a_crossed_interval_is_named_by_its_row_in_the_file(predictions: pd.DataFrame) -> None:
    crossed = predictions.assign(lo=predictions["m"] - 1, hi=predictions["m"] + 1)
    crossed.loc[0, "m"] = np.nan
    crossed.loc[6, "hi"] = -1e6
    with pytest.raises(TableError, match=r"lower ends must not exceed upper ends, .* in row 7\."):
        validate_predictions(crossed, truth="y", mean="m", lower="lo", upper="hi", rule="within 1")


def test_figures_agree_with_the_catalogue(predictions: pd.DataFrame) -> None:
    result = validate_predictions(predictions, truth="y", mean="m", std="s", rule="within 1")
    dist = Normal(predictions["m"].to_numpy(), predictions["s"].to_numpy())
    expected = summary(y_true=predictions["y"], dist=dist)
    for name in set(result.figures) - {"agreement"}:
        assert result.figures[name] == pytest.approx(expected[name]), name


def test_the_mark_of_the_uncertainty_says_what_its_sentence_says(
    predictions: pd.DataFrame,
) -> None:
    """Intervals that hold but are wider than the target's own spread are of no use."""
    wide = predictions.assign(s=100 * predictions["y"].std())
    result = validate_predictions(wide, truth="y", mean="m", std="s", rule="within 1")
    assert result.belief is not None
    assert result.belief.level == "poor"
    assert "but the intervals are no narrower than without a model" in result.belief.headline
