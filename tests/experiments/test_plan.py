"""The plan: each stack once, only what is missing, and nothing old under new settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from accord.experiments.descriptions import Model, Reading, Shared, Study
from accord.experiments.plan import Stack, cells_of, missing, stacks_of
from accord.experiments.records import Cell, Record, RecordStore

ONE = Model("A", "BVMRegressor", "first", {"epochs": 40, "hidden": (50,)}, (Reading("v"),))
TWO = Model(
    "B",
    "BVMRegressor",
    "second",
    {"epochs": 40},
    (Reading("model", {"predictive": "model"}), Reading("smoothed", {"predictive": "smoothed"})),
    for_dataset={"yacht": {"epochs": 80}},
)
BASE = Study("base", "", "", "standard", ("boston", "yacht"), (ONE, TWO), 4, 2)
SHARING = replace(BASE, name="sharing", models=(ONE,), shares=(Shared("base", ("second",)),))


def record(cell: Cell) -> Record:
    return Record(cell.study, cell.dataset, cell.method, cell.variant, cell.split, {"nll": 0.0})


def planned(*studies: Study, quick: bool = False, code: str = "c") -> list[Stack]:
    return stacks_of(studies, (BASE, SHARING), quick=quick, code=code)


def test_shared_groups_are_planned_once() -> None:
    labels = [stack.label for stack in planned(BASE, SHARING)]
    assert len(labels) == len(set(labels)) == 6
    alone = {stack.label for stack in planned(SHARING)}
    assert {"base · boston · second · splits 0–3", "sharing · boston · first · splits 0–3"} <= alone
    assert not any(label.startswith("base · boston · first") for label in alone)


def test_quick_is_fewer_splits_of_the_same_cells() -> None:
    def keys(quick: bool) -> set[str]:
        stacks = planned(BASE, quick=quick)
        return {cell.key for stack in stacks for *_, cell in cells_of(stack)}

    assert keys(True) < keys(False), "a quick run's records serve the full one"


def test_settings_on_a_dataset() -> None:
    assert TWO.settings_on("yacht")["epochs"] == 80
    assert TWO.settings_on("boston")["epochs"] == 40


def test_only_what_is_missing_is_left(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    stacks = planned(BASE)
    assert len(missing(stacks, store)) == len(stacks)
    done = next(s for s in stacks if (s.dataset, s.group) == ("boston", "second"))
    for _, reading, cell in cells_of(done):
        if not (reading.variant == "smoothed" and cell.split == 3):
            store.put(cell, record(cell))
    place = (done.dataset, done.group)
    left = {(stack.dataset, stack.group): stack for stack in missing(stacks, store)}
    assert left[place].splits == (3,), "a split with one reading missing is trained again"
    for *_, cell in cells_of(done):
        store.put(cell, record(cell))
    assert place not in {(stack.dataset, stack.group) for stack in missing(stacks, store)}


def test_long_stacks_are_cut_and_nothing_is_lost(tmp_path: Path) -> None:
    settings = {"epochs": 400, "hidden": (50,), "tolerance": "local", "n_members": 50}
    long = Model("L", "BVMRegressor", "local", settings)
    study = replace(BASE, datasets=("naval", "yacht"), models=(long,), splits=20)
    parts = missing(planned(study), RecordStore(tmp_path))
    naval = [stack.splits for stack in parts if stack.dataset == "naval"]
    assert len(naval) > 1
    assert sorted(split for splits in naval for split in splits) == list(range(20))
    assert [stack.splits for stack in parts if stack.dataset == "yacht"] == [tuple(range(20))]


def test_what_the_first_split_chooses_is_not_cut_off(tmp_path: Path) -> None:
    long = Model(
        "L", "MCDropoutRegressor", "g", {"epochs": 4000, "n_members": 50}, keeps=("precision",)
    )
    study = replace(BASE, datasets=("naval",), models=(long,), splits=20)
    assert len(missing(planned(study), RecordStore(tmp_path))) == 1


@pytest.mark.parametrize(
    "changed",
    [
        replace(BASE, models=(replace(ONE, settings={**ONE.settings, "epochs": 41}), TWO)),
        replace(BASE, models=(replace(ONE, settings={**ONE.settings, "hidden": (51,)}), TWO)),
        replace(BASE, models=(replace(ONE, fit_options={"y_tolerance": 1.0}), TWO)),
        replace(BASE, models=(replace(ONE, estimator="DeepEnsembleRegressor"), TWO)),
        replace(BASE, models=(replace(ONE, keeps=("epochs",)), TWO)),
        replace(BASE, models=(replace(ONE, readings=(Reading("v", {"combine": "x"}),)), TWO)),
        replace(BASE, scheme="outlier"),
        replace(BASE, keep_predictions=True),
    ],
)
def test_a_changed_setting_never_reuses_a_record(changed: Study, tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    stacks = [stack for stack in planned(BASE) if stack.group == "first"]
    for stack in stacks:
        for *_, cell in cells_of(stack):
            store.put(cell, record(cell))
    assert not missing(stacks, store)
    for stack in stacks:
        assert missing([replace(stack, study=changed)], store)


def test_changed_code_never_reuses_a_record(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    for stack in planned(BASE):
        for *_, cell in cells_of(stack):
            store.put(cell, record(cell))
    assert not missing(planned(BASE), store)
    assert len(missing(planned(BASE, code="other"), store)) == 4


def test_the_dearest_come_first(tmp_path: Path) -> None:
    costs = [stack.cost for stack in missing(planned(BASE), RecordStore(tmp_path))]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]
