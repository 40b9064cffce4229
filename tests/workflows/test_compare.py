"""All methods on the same rows."""

import sys
from dataclasses import replace
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
    assert f"random rows: {best}" in compared.conclusion() or f"unusual rows: {best}" in (
        compared.conclusion()
    )
    assert "One split" not in compared.conclusion()
    assert "One split of each kind cannot tell" in replace(compared, n_splits=1).headline()
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
    with pytest.raises(OptionError, match=r"got 'catboost'. Run: pip install catboost"):
        compare_methods(houses, target="price", methods=["catboost"])


def test_peers_that_cannot_be_imported_are_reported(
    houses: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.workflows.methods.find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "catboost", None)  # its import is an error
    result = compare_methods(
        houses, target="price", n_splits=1, methods=["MSE ensemble", "CatBoost"]
    )
    assert result.failures["CatBoost"].startswith("ModuleNotFoundError: import of catboost")
    assert {score.method for score in result.scores} == {"MSE ensemble"}


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    """Four rows of each of 30 patients, a day apart."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "patient": np.repeat([f"P{number}" for number in range(30)], 4),
            "day": np.arange(120.0),
            "site": rng.choice([12.0, 7.0, 3.0], 120),
            "weight": rng.normal(70, 8, 120).round(1),
        }
    )
    frame["dose"] = frame["weight"] / 10 + rng.normal(0, 0.5, 120).round(2)
    return frame


def held_out(table: pd.DataFrame, **how: Any) -> tuple[CompareResult, pd.DataFrame, pd.DataFrame]:
    """What a comparison with a single random split has tested, and trained on."""
    method = Method("Marginal", "no model at all", lambda seed: Marginal())
    found = compare_methods(table, target="dose", n_splits=1, methods=[method], **how)
    tested = np.isin(np.arange(1, len(table) + 1), found.assessments["Marginal", "random"].rows)
    return found, table[tested], table[~tested]


def test_rows_of_a_group_are_held_out_together(visits: pd.DataFrame) -> None:
    _, test, train = held_out(visits, group="patient")
    assert len(test) == 12
    assert not set(test["patient"]) & set(train["patient"])


def test_copies_of_a_row_are_held_out_together(visits: pd.DataFrame) -> None:
    plain = visits.drop(columns="patient").assign(day=0.0, age=visits["weight"])
    found, test, train = held_out(pd.concat([plain, plain.head(8)], ignore_index=True))
    assert not set(test["weight"] * 1e3 + test["dose"]) & set(train["weight"] * 1e3 + train["dose"])
    assert any("8 rows repeat another one" in note for note in found.notes)


def test_rows_are_held_out_in_stretches_of_time(visits: pd.DataFrame) -> None:
    found, test, _ = held_out(visits, time="day")
    assert np.ptp(test["day"]) == len(test) - 1 == 11
    assert "Random rows are stretches of time, by 'day'." in found.notes


def test_few_groups_make_few_splits(visits: pd.DataFrame) -> None:
    method = Method("Marginal", "no model at all", lambda seed: Marginal())
    halves = visits.assign(half=np.where(visits["day"] < 60, "first", "second"))
    found = compare_methods(halves, target="dose", group="half", methods=[method])
    assert found.n_splits == 2
    assert "2 splits of each kind: for 3, the rows or their groups are too few." in found.notes
    crowded = compare_methods(halves.head(30), target="dose", n_splits=20, methods=[method])
    assert crowded.n_splits == 15


def test_columns_are_read_as_in_a_fit(visits: pd.DataFrame) -> None:
    found, *_ = held_out(visits, category=["site"], group="patient")
    told, *_ = held_out(visits)
    assert any("'patient' looks like" in note for note in told.notes)
    assert not any("'patient' looks like" in note for note in found.notes)
    with pytest.raises(OptionError, match="group column 'patients' is not in"):
        held_out(visits, group="patients")
    with pytest.raises(OptionError, match="used column 'sites' is not in"):
        held_out(visits, category=["sites"])


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
