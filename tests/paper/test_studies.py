"""The studies: the printed settings, every claim's cells, and names that fit together."""

from dataclasses import asdict

import pytest

from accord import estimators
from accord.datasets import names
from accord.estimators import PRESETS, RECIPES
from accord.paper import STUDIES, Study, discussion, study_named, table1, table2, table3, toy
from accord.paper.stacks import stacks_of
from accord.paper.study import AS_PRINTED, LOCAL, SMOOTHED, Group, Source, StudyModel

ALL = {id(group): group for study in STUDIES for group in study.groups}
MODELS = [
    pytest.param(group, model, id=f"{group.study}-{group.name}-{model.method}")
    for group in ALL.values()
    for model in group.models
    if model.estimator
]
NINE = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")


def model_of(source: Source) -> StudyModel:
    [found] = [
        model
        for group in ALL.values()
        for model in group.models
        for predictive in model.predictives
        if Source(group.study, model.method, model.recipe, predictive.name) == source
    ]
    return found


@pytest.mark.parametrize(("group", "model"), MODELS)
def test_estimators_take_the_settings(group: Group, model: StudyModel) -> None:
    for dataset in group.protocol.datasets:
        settings = model.settings_on(dataset)
        estimator = getattr(estimators, model.estimator)(**settings)
        for predictive in model.predictives:
            asked = {**settings, **predictive.settings}
            assert asked.items() <= estimator.set_params(**predictive.settings).get_params().items()


@pytest.mark.parametrize(
    ("source", "settings"),
    [
        (
            table1.bvm("printed", AS_PRINTED),
            {
                "optimizer": "adamw",
                "learning_rate": 3e-4,
                "batch_size": 32,
                "tolerance": "1%",
                "hidden": (50,),
            },
        ),
        (table1.bvm("rate 3e-3", SMOOTHED), {"learning_rate": 3e-3, "tolerance": "1%"}),
        (
            table2.bvm(table2.LARGE, table2.SIGMOID, AS_PRINTED),
            {
                "optimizer": "adam",
                "learning_rate": 1e-3,
                "batch_size": 32,
                "tolerance": "10%",
                "hidden": (50,) * 4,
                "mean_head": "sigmoid",
            },
        ),
        (table2.deep(table2.IDENTITY), {"mean_head": "identity", "hidden": (50,) * 4}),
        (
            table3.bvm(AS_PRINTED),
            {"optimizer": "adam", "learning_rate": 3e-3, "batch_size": 16, "tolerance": "1%"},
        ),
        (table3.bvm(LOCAL), {"tolerance": "local"}),
        (toy.bvm(AS_PRINTED), {"hidden": (100,), "n_members": 5, "target_scaling": "none"}),
        (toy.bvm(AS_PRINTED, method="BVM single"), {"hidden": (100,), "n_members": 1}),
    ],
)
def test_settings_to_the_letter(source: Source, settings: dict[str, object]) -> None:
    given = model_of(source).settings_on("boston")
    assert {name: given[name] for name in settings} == settings


@pytest.mark.parametrize("recipe", ["table1", "table1-protein", "table3", "stocks"])
def test_papers_networks(recipe: str) -> None:
    """Five members, 40 epochs, targets to [0, 1], sigmoid heads, no floor that matters."""
    settings = RECIPES[recipe]
    assert settings["n_members"] == 5
    assert settings["epochs"] == 40
    assert settings["target_scaling"] == "range"
    assert settings["mean_head"] == settings["variance_head"] == "sigmoid"
    assert settings["variance_floor"] <= 1e-30


@pytest.mark.parametrize(
    ("preset", "source"),
    [
        ("table1", table1.bvm("printed", AS_PRINTED)),
        ("table1-tuned", table1.bvm("rate 3e-3", AS_PRINTED)),
        ("stocks", table2.bvm(table2.SMALL, table2.SIGMOID, AS_PRINTED)),
        ("stocks-identity", table2.bvm(table2.SMALL, table2.IDENTITY, AS_PRINTED)),
        ("table3", table3.bvm(AS_PRINTED)),
        ("toy", toy.bvm(AS_PRINTED)),
    ],
)
def test_presets_say_the_same(preset: str, source: Source) -> None:
    model = model_of(source)
    settings = {**model.settings, **AS_PRINTED.settings}
    ours = estimators.BVMRegressor(**settings).get_params()
    theirs = estimators.BVMRegressor.preset(preset).get_params()
    different = {name for name in ours if ours[name] != theirs[name]}
    assert different <= {"combine"}, "how moments are taken is a matter of measuring here"


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_write_tolerances_as_shares_but_for_the_toy(preset: str) -> None:
    assert PRESETS[preset]["tolerance"] == (1.0 if preset == "toy" else "1%")


