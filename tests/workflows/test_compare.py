"""All methods on the same rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from accord._files import OptionError
from accord.distributions import Normal
from accord.report import compare_report
from accord.workflows import METHODS, CompareResult, Method, compare_methods


@pytest.fixture(scope="module")
def compared(houses: pd.DataFrame) -> CompareResult:
    return compare_methods(
        houses, target="price", n_splits=2, methods=["Deep ensemble", "mse ensemble"]
    )


def test_all_methods_are_there_and_judged_on_the_same_rows(compared: CompareResult) -> None:
    names = [score.method for score in compared.ranked("random")]
    assert set(names) == {"Deep ensemble", "MSE ensemble"}
    for kind in ("random", "unusual"):
        rows = [list(compared.assessments[name, kind].rows) for name in names]
        assert all(found == rows[0] for found in rows)


def test_one_table_and_a_conclusion(compared: CompareResult, tmp_path: Path) -> None:
    header, rows = compared.table("unusual")
    assert header[0] == "unusual rows"
    assert len(rows) == 2
    assert all(len(row) == len(header) for row in rows)
    assert "±" in rows[0][1]
    scores = [score.figures["nll"] for score in compared.ranked("random")]
    assert scores == sorted(scores)
    best = compared.ranked("random")[0].method
    assert best in compared.conclusion()
    compared.write_scores(tmp_path / "scores.csv")
    assert len(pd.read_csv(tmp_path / "scores.csv")) == 2 * len(rows)
    assert len(compared.to_json()["scores"]) == 2 * len(rows)


def test_unknown_methods_are_named(houses: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match=r"got 'NGBost'\. Did you mean 'ngboost'\?"):
        compare_methods(houses, target="price", methods=["NGBost"])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_predicts_a_distribution(method: object) -> None:
    assert isinstance(method, Method)
    if not method.installed:
        pytest.skip(f"{method.package} is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = method.make(0)
    shortened = {"NGBoost": {"n_estimators": 5}, "CatBoost": {"iterations": 50}, "Portfolio": {}}
    getattr(model, "model", model).set_params(**shortened.get(method.name, {"epochs": 2}))
    model.fit(X, X[:, 0] + rng.normal(0, 0.1, 60))
    dist = model.predict_dist(X[:5])
    assert dist.shape == (5,)
    assert np.all(np.asarray(dist.std) > 0)
    assert np.isfinite(np.asarray(dist.log_prob(X[:5, 0]))).all()


def test_peers_that_are_not_installed_are_named(
    houses: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.workflows.methods.find_spec", lambda name: None)
    result = compare_methods(
        houses, target="price", n_splits=1, methods=["MSE ensemble", "CatBoost"]
    )
    assert result.absent == ("CatBoost",)
    assert "Not installed: CatBoost." in result.conclusion()


class Marginal:
    """The throw-away method of CONTRIBUTING: the training targets' own distribution."""

    def fit(self, X: Any, y: Any) -> "Marginal":
        self.mean, self.std = float(np.mean(y)), float(np.std(y))
        return self

    def predict_dist(self, X: Any) -> Normal:
        return Normal(np.full(len(X), self.mean), self.std)


class Broken(Marginal):
    def fit(self, X: Any, y: Any) -> "Broken":
        raise ImportError("libsomething.so is missing")


def test_a_method_is_one_entry_and_a_failing_one_is_a_row(
    houses: pd.DataFrame, tmp_path: Path
) -> None:
    result = compare_methods(
        houses,
        target="price",
        n_splits=2,
        methods=[
            Method("Broken", "always fails", lambda seed: Broken()),
            Method("Marginal", "no model at all", lambda seed: Marginal()),
        ],
    )
    assert [score.method for score in result.ranked("random")] == ["Marginal"]
    assert result.failures == {"Broken": "ImportError: libsomething.so is missing"}
    assert result.table("random")[1][-1][:2] == ["Broken", "– failed"]
    assert "Broken failed: ImportError" in result.conclusion()
    result.write_scores(tmp_path / "scores.csv")
    assert list(pd.read_csv(tmp_path / "scores.csv")["method"]) == [
        *("Marginal", "Marginal", "Broken")
    ]
    assert "failed" in compare_report(result)


def test_a_single_split_has_no_error_and_no_equals(houses: pd.DataFrame) -> None:
    method = Method("Marginal", "no model at all", lambda seed: Marginal())
    result = compare_methods(houses, target="price", n_splits=1, methods=[method])
    assert "±" not in result.table("random")[1][0][1]
    assert result.level_with_best("random") == []
