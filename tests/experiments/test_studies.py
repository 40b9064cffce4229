"""The studies: the printed settings, every claim's cells, and names that fit together."""

import pytest

from accord import estimators
from accord.datasets import names
from accord.experiments.descriptions import Model, Study
from accord.experiments.studies import STUDIES, study_named

MODELS = [
    pytest.param(study, model, id=f"{study.name}-{model.method}-{model.readings[0].variant}")
    for study in STUDIES
    for model in study.models
    if model.estimator
]
NINE = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")


def model_of(study: str, method: str, variant: str) -> Model:
    return next(
        model
        for model in study_named(study).models
        if model.method == method and variant in [reading.variant for reading in model.readings]
    )


@pytest.mark.parametrize(("study", "model"), MODELS)
def test_estimators_take_the_settings(study: Study, model: Model) -> None:
    for dataset in study.datasets:
        settings = model.settings_on(dataset)
        estimator = getattr(estimators, model.estimator)(**settings)
        for reading in model.readings:
            asked = {**settings, **reading.settings}
            assert asked.items() <= estimator.set_params(**reading.settings).get_params().items()


@pytest.mark.parametrize(
    ("study", "method", "variant", "settings"),
    [
        (
            "table1",
            "BVM",
            "printed, model",
            {
                "optimizer": "adamw",
                "learning_rate": 3e-4,
                "batch_size": 32,
                "tolerance": 0.01,
                "hidden": (50,),
            },
        ),
        ("table1", "BVM", "rate 3e-3, smoothed", {"learning_rate": 3e-3, "tolerance": 0.01}),
        (
            "table2",
            "BVM eps=0.1",
            "model",
            {
                "optimizer": "adam",
                "learning_rate": 1e-3,
                "batch_size": 32,
                "tolerance": 0.1,
                "hidden": (50,) * 4,
            },
        ),
        (
            "table3",
            "BVM",
            "model",
            {"optimizer": "adam", "learning_rate": 3e-3, "batch_size": 16, "tolerance": 0.01},
        ),
        ("table3", "BVM", "local", {"tolerance": "local", "predictive": "smoothed"}),
        ("figure1", "BVM", "model", {"hidden": (100,), "n_members": 5}),
        ("figure1", "BVM single", "model", {"hidden": (100,), "n_members": 1}),
    ],
)
def test_settings_to_the_letter(
    study: str, method: str, variant: str, settings: dict[str, object]
) -> None:
    given = model_of(study, method, variant).settings_on("boston")
    assert {name: given[name] for name in settings} == settings


@pytest.mark.parametrize("study", ["table1", "table2", "table3"])
def test_papers_networks(study: str) -> None:
    """Five members, 40 epochs, targets to [0, 1], sigmoid heads, but for our own recipe."""
    for model in study_named(study).models:
        if model.estimator not in ("BVMRegressor", "DeepEnsembleRegressor"):
            continue
        if model.group.startswith("cosine"):
            assert model.settings["schedule"] == "cosine"
        else:
            assert model.settings["n_members"] == 5
            assert model.settings["epochs"] == 40
            assert model.settings["target_scaling"] == "range"
            assert model.settings["mean_head"] == model.settings["variance_head"] == "sigmoid"


@pytest.mark.parametrize(
    ("preset", "study", "variant"),
    [
        ("table1", "table1", "printed, model"),
        ("table1-tuned", "table1", "rate 3e-3, model"),
        ("table3", "table3", "model"),
    ],
)
def test_presets_say_the_same(preset: str, study: str, variant: str) -> None:
    model = model_of(study, "BVM", variant)
    ours = estimators.BVMRegressor(**model.settings, **model.readings[0].settings).get_params()
    theirs = estimators.BVMRegressor.preset(preset).get_params()
    different = {name for name in ours if ours[name] != theirs[name]}
    assert different <= {"combine"}, "how moments are taken is a matter of measuring here"


def test_toy_agrees_within_one() -> None:
    assert model_of("figure1", "BVM", "model").fit_options == {"y_tolerance": 1.0}


def test_protein_is_wider_and_has_five_splits() -> None:
    table1 = study_named("table1")
    assert model_of("table1", "BVM", "printed, model").settings_on("protein")["hidden"] == (100,)
    assert table1.n_splits("protein", "printed", quick=False) == 5
    assert table1.n_splits("boston", "printed", quick=False) == 20
    assert table1.n_splits("boston", "printed", quick=True) < 5


@pytest.mark.parametrize("study", ["table1", "table3", "calibration"])
def test_all_nine_sets(study: str) -> None:
    assert study_named(study).datasets == NINE


def test_at_least_five_outlier_splits() -> None:
    assert all(
        study_named("table3").n_splits(name, group, quick=False) >= 5
        for name in NINE
        for group in ("ensembles", "local")
    )


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_names_fit_together(study: Study) -> None:
    assert set(study.datasets) <= set(names())
    assert set(study.slow_groups) <= set(study.groups)
    for shared in study.shares:
        assert set(shared.groups) <= set(study_named(shared.study).groups)
    cells = [(m.method, r.variant) for m in study.models for r in m.readings]
    assert len(cells) == len(set(cells)), "a record answers one model only"
    for group in study.groups:
        models = [model for model in study.models if model.group == group]
        assert len({model.method for model in models}) == len(models)
        epochs = {model.settings_on(d).get("epochs") for model in models for d in study.datasets}
        assert len(epochs) == 1 or len(models) == 1, "networks are counted by their epochs"


def test_quick_leaves_out_slow_groups_on_large_sets_only() -> None:
    table1 = study_named("table1")
    assert table1.n_splits("naval", "PBP", quick=True) == 0
    assert table1.n_splits("naval", "printed", quick=True) == 1
    assert table1.n_splits("yacht", "PBP", quick=True) == 2


def test_unknown_study_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one of figure1, table1, .*got 'table9'"):
        study_named("table9")
