"""The rivals on data with a known answer, and each method's own formulas."""

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student_t

from accord import (
    BVMRegressor,
    DeepEnsembleRegressor,
    EvidentialRegressor,
    MCDropoutRegressor,
    MSEEnsembleRegressor,
    load,
)
from accord.estimators import fit_together
from accord.estimators.plain import EvidentialLoss

NOISE = 0.3
DROPOUT = {"dropout_rate": 0.01, "precision": (2.0, 5.0, 10.0), "epochs": 150}


def wave(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 1))
    return x, np.sin(2 * x[:, 0]) + NOISE * rng.normal(size=n)


INSIDE = np.linspace(-1.8, 1.8, 25)[:, None]
MODELS = {
    "MSE ensemble": MSEEnsembleRegressor(random_state=0),
    "Deep Ensembles": DeepEnsembleRegressor(random_state=0),
    "Deep Ensembles, adversarial": DeepEnsembleRegressor(adversarial=True, random_state=0),
    "Deep Ensembles, beta": DeepEnsembleRegressor(beta=0.5, random_state=0),
    "MC dropout": MCDropoutRegressor(**DROPOUT, random_state=0),
    "evidential": EvidentialRegressor(random_state=0),
    "evidential, original": EvidentialRegressor(uncertainty="original", random_state=0),
    "evidential ensemble": EvidentialRegressor(n_members=5, random_state=0),
    "Laplace": BVMRegressor(tolerance=0.0, family="laplace", random_state=0),
}
NOISY = [name for name in MODELS if name != "MSE ensemble"]
# A single evidential network may be sure of anything where it has seen nothing; and sigmoids, as
# the Laplace model has them, saturate there.
ENSEMBLES = [
    name for name in MODELS if name not in ("evidential", "evidential, original", "Laplace")
]


@pytest.fixture(scope="module")
def fitted():
    jobs = [(model, *wave()) for model in MODELS.values()]
    return dict(zip(MODELS, fit_together(jobs), strict=True))


@pytest.mark.parametrize("name", NOISY)
def test_predicts_the_function_with_its_noise(fitted, name: str) -> None:
    mean, std = fitted[name].predict(INSIDE, return_std=True)
    assert np.sqrt(np.mean((mean - np.sin(2 * INSIDE[:, 0])) ** 2)) < 0.12
    assert np.median(std) == pytest.approx(NOISE, rel=0.2)


@pytest.mark.parametrize("name", NOISY)
def test_intervals_cover_new_rows(fitted, name: str) -> None:
    x, y = wave(2000, seed=1)
    lower, upper = fitted[name].predict_interval(x, coverage=0.9).T
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_epistemic_part_grows_away_from_the_data(fitted, name: str) -> None:
    near = np.median(fitted[name].predict_uncertainty(INSIDE)["disagreement"])
    far = fitted[name].predict_uncertainty([[-9.0], [9.0]])["disagreement"]
    assert np.all(far > 1.5 * near)


