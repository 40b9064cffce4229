"""Targets with correlated noise: known answers, coverage, persistence, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import accord
from accord import (
    AllWithin,
    BVMRegressor,
    EachOutput,
    JointBVMRegressor,
    NormWithin,
    Within,
    probability_of_agreement,
)
from accord.agreement import Asymmetric, JointRule

RHO, SCALE = 0.8, np.array([0.3, 2.0])


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two targets whose noise is correlated, of very different size."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    noise = rng.multivariate_normal([0, 0], [[1, RHO], [RHO, 1]], size=n)
    return x, np.c_[np.sin(2 * x[:, 0]), 5 * x[:, 1]] + SCALE * noise


X, Y = rows(1000, seed=0)
X_NEW, Y_NEW = rows(500, seed=1)
QUICK = {"n_members": 2, "epochs": 30, "batch_size": 64, "learning_rate": 1e-2, "random_state": 0}
RULES: dict[str, JointRule | None] = {
    "exact": None,
    "all within": AllWithin(0.5 * SCALE),
    "norm within": NormWithin(0.7, scale=SCALE),
}
SAME_SIGN = JointRule.from_callable(lambda a, b: (a * b > 0).all(-1), name="of one sign")
NARROW = np.where(np.arange(1000)[:, None] == 7, 1.0, 0.5) * np.ones(2)
CACHE: dict[str, JointBVMRegressor] = {}


def fitted(name: str) -> JointBVMRegressor:
    if name not in CACHE:
        CACHE[name] = JointBVMRegressor(rule=RULES[name], **QUICK).fit(X, Y)
    return CACHE[name]


@pytest.mark.parametrize("name", RULES)
def test_noise_and_its_correlation_are_recovered(name: str) -> None:
    """Smoothed by the rule, since that is the density which training fits to the data."""
    joint = fitted(name).predict_joint(X_NEW)
    assert joint.correlation[:, 0, 1].mean() == pytest.approx(RHO, abs=0.04)
    np.testing.assert_allclose(joint.std.mean(0), SCALE, rtol=0.08)


@pytest.mark.parametrize("name", RULES)
def test_joint_regions_cover_what_they_promise(name: str) -> None:
    model, room = fitted(name), 0.05
    joint = model.predict_joint(X_NEW)
    for coverage in (0.5, 0.9):
        assert np.mean(joint.level(Y_NEW) <= coverage) == pytest.approx(coverage, abs=room)
    box = model.predict_box(X_NEW, coverage=0.9)
    inside = ((box[..., 0] <= Y_NEW) & (box[..., 1] >= Y_NEW)).all(1)
    assert inside.mean() == pytest.approx(0.9, abs=room)
    single = model.predict_interval(X_NEW, coverage=0.9)
    each = (single[..., 0] <= Y_NEW) & (single[..., 1] >= Y_NEW)
    np.testing.assert_allclose(each.mean(0), 0.9, atol=room)
    assert each.all(1).mean() < 0.9, "one interval per target does not hold all at once"


def test_independence_gives_the_wrong_joint_agreement() -> None:
    """How often both errors are small is under-stated by a fifth without the correlation."""
    rule, room = AllWithin(0.7 * SCALE), 4 * (0.25 / len(Y_NEW)) ** 0.5
    joint = fitted("exact").predict_joint(X_NEW)
    apart = BVMRegressor(
        tolerance=0,
        target_scaling="standard",
        mean_head="identity",
        variance_head="softplus",
        **QUICK,
    ).fit(X, Y)
    independent = apart.predict_dist(X_NEW)
    # seen: the distance of the targets from where the predictions are centred
    seen = rule(joint.mean, Y_NEW).mean()

    def expected(dist: object) -> float:
        return probability_of_agreement(dist, np.asarray(dist.mean), rule, random_state=0).mean  # type: ignore[attr-defined,arg-type]

    assert expected(joint) == pytest.approx(seen, abs=room)
    assert expected(independent) < seen - 0.06


def test_the_score_is_that_of_all_targets_together() -> None:
    model = fitted("exact")
    joint, alone = model.log_score(X_NEW, Y_NEW), model.predict_dist(X_NEW).log_prob(Y_NEW)
    # what the targets know of each other: −½ log(1 − ρ²) nats
    assert joint - alone.sum(1).mean() == pytest.approx(-0.5 * np.log(1 - RHO**2), abs=0.06)


def test_predictions_have_the_shapes_of_the_targets() -> None:
    frame = pd.DataFrame(X_NEW, columns=["a", "b"])
    model = JointBVMRegressor(tolerance="2%", epochs=2, n_members=2, random_state=0)
    model.fit(pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(Y, columns=["up", "side"]))
    assert model.predict(frame).shape == (500, 2)
    assert list(model.predict_box(frame).columns)[:2] == [("up", "lower"), ("up", "upper")]
    np.testing.assert_allclose(model.half_width_, 0.02 * np.ptp(Y, axis=0))
    np.testing.assert_allclose(model.predict_joint(frame).mean, model.predict(frame))
    assert model.rule_error_ < 1e-6


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    model = fitted("norm within")
    model.save(tmp_path / "joint.accord")
    loaded = accord.load(tmp_path / "joint.accord")
    assert loaded.rule == model.rule
    np.testing.assert_array_equal(
        loaded.predict_joint(X_NEW[:5]).covariance, model.predict_joint(X_NEW[:5]).covariance
    )
    each = JointBVMRegressor(
        rule=EachOutput([Within(0.5), Within(1.0)]) & NormWithin(3.0),
        predictive="model",
        epochs=1,
    ).fit(X, Y)
    each.save(tmp_path / "each.accord")
    assert accord.load(tmp_path / "each.accord").rule == each.rule


def test_unions_and_callables_are_trained_on(tmp_path: Path) -> None:
    """The same rule three ways: as it is, as a union of its parts, as a callable."""
    half = 0.5 * SCALE
    below = EachOutput([Asymmetric(below=half[0], above=0.0), Within(half[1])])
    above = EachOutput([Asymmetric(below=0.0, above=half[0]), Within(half[1])])
    ways = {
        "box": AllWithin(half),
        "union": below | above,
        "opposite": ~(~below & ~above),
        "callable": lambda a, b: (abs(a - b) <= half).all(-1),
    }
    fits = {
        name: JointBVMRegressor(rule=rule, predictive="model", **{**QUICK, "epochs": 3}).fit(X, Y)
        for name, rule in ways.items()
    }
    box = fits["box"].predict_joint(X_NEW[:50])
    for name, room in {"union": 1e-3, "opposite": 1e-3, "callable": 0.05}.items():
        other = fits[name].predict_joint(X_NEW[:50])
        np.testing.assert_allclose(other.mean / SCALE, box.mean / SCALE, atol=room)
        np.testing.assert_allclose(other.std, box.std, rtol=room)
    assert fits["union"].rule_error_ < 1e-4 < fits["callable"].rule_error_ < 0.1
    fits["opposite"].save(tmp_path / "joint.accord")
    assert accord.load(tmp_path / "joint.accord").rule == ways["opposite"]
    with pytest.raises(Exception, match="holds no code"):
        fits["callable"].save(tmp_path / "callable.accord")


def test_warm_start_goes_on() -> None:
    model = JointBVMRegressor(warm_start=True, epochs=2, n_members=2, random_state=0).fit(X, Y)
    first = model.history_[0].mean()
    assert model.fit(X, Y).history_[0].mean() < first


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tolerance": -1.0}, "non-negative"),
        ({"tolerance": [0.1, 0.2, 0.3]}, "one per target"),
        ({"tolerance": 0.1, "rule": AllWithin(0.1)}, "State one of the two"),
        ({"rule": AllWithin(0.1) & NormWithin(1.0)}, "predictive='model'"),
        ({"rule": AllWithin(0.1) | NormWithin(1.0)}, "predictive='model'"),
        (
            {"rule": AllWithin(np.ones((1000, 2))) & SAME_SIGN, "predictive": "model"},
            "numbers per row",
        ),
        *(
            ({"rule": rule, "predictive": "model"}, "none for row 0")
            for rule in (
                NormWithin(0.5) & ~NormWithin(0.5),
                AllWithin(0.5) & ~NormWithin(1.0),
                EachOutput([Within(0.5), Within(0.5)]) & ~AllWithin(0.5),
            )
        ),
        (
            {"rule": AllWithin(np.ones((1000, 2))) & ~AllWithin(NARROW), "predictive": "model"},
            "none for row 7",
        ),
    ],
)
def test_settings_are_checked(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        JointBVMRegressor(**settings).fit(X, Y)  # type: ignore[arg-type]


def test_one_target_and_rules_of_one_are_sent_elsewhere() -> None:
    with pytest.raises(ValueError, match="BVMRegressor"):
        JointBVMRegressor().fit(X, Y[:, 0])
    with pytest.raises(TypeError, match=r"over several outputs.*EachOutput"):
        JointBVMRegressor(rule=Within(0.1)).fit(X, Y)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="JointBVMRegressor"):
        BVMRegressor(rule=AllWithin(0.1)).fit(X, Y)  # type: ignore[arg-type]