def test_preset_for_protein_says_the_same() -> None:
    settings = model_of(table1.bvm("printed", AS_PRINTED)).settings_on("protein")
    assert settings.items() <= PRESETS["table1-protein"].items()


def test_toy_agrees_within_one() -> None:
    assert model_of(toy.bvm(AS_PRINTED)).settings["tolerance"] == 1.0


def test_protein_is_wider_in_table_1_only_and_has_five_splits() -> None:
    assert model_of(table1.bvm("printed", AS_PRINTED)).settings_on("protein")["hidden"] == (100,)
    assert model_of(table3.bvm(AS_PRINTED)).settings_on("protein")["hidden"] == (50,)
    assert table1.ENSEMBLES.n_splits("protein", quick=False) == 5
    assert table1.ENSEMBLES.n_splits("boston", quick=False) == 20
    assert table1.ENSEMBLES.n_splits("boston", quick=True) < 5


def test_all_nine_sets() -> None:
    for study in (table1.STUDY, table3.STUDY, study_named("calibration")):
        assert all(group.protocol.datasets == NINE for group in study.groups)


def test_at_least_twenty_forests_where_verdicts_need_them() -> None:
    paper = table3.GROUPS[0]
    assert all(paper.n_splits(d, quick=False) >= 20 for d in NINE)


def test_discussion_differs_from_table_3_in_epsilon_and_rows_only() -> None:
    for rows in (discussion.INSIDE, discussion.OUTSIDE):
        source = discussion.at_tolerance(0.01, rows, AS_PRINTED)
        assert model_of(source).settings == model_of(table3.bvm(AS_PRINTED)).settings
    assert set(discussion.DATASETS) == {"boston", "concrete", "energy", "wine", "yacht"}
    assert discussion.SHARES[-1] == 1.0, "the whole range"


def test_records_answer_one_model_only() -> None:
    sources = [
        (group.study, model.method, model.recipe, predictive.name)
        for group in ALL.values()
        for model in group.models
        for predictive in model.predictives
    ]
    assert len(sources) == len(set(sources))
    for group in ALL.values():
        assert set(group.protocol.datasets) <= set(names())
        epochs = {m.settings_on(d).get("epochs") for m in group.models for d in NINE}
        assert len(epochs) == 1 or len(group.models) == 1, "networks are counted by their epochs"


def test_calibration_trains_only_its_own() -> None:
    alone = stacks_of([study_named("calibration")], quick=True)
    both = stacks_of([study_named("calibration"), table1.STUDY], quick=True)
    shared = {stack.label for stack in stacks_of([table1.STUDY], quick=True)}
    assert {s.label for s in both} == {s.label for s in alone} | shared
    assert len(both) == len({stack.label for stack in both})


def test_quick_leaves_out_slow_groups_on_large_sets_only() -> None:
    pbp = table1.RIVALS[0]
    assert pbp.n_splits("naval", quick=True) == 0
    assert table1.ENSEMBLES.n_splits("naval", quick=True) == 1
    assert pbp.n_splits("yacht", quick=True) == 2


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_departures_are_stated_in_full(study: Study) -> None:
    assert study.departures
    for departure in study.departures:
        assert all(len(text) > 5 for text in asdict(departure).values())


@pytest.mark.parametrize("study", STUDIES[:-1], ids=lambda study: study.name)
def test_the_smoothing_is_stated_wherever_it_is_used(study: Study) -> None:
    assert any("smoothed" in departure.ours for departure in study.departures)


def test_unknown_study_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one of figure1, table1, .*got 'table9'"):
        study_named("table9")