@pytest.mark.parametrize("name", MODELS)
def test_parts_add_up(fitted, name: str) -> None:
    parts = fitted[name].predict_uncertainty(INSIDE)
    squares = np.square(parts[["noise", "disagreement", "distance"]]).sum(axis=1)
    np.testing.assert_allclose(np.sqrt(squares), parts["total"], rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_quantiles_and_saving(fitted, name: str, tmp_path) -> None:
    model = fitted[name]
    quantiles = model.predict_quantiles(INSIDE, [0.05, 0.5, 0.95])
    assert np.all(np.diff(quantiles, axis=1) > 0)
    model.save(tmp_path / "model.accord")
    restored = load(tmp_path / "model.accord")
    np.testing.assert_array_equal(restored.predict_quantiles(INSIDE, [0.05, 0.5, 0.95]), quantiles)


@pytest.mark.parametrize("name", ["MSE ensemble", "Deep Ensembles", "MC dropout", "evidential"])
def test_several_outputs(name: str) -> None:
    x, y = wave(60)
    model = MODELS[name].__class__(random_state=0, epochs=2).fit(x, np.column_stack([y, -y, 2 * y]))
    assert model.predict(x).shape == (60, 3)
    assert model.predict_interval(x).shape == (60, 3, 2)
    assert np.isfinite(model.log_score(x, np.column_stack([y, -y, 2 * y])))


@pytest.mark.parametrize("name", ["MSE ensemble", "Deep Ensembles", "MC dropout", "evidential"])
def test_together_is_one_by_one(name: str) -> None:
    build = MODELS[name].__class__
    jobs = [(build(random_state=s, epochs=2), *wave(50, s)) for s in range(2)]
    for s, model in enumerate(fit_together(jobs)):
        alone = build(random_state=s, epochs=2).fit(*wave(50, s))
        np.testing.assert_allclose(
            model.predict(INSIDE), alone.predict(INSIDE), rtol=1e-4, atol=1e-4
        )


def test_mse_ensemble_is_the_spread_of_its_members(fitted) -> None:
    model = fitted["MSE ensemble"]
    members = model.y_shift_ + model.y_scale_ * model._outputs(INSIDE)[..., 0]
    mean, std = model.predict(INSIDE, return_std=True)
    np.testing.assert_allclose(mean, members.mean(axis=0))
    np.testing.assert_allclose(std**2, (members**2).mean(axis=0) - mean**2, atol=1e-8)
    assert np.all(model.predict_uncertainty(INSIDE)["noise"] < 1e-6)


def test_mse_ensemble_needs_two_members() -> None:
    with pytest.raises(ValueError, match="n_members must be at least 2, got 1"):
        MSEEnsembleRegressor(n_members=1).fit(*wave(10))


def test_adversarial_training_smooths_what_a_step_can_change() -> None:
    """The worst density within a step of each row is better than without."""
    x, y = wave(150)
    plain = DeepEnsembleRegressor(epochs=150, n_members=2, random_state=0).fit(x, y)
    robust = DeepEnsembleRegressor(
        epochs=150, n_members=2, adversarial=True, adversarial_step=0.05, random_state=0
    ).fit(x, y)
    step = 0.05 * np.ptp(x)

    def worst(model: DeepEnsembleRegressor) -> float:
        moved = [model.predict_dist(x + s * step).log_prob(y) for s in (-1, 0, 1)]
        return float(np.min(moved, axis=0).mean())

    assert worst(robust) > worst(plain)


def test_beta_one_weighs_rows_as_squared_error_does() -> None:
    """∂(σ^{2β} NLL)/∂μ is σ^{2β}(μ − t)/σ²: for β = 1 it does not depend on the variance."""
    from accord.training import GaussianLikelihood, Heads

    heads = Heads("identity", "exp")
    raw = torch.tensor([[[0.5, -3.0], [0.5, 2.0]]], dtype=torch.float64)
    columns, weight = {"target": torch.zeros(1, 2, 1, dtype=torch.float64)}, torch.ones(1, 2)
    _, grad, _ = GaussianLikelihood(heads, beta=1.0)(raw, columns, weight, torch.empty(1, 0))
    np.testing.assert_allclose(grad[0, :, 0], 0.5, rtol=1e-4)


def test_dropout_likelihood_is_the_log_sum_exp_over_passes(fitted) -> None:
    model = fitted["MC dropout"]
    x, y = wave(50, seed=2)
    rng = np.random.default_rng(model.pass_seed_)
    weights, biases = [b[0] for b in model.parameters_[:2]], [b[0] for b in model.parameters_[2:]]
    keep = 1 - model.dropout_rate_
    masks = [(rng.random((model.n_passes, len(w))) >= model.dropout_rate_) / keep for w in weights]
    passes = []
    for first, second in zip(*masks, strict=True):
        hidden = np.maximum((model._x_scaling.scaled(x) * first) @ weights[0] + biases[0], 0)
        passes.append(((hidden * second) @ weights[1] + biases[1])[:, 0])
    means = model.y_shift_ + model.y_scale_ * np.array(passes)
    tau = model.precision_ / model.y_scale_[0] ** 2
    direct = logsumexp(-0.5 * tau * (y - means) ** 2, axis=0) - np.log(model.n_passes)
    direct += 0.5 * np.log(tau) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(model.predict_dist(x).log_prob(y), direct, rtol=1e-4, atol=1e-5)


def test_dropout_passes_have_the_moments_of_dropout(fitted) -> None:
    """E and Var over masks of one linear layer are known; ours match over many passes."""
    from accord.estimators.mc_dropout import _thinned

    weight = np.array([[[1.0], [-2.0], [0.5]]])
    (block,) = _thinned([weight, np.zeros((1, 1, 1))], 0.2, 40_000, np.random.default_rng(0))
    x = np.array([0.3, 1.0, -2.0])
    outputs = np.einsum("i,tio->t", x, block[0])
    terms = x * weight[0, :, 0]
    assert outputs.mean() == pytest.approx(terms.sum(), abs=0.02)
    assert outputs.var() == pytest.approx(0.2 / 0.8 * np.sum(terms**2), rel=0.03)


def test_dropout_grid_is_chosen_on_held_out_rows(fitted) -> None:
    model = fitted["MC dropout"]
    assert model.grid_log_likelihood_.shape == (1, 3)
    assert model.precision_ == DROPOUT["precision"][int(model.grid_log_likelihood_.argmax())]
    # the targets' variance is about 0.5 + NOISE², so the noise has a precision of about 6.5 of it
    assert model.precision_ in (5.0, 10.0)


def test_dropout_does_not_depend_on_how_steps_are_grouped(monkeypatch) -> None:
    from accord.training import tasks

    settings = {"dropout_rate": 0.2, "precision": 5.0, "epochs": 3, "random_state": 0}
    many_at_once = MCDropoutRegressor(**settings).fit(*wave())
    monkeypatch.setattr(tasks, "_GATHER_BYTES", 1)
    one_at_a_time = MCDropoutRegressor(**settings).fit(*wave())
    np.testing.assert_array_equal(one_at_a_time.predict(INSIDE), many_at_once.predict(INSIDE))


def test_weight_decay_follows_length_scale_and_precision() -> None:
    """A long length scale and noisy data pull the weights to 0, and the mean to a constant."""
    x, y = wave(100)
    build = {"dropout_rate": 0.05, "epochs": 100, "random_state": 0}
    loose = MCDropoutRegressor(precision=10.0, **build).fit(x, y)
    tight = MCDropoutRegressor(precision=0.1, length_scale=30.0, **build).fit(x, y)
    assert np.ptp(tight.predict(INSIDE)) < 0.1 * np.ptp(loose.predict(INSIDE))


def test_evidential_loss_is_the_student_t_likelihood() -> None:
    loss = EvidentialLoss(tied=False, penalty=0.0)
    raw = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = torch.linspace(-2, 2, 6, dtype=torch.float64).reshape(1, 6, 1)
    gamma, nu, alpha, beta = (part.numpy()[0, :, 0] for part in loss.evidence(raw))
    width = np.sqrt(beta * (1 + nu) / (nu * alpha))
    expected = -student_t.logpdf(target.numpy()[0, :, 0], 2 * alpha, gamma, width)
    np.testing.assert_allclose(loss(raw, {"target": target})[0, :, 0], expected)


def test_student_t_is_the_normal_inverse_gamma_integrated_out(fitted) -> None:
    """Sampling σ² and μ gives the predictive density, and with it both parts of its variance."""
    model = fitted["evidential, original"]
    raw = torch.as_tensor(model._outputs(INSIDE[:1]))
    gamma, nu, alpha, beta = (float(part) for part in model._loss.evidence(raw))
    rng = np.random.default_rng(0)
    variance = beta / rng.gamma(alpha, size=400_000)
    mu = rng.normal(gamma, np.sqrt(variance / nu))
    y = model.y_shift_[0] + 0.2
    scale = model.y_scale_[0]
    density = norm.pdf((y - model.y_shift_[0]) / scale, mu, np.sqrt(variance)).mean() / scale
    assert model.predict_dist(INSIDE[:1]).pdf(y) == pytest.approx(density, rel=0.01)
    parts = model.predict_uncertainty(INSIDE[:1])
    assert parts["noise"].item() == pytest.approx(scale * np.sqrt(beta / (alpha - 1)), rel=1e-6)
    between = scale * np.sqrt(beta / (nu * (alpha - 1)))
    assert parts["disagreement"].item() == pytest.approx(between, rel=1e-6)


def test_corrected_uncertainty_is_the_width_and_its_share(fitted) -> None:
    model = fitted["evidential"]
    raw = torch.as_tensor(model._outputs(INSIDE))
    _, nu, alpha, beta = (part.numpy()[0, :, 0] for part in model._loss.evidence(raw))
    width = model.y_scale_[0] * np.sqrt(beta * (1 + nu) / (nu * alpha))
    parts = model.predict_uncertainty(INSIDE)
    np.testing.assert_allclose(alpha, nu + 1)
    np.testing.assert_allclose(parts["noise"], width)
    np.testing.assert_allclose(parts["disagreement"], width / np.sqrt(nu))
    assert np.median(parts["noise"]) == pytest.approx(NOISE, rel=0.2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DeepEnsembleRegressor(beta=-1.0), r"beta must be non-negative, got -1\.0"),
        (DeepEnsembleRegressor(variance_head="relu"), "variance_head must be one of"),
        (DeepEnsembleRegressor(adversarial_step=0.0), "adversarial_step must be positive"),
        (MCDropoutRegressor(dropout_rate=(0.1, 1.0)), r"dropout_rate must be in \[0, 1\)"),
        (MCDropoutRegressor(precision=0.0), "precision must be positive"),
        (EvidentialRegressor(uncertainty="both"), "uncertainty must be one of"),
        (EvidentialRegressor(penalty=-0.1), r"penalty must be non-negative, got -0\.1"),
        (MSEEnsembleRegressor(mean_head="relu"), "mean_head must be one of"),
    ],
)
def test_bad_settings_are_named(model, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(*wave(20))
