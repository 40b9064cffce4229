"""A stack: real networks on real rows, small."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accord.datasets import load
from accord.experiments.descriptions import Model, Reading, Study
from accord.experiments.expansion import expansion, loss, population_std
from accord.experiments.folds import TOY_GRID, folds
from accord.experiments.plan import Stack, cells_of
from accord.experiments.records import Record, RecordStore
from accord.experiments.results import Results
from accord.experiments.stacks import run_stack
from accord.splits import shift, standard_splits

READINGS = (
    Reading("model", {"predictive": "model"}),
    Reading("smoothed", {"predictive": "smoothed"}),
)
BVM = Model(
    "BVM",
    "BVMRegressor",
    "ensembles",
    {"n_members": 2, "epochs": 3, "tolerance": 0.2, "hidden": (8,)},
    READINGS,
)
DEEP = Model(
    "Deep Ensembles",
    "DeepEnsembleRegressor",
    "ensembles",
    {"n_members": 3, "epochs": 3, "hidden": (8,)},
)
DROPOUT = Model(
    "MC-dropout",
    "MCDropoutRegressor",
    "dropout",
    {"epochs": 3, "hidden": (8,), "dropout_rate": (0.05, 0.2), "precision": (1.0, 5.0)},
    keeps=("dropout_rate", "precision"),
)
STUDY = Study("small", "", "", "standard", ("diabetes",), (BVM, DEEP, DROPOUT), 3, 1)
STACK = Stack(STUDY, "diabetes", "ensembles", (0, 1), "code")


def run_in(folder: Path, stack: Stack) -> Results:
    run_stack(stack, RecordStore(folder))
    return Results.of([stack], RecordStore(folder))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_in(tmp_path_factory.mktemp("records"), STACK)


def of(results: Results, method: str, variant: str = "plain") -> list[Record]:
    return list(results.at("small", "diabetes", method, variant))


def test_every_cell_has_its_record(results: Results) -> None:
    assert len(results.records) == len(list(cells_of(STACK))) == 6
    for record in results.records:
        assert all(math.isfinite(value) for value in record.measures.values())


def test_one_training_serves_both_readings(results: Results) -> None:
    """Same means; the smoothed predictive is wider by ε²/3 of the range."""
    for model, smoothed in zip(
        of(results, "BVM", "model"), of(results, "BVM", "smoothed"), strict=True
    ):
        assert model.measures["rmse"] == smoothed.measures["rmse"]
        assert model.measures["width95"] < smoothed.measures["width95"]


def test_networks_are_counted_once(results: Results) -> None:
    assert results.networks("small") == 2 * (2 + 3)
    assert results.seconds("small") > 0


def test_splits_are_the_literatures(results: Results) -> None:
    y = load("diabetes").y
    train, test = standard_splits(len(y), 2)[1]
    record = of(results, "BVM", "model")[1]
    assert record.measures["mean_shift"] == pytest.approx(shift(y[train], y[test]).mean)
    assert record.measures["n_test"] == len(test)


def test_a_split_does_not_depend_on_its_company(results: Results, tmp_path: Path) -> None:
    alone = run_in(tmp_path, replace(STACK, splits=(1,)))
    for method, variant in (("BVM", "smoothed"), ("Deep Ensembles", "plain")):
        one, two = of(results, method, variant)[1], of(alone, method, variant)[0]
        assert one.measures == pytest.approx(two.measures, rel=1e-4)


class TestKeptChoices:
    def test_first_split_chooses_for_all(self, tmp_path: Path) -> None:
        stack = replace(STACK, group="dropout", splits=(0, 1, 2))
        results = run_in(tmp_path, stack)
        notes = [record.notes for record in of(results, "MC-dropout")]
        assert notes[0]["dropout_rate"] in (0.05, 0.2)
        assert notes[0] == notes[1] == notes[2]
        assert results.networks("small") >= 4 + 3, "a grid of four, and a network per split"

    def test_choice_is_found_again_in_the_record(self, tmp_path: Path) -> None:
        together = run_in(tmp_path / "a", replace(STACK, group="dropout", splits=(0, 1)))
        first = replace(STACK, group="dropout", splits=(0,))
        run_stack(first, RecordStore(tmp_path / "b"))
        second = run_in(tmp_path / "b", replace(first, splits=(1,)))
        assert second.networks("small") == 1, "no search again"
        one, two = of(together, "MC-dropout")[1], of(second, "MC-dropout")[0]
        assert one.measures == pytest.approx(two.measures, rel=1e-4)


class TestFolds:
    def test_toy_is_tested_beyond_its_data(self) -> None:
        one, two = folds("cubic", "toy", [0, 1])
        assert np.abs(one.X_train).max() <= 4 < np.abs(one.X_test).max()
        assert not np.array_equal(one.X_train, two.X_train)
        noise = one.y_test - TOY_GRID**3
        assert 2 < noise.std() < 4

    def test_outliers_by_forest_number(self, data_folder: Path) -> None:
        [third] = folds("yacht", "outlier", [2])
        _, again = folds("yacht", "outlier", [1, 2])
        np.testing.assert_array_equal(third.X_test, again.X_test)
        assert len(third.y_test) == 31

    def test_stocks_have_their_own_test_rows(self, data_folder: Path) -> None:
        [fold] = folds("google", "holdout", [4])
        assert fold.X_train.shape == (1198, 60)
        assert fold.X_test.shape == (20, 60)

    def test_sets_without_test_rows_are_refused(self) -> None:
        with pytest.raises(ValueError, match="test rows of its own, got 'diabetes'"):
            folds("diabetes", "holdout", [0])


class TestExpansion:
    def test_error_is_of_fourth_order(self) -> None:
        z = np.linspace(0, 3, 13)
        coarse, fine = (np.abs(expansion(z, eps) - loss(z, eps)).max() for eps in (0.1, 0.05))
        assert coarse / fine == pytest.approx(16, rel=0.05)

    @pytest.mark.parametrize(("eps", "variance"), [(0.5, 0.917), (1.0, 0.673), (1.5, 0.383)])
    def test_population_optimum(self, eps: float, variance: float) -> None:
        assert population_std(eps) ** 2 == pytest.approx(variance, abs=6e-4)
        assert population_std(3 * eps, noise=3.0) == pytest.approx(
            3 * population_std(eps), rel=1e-4
        )
