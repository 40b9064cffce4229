"""Methods by name: what each trains, which options it has, and what is refused."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from accord._files import OptionError
from accord.estimators import PRESETS, BVMRegressor, DeepEnsembleRegressor
from accord.report import fit_report
from accord.workflows import METHODS, FitResult, fit_table, method_named, table_model


def test_names_are_one_list() -> None:
    keys = [method.key for method in METHODS]
    assert len({*keys, *(m.name for m in METHODS)}) == 2 * len(keys)
    for method in METHODS:
        assert method_named(method.key) is method_named(method.name.upper()) is method


def test_options_are_settings_of_what_is_made() -> None:
    known = {"effort", "time_budget", "bounds", "tolerance", "rule", "predictive", "family"}
    known |= {"hidden", "epochs"}
    for method in METHODS:
        if method.package is None:
            made: Any = method.make(0)
            # a table's tolerance is that of its rows for the portfolio
            rows = {"tolerance"} if method.is_portfolio else set()
            assert known & {*made.get_params(), *rows} == set(method.options)


def test_as_printed_is_the_preset_of_the_paper() -> None:
    engine = table_model("BVM, as printed", random_state=3).engine
    assert isinstance(engine, BVMRegressor)
    settings = engine.get_params()
    assert {name: settings[name] for name in PRESETS["table1"]} == PRESETS["table1"]
    assert settings["random_state"] == 3
    assert settings["rule"] is None


def test_a_rule_takes_the_place_of_the_tolerance() -> None:
    engine: Any = table_model("bvm-paper", rule="within 0.5").engine
    by_preset = BVMRegressor.preset("table1", rule="within 0.5", random_state=0)
    assert engine.get_params() == by_preset.get_params()
    assert engine.tolerance == "local"


def test_options_go_to_the_estimator() -> None:
    engine: Any = table_model("deep-ensemble", hidden=(7,), epochs=3).engine
    assert isinstance(engine, DeepEnsembleRegressor)
    assert (engine.hidden, engine.epochs) == ((7,), 3)
    portfolio = table_model("portfolio", effort="best", coverage=0.9, bounds=None)
    assert (portfolio.engine, portfolio.effort, portfolio.coverage) == (None, "best", 0.9)
    assert (portfolio.bounds, table_model("pbp", bounds=None).bounds) == (None, None)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "option of networks": ({"hidden": (5,)}, r"hidden must be an option.*'portfolio'.*'bvm-paper'"),
    "rule": ({"rule": "within 1"}, r"rule must be an option.*'portfolio'"),
    "effort": (
        {"method": "bvm-paper", "effort": "quick"},
        r"effort must be an option.*'portfolio'",
    ),
    "bounds": ({"method": "pbp", "bounds": (0, None)}, "bounds must be an option"),
    "family": ({"method": "pbp", "family": "laplace"}, r"has 'hidden' and 'epochs'"),
    "both": ({"method": "bvm", "rule": "within 1", "tolerance": 2}, "not both be given"),
    "words": ({"method": "bvm", "rule": "near"}, "known words"),
    "choose": ({"method": "bvm", "tolerance": "choose"}, r"'learn', .*'local', got 'choose'"),
    "learn": ({"tolerance": "learn"}, r"or 'choose', got 'learn'"),
    "negative": ({"method": "bvm", "tolerance": -1.0}, "tolerance must be non-negative"),
    "infinite": ({"tolerance": float("inf")}, "tolerance must be finite"),
    "peer": ({"method": "ngboost"}, "one of accord's own to be saved"),
    "unknown": ({"method": "bvm-papr"}, r"Did you mean 'bvm-paper'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_options_that_do_not_fit_are_refused(case: str) -> None:
    options, words = REFUSED[case]
    with pytest.raises(OptionError, match=words):
        table_model(**options)


@pytest.fixture(scope="module")
def printed(houses: pd.DataFrame) -> FitResult:
    model = table_model("bvm-paper", epochs=1, hidden=(4,), tolerance="2%")
    return fit_table(model, houses, "price")


def test_a_table_is_fitted_and_judged(printed: FitResult) -> None:
    engine: Any = printed.model.engine_
    assert (engine.estimator_.tolerance, engine.estimator_.epochs) == ("2%", 1)
    assert engine.estimator_.predictive == "model"
    assert sorted(printed.held_out.rows) == list(range(1, 151))
    assert len(printed.shifted) == 15
    assert len(printed.distances) == 150
    assert any("trained on all rows" in note for note in printed.notes)
    # nothing widens the method's own predictions
    assert (printed.held_out.distance == 0).all()


def test_the_report_says_what_was_trained(printed: FitResult) -> None:
    page = fit_report(printed)
    assert "What was trained" in page
    assert "What was tried" not in page
    assert "BVMRegressor(" in page
    assert "Nothing was calibrated" in page


class Rounds:
    """In place of NGBoost's regressor: keeps what it is given, and is best after four rounds."""

    best_val_loss_itr = 3

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def fit(self, *rows: np.ndarray, early_stopping_rounds: int) -> None:
        self.rows, self.patience = rows, early_stopping_rounds

    def pred_dist(self, X: np.ndarray, max_iter: int) -> SimpleNamespace:
        self.asked, self.rounds = X, max_iter
        return SimpleNamespace(loc=np.zeros(len(X)), scale=np.ones(len(X)))


def test_boosting_stops_early_on_a_tenth_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ngboost", SimpleNamespace(NGBRegressor=Rounds))
    rng = np.random.default_rng(0)
    X, y = rng.normal(1e6, 10.0, (20, 2)), rng.normal(300.0, 5.0, 20)
    made: Any = method_named("ngboost").make(0)
    dist = made.fit(X, y).predict_dist(X)
    model = made.model
    X_learnt, y_learnt, X_inner, y_inner = model.rows
    assert (len(X_learnt), len(y_learnt), len(X_inner), len(y_inner)) == (18, 18, 2, 2)
    # all rows are there, standardised, once
    targets = sorted([*y_learnt, *y_inner])
    assert targets == pytest.approx(sorted((y - y.mean()) / y.std()), abs=1e-12)
    features = np.concatenate([X_learnt, X_inner])
    assert features.mean(axis=0) == pytest.approx(np.zeros(2), abs=1e-9)
    assert features.std(axis=0) == pytest.approx(np.ones(2))
    assert (model.patience, model.rounds) == (50, 4)
    # what is foreseen as standard is the targets' own mean and deviation
    assert np.asarray(dist.mean) == pytest.approx(np.full(20, y.mean()))
    assert np.asarray(dist.std) == pytest.approx(np.full(20, y.std()))


@pytest.mark.parametrize("name", ["ngboost", "catboost"])
@pytest.mark.parametrize("n_rows", [5, 20, 60])
def test_boosting_of_few_rows_does_not_depend_on_units(name: str, n_rows: int) -> None:
    pytest.importorskip(name)
    rng = np.random.default_rng(n_rows)
    X, y = rng.normal(size=(n_rows, 3)), rng.normal(size=n_rows)  # nothing can be learnt
    unit = 2.0**20  # which rounds nothing
    plain, other = (
        method_named(name).make(1).fit(X, targets).predict_dist(X) for targets in (y, unit * y)
    )
    assert np.asarray(other.mean) == pytest.approx(unit * np.asarray(plain.mean))
    assert np.asarray(other.std) == pytest.approx(unit * np.asarray(plain.std))
    if n_rows == 60:  # without early stopping the training rows are known by heart
        assert np.median(np.asarray(plain.std)) > 0.3
