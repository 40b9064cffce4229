"""Stacks: each once, whole, and never under other settings; real networks on real rows, small."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accord.datasets import load
from accord.paper import Study
from accord.paper.expansion import expansion, loss, population_std
from accord.paper.results import Results
from accord.paper.sets import TOY_GRID, folds, target_shift
from accord.paper.stacks import (
    Cell,
    Record,
    RecordStore,
    Stack,
    cells_of,
    missing,
    records_of,
    run_stack,
    stacks_of,
)
from accord.paper.study import AS_PRINTED, SMOOTHED, Group, Predictive, Protocol, Source, StudyModel
from accord.splits import standard_splits

BOTH = (AS_PRINTED, SMOOTHED)
ONE = StudyModel("A", "r", "BVMRegressor", {"epochs": 40, "hidden": (50,)})
TWO = StudyModel(
    "B", "r", "BVMRegressor", {"epochs": 40}, BOTH, for_dataset={"yacht": {"epochs": 80}}
)
PLANNED = Protocol("standard", ("boston", "yacht"), splits=4, quick_splits=2)
FIRST, SECOND = Group("base", "first", PLANNED, (ONE,)), Group("base", "second", PLANNED, (TWO,))


def study(*groups: Group) -> Study:
    return Study("made-up", "", "", "", (), groups, lambda results: [], lambda results: [])


def planned(*groups: Group, quick: bool = False) -> list[Stack]:
    return stacks_of([study(*groups)], quick=quick)


def fill(store: RecordStore, stacks: list[Stack]) -> None:
    for stack in stacks:
        for *_, cell in cells_of(stack):
            store.put(cell, record(cell))


def record(cell: Cell) -> Record:
    return Record(cell.source, cell.dataset, cell.split, {"nll": 0.0})


class TestPlan:
    def test_shared_groups_are_planned_once(self) -> None:
        stacks = stacks_of([study(FIRST, SECOND), study(SECOND)], quick=False)
        labels = [stack.label for stack in stacks]
        assert len(labels) == len(set(labels)) == 8
        assert "base · boston · second · splits 0–1" in labels
        assert "base · boston · second · splits 2–3" in labels

    def test_a_quick_runs_records_serve_the_full_one(self) -> None:
        def keys(quick: bool) -> set[str]:
            return {
                c.key for stack in planned(FIRST, SECOND, quick=quick) for *_, c in cells_of(stack)
            }

        assert keys(True) < keys(False)

    def test_settings_on_a_dataset(self) -> None:
        assert TWO.settings_on("yacht")["epochs"] == 80
        assert TWO.settings_on("boston")["epochs"] == 40

    def test_a_stack_that_lacks_a_record_is_left_as_a_whole(self, tmp_path: Path) -> None:
        store, stacks = RecordStore(tmp_path), planned(SECOND)
        assert missing(stacks, store) == (sorted(stacks, key=lambda s: -s.cost), [])
        fill(store, stacks)
        assert missing(stacks, store) == ([], [])
        [lost, *_] = [path for path in store.paths() if "smoothed-03" in path.name]
        lost.unlink()
        [left], _ = missing(stacks, store)
        assert left.splits == (2, 3)

    def test_a_malformed_record_is_named_and_set_aside(self, tmp_path: Path) -> None:
        store, stacks = RecordStore(tmp_path), planned(FIRST)
        fill(store, stacks)
        victim = next(store.paths())
        victim.write_text('{"key": 3, "record": {"source": []}}')
        left, aside = missing(stacks, store)
        assert len(left) == 1
        assert aside == [victim.with_suffix(".malformed")]
        assert not victim.exists()

    def test_long_stacks_are_cut_and_nothing_is_lost(self) -> None:
        settings = {"epochs": 400, "hidden": (50,), "tolerance": "local", "n_members": 50}
        long = StudyModel("L", "r", "BVMRegressor", settings)
        protocol = replace(PLANNED, datasets=("naval", "yacht"), splits=20)
        parts = planned(Group("base", "long", protocol, (long,)))
        naval = [stack.splits for stack in parts if stack.dataset == "naval"]
        assert len(naval) > 2
        assert sorted(split for splits in naval for split in splits) == list(range(20))
        yacht = [stack.splits for stack in parts if stack.dataset == "yacht"]
        assert yacht == [(0, 1), tuple(range(2, 20))]

    def test_what_the_first_split_chooses_is_not_cut_off(self) -> None:
        settings = {"epochs": 4000, "n_members": 50}
        long = StudyModel("L", "r", "MCDropoutRegressor", settings, chosen_once=("precision",))
        protocol = replace(PLANNED, datasets=("naval",), splits=20)
        assert len(planned(Group("base", "long", protocol, (long,)))) == 1

    @pytest.mark.parametrize(
        "changed",
        [
            replace(FIRST, models=(replace(ONE, settings={**ONE.settings, "epochs": 41}),)),
            replace(FIRST, models=(replace(ONE, settings={**ONE.settings, "hidden": (51,)}),)),
            replace(FIRST, models=(replace(ONE, held_out=0.2),)),
            replace(
                FIRST, models=(replace(ONE, predictives=(Predictive("plain", {}, "layers"),)),)
            ),
            replace(FIRST, models=(replace(ONE, estimator="DeepEnsembleRegressor"),)),
            replace(FIRST, models=(replace(ONE, chosen_once=("epochs",)),)),
            replace(
                FIRST, models=(replace(ONE, predictives=(Predictive("plain", {"combine": "x"}),)),)
            ),
            replace(FIRST, protocol=replace(PLANNED, scheme="outlier")),
            replace(FIRST, protocol=replace(PLANNED, keep_predictions=True)),
        ],
    )
    def test_a_changed_setting_never_reuses_a_record(self, changed: Group, tmp_path: Path) -> None:
        store, stacks = RecordStore(tmp_path), planned(FIRST)
        fill(store, stacks)
        for stack in stacks:
            assert missing([replace(stack, group=changed)], store)[0]

    def test_changed_code_or_company_never_reuses_a_record(self, tmp_path: Path) -> None:
        store, stacks = RecordStore(tmp_path), planned(FIRST)
        fill(store, stacks)
        for stack in stacks:
            assert missing([replace(stack, code="other")], store)[0]
            assert missing([replace(stack, splits=stack.splits[:1])], store)[0]

    def test_the_longest_come_first(self, tmp_path: Path) -> None:
        costs = [stack.cost for stack in missing(planned(FIRST, SECOND), RecordStore(tmp_path))[0]]
        assert costs == sorted(costs, reverse=True)
        assert costs[0] > costs[-1]


BVM = StudyModel(
    "BVM",
    "small",
    "BVMRegressor",
    {"n_members": 2, "epochs": 3, "tolerance": "20%", "hidden": (8,)},
    BOTH,
)
DEEP = StudyModel(
    "Deep Ensembles",
    "small",
    "DeepEnsembleRegressor",
    {"n_members": 3, "epochs": 3, "hidden": (8,)},
)
DROPOUT = StudyModel(
    "MC-dropout",
    "small",
    "MCDropoutRegressor",
    {"epochs": 3, "hidden": (8,), "dropout_rate": (0.05, 0.2), "precision": (1.0, 5.0)},
    chosen_once=("dropout_rate", "precision"),
)
PROTOCOL = Protocol("standard", ("diabetes",), splits=3, quick_splits=1)
STACK = Stack(Group("small", "ensembles", PROTOCOL, (BVM, DEEP)), "diabetes", (0, 1), "code")
CHOOSING = replace(STACK, group=Group("small", "dropout", PROTOCOL, (DROPOUT,)))


def run_in(folder: Path, stack: Stack) -> Results:
    run_stack(stack, RecordStore(folder))
    return Results(records_of([stack], RecordStore(folder)))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_in(tmp_path_factory.mktemp("records"), STACK)


def of(results: Results, method: str, predictive: str = "plain") -> list[Record]:
    return results.at("diabetes", Source("small", method, "small", predictive))


def test_every_cell_has_its_record(results: Results) -> None:
    assert len(results.records) == len(list(cells_of(STACK))) == 6
    for record in results.records:
        assert all(math.isfinite(value) for value in record.measures.values())


def test_one_training_serves_both_predictives(results: Results) -> None:
    """Same means; the smoothed predictive is wider by ε²/3 of the range."""
    for model, smoothed in zip(
        of(results, "BVM", AS_PRINTED.name), of(results, "BVM", "smoothed"), strict=True
    ):
        assert model.measures["rmse"] == smoothed.measures["rmse"]
        assert model.measures["width95"] < smoothed.measures["width95"]


def test_networks_are_counted_once(results: Results) -> None:
    assert results.networks("small") == 2 * (2 + 3)
    assert results.seconds("small") > 0


def test_splits_are_the_literatures(results: Results) -> None:
    y = load("diabetes").y
    train, test = standard_splits(len(y), 2)[1]
    record = of(results, "BVM", AS_PRINTED.name)[1]
    assert record.measures["mean_shift"] == target_shift(y[train], y[test])["mean_shift"]
    assert record.measures["n_test"] == len(test)


def test_the_shift_of_targets_has_no_unit() -> None:
    generator = np.random.default_rng(1)
    train, test = generator.normal(size=40), generator.normal(1, 2, size=30)
    here, there = target_shift(train, test), target_shift(3 - 7 * train, 3 - 7 * test)
    assert there["mean_shift"] == pytest.approx(-here["mean_shift"])
    assert there["variance_shift"] == pytest.approx(here["variance_shift"])


def test_a_split_does_not_depend_on_its_company(results: Results, tmp_path: Path) -> None:
    alone = run_in(tmp_path, replace(STACK, splits=(1,)))
    for method, variant in (("BVM", SMOOTHED.name), ("Deep Ensembles", "plain")):
        one, two = of(results, method, variant)[1], of(alone, method, variant)[0]
        assert one.measures == pytest.approx(two.measures, rel=1e-4)


def test_a_lost_record_comes_back_with_the_same_numbers(tmp_path: Path) -> None:
    """Trained again as part of the same stack, to the last digit."""
    store = RecordStore(tmp_path)
    run_stack(STACK, store)
    before = {cell.key: store.get(cell) for *_, cell in cells_of(STACK)}
    lost = next(path for path in store.paths() if "deep-ensembles" in path.name)
    lost.unlink()
    [left], _ = missing([STACK], store)
    run_stack(left, store)
    for *_, cell in cells_of(STACK):
        old, new = before[cell.key], store.get(cell)
        assert old is not None
        assert new is not None
        assert (new.measures, new.curves) == (old.measures, old.curves)


class TestHeldOut:
    def test_one_training_is_calibrated_on_rows_that_it_did_not_see(self, tmp_path: Path) -> None:
        """The spread of an MSE ensemble is far too small; one factor mends that, the mean stays."""
        predictives = (
            Predictive("plain"),
            Predictive("scaled", recalibration="variance"),
            Predictive("layers", recalibration="layers"),
        )
        model = replace(
            DEEP, estimator="MSEEnsembleRegressor", predictives=predictives, held_out=0.3
        )
        stack = replace(STACK, group=Group("small", "held out", PROTOCOL, (model,)))
        results = run_in(tmp_path, stack)
        assert results.networks("small") == 2 * 3, "trained once for all three"
        plain, scaled, layers = (
            of(results, "Deep Ensembles", p.name)[0].measures for p in predictives
        )
        assert scaled["rmse"] == pytest.approx(plain["rmse"])
        assert max(scaled["nll"], layers["nll"]) < plain["nll"] - 1

    def test_held_out_rows_do_not_train(self, tmp_path: Path) -> None:
        group = Group("small", "held out", PROTOCOL, (replace(DEEP, held_out=0.3),))
        fewer, every = (
            of(run_in(tmp_path, stack), "Deep Ensembles")[0].measures["rmse"]
            for stack in (replace(STACK, group=group), STACK)
        )
        assert fewer != every


class TestChosenOnce:
    def test_first_split_chooses_for_all(self, tmp_path: Path) -> None:
        stack = replace(CHOOSING, splits=(0, 1, 2))
        results = run_in(tmp_path, stack)
        notes = [record.notes for record in of(results, "MC-dropout")]
        assert notes[0]["dropout_rate"] in (0.05, 0.2)
        assert notes[0] == notes[1] == notes[2]
        assert results.networks("small") >= 4 + 3, "a grid of four, and a network per split"

    def test_choice_is_found_again_in_the_record(self, tmp_path: Path) -> None:
        store = RecordStore(tmp_path)
        before = run_in(tmp_path, CHOOSING)
        [lost] = [path for path in store.paths() if "-01-" in path.name]
        lost.unlink()
        after = run_in(tmp_path, CHOOSING)
        assert after.networks("small") == 2, "no search again"
        for one, two in zip(of(before, "MC-dropout"), of(after, "MC-dropout"), strict=True):
            assert one.measures == two.measures


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
