"""Moments against sampling, updates against derivatives and exact Bayesian answers."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma as gamma_law
from scipy.stats import norm

from accord.training.probabilistic_backprop import (
    Filter,
    Posterior,
    initial_posterior,
    matched_gamma,
    output_moments,
    refine_prior,
    relu_moments,
    train_pbp,
)


def random_posterior(sizes: tuple[int, ...], stack: int = 2) -> Posterior:
    """A posterior as after some training: every weight with its own mean and variance."""
    rng = np.random.default_rng(1)
    posterior = initial_posterior(sizes, [rng] * stack)
    posterior.mean[:] = rng.normal(size=posterior.mean.shape)
    posterior.var[:] = rng.uniform(0.05, 0.5, posterior.var.shape)
    posterior.noise[:] = [[12.0], [6.0]]
    return posterior


@pytest.mark.parametrize("alpha", [-8.0, -3.0, -0.5, 0.0, 0.7, 4.0, 30.0])
def test_relu_moments_against_quadrature(alpha: float) -> None:
    std = 1.7
    mean = alpha * std

    def moment(power: int) -> float:
        upper = mean + 12 * std
        return float(
            quad(lambda a: a**power * norm.pdf(a, mean, std), max(0.0, mean - 12 * std), upper)[0]
        )

    found_mean, found_var = relu_moments(np.array(mean), np.array(std**2))
    assert found_mean == pytest.approx(moment(1), rel=1e-7)
    assert found_var == pytest.approx(moment(2) - moment(1) ** 2, rel=1e-6)


def test_relu_moments_hold_in_the_tails() -> None:
    alpha = np.array([-1e3, -40.0, -38.0, -20.0, 1e3, 1e5])
    mean, var = relu_moments(alpha, np.ones(6))
    np.testing.assert_allclose(mean[4:], alpha[4:])
    np.testing.assert_allclose(var[4:], 1.0, rtol=1e-5)
    assert np.all((mean[:4] >= 0) & (mean[:4] < 1e-80) & (var[:4] >= 0) & (var[:4] < 1e-80))


@pytest.mark.parametrize(("sizes", "slack"), [((3, 8, 1), 0.0), ((3, 8, 6, 1), 0.03)])
def test_output_moments_against_sampled_networks(sizes: tuple[int, ...], slack: float) -> None:
    """One hidden layer propagates exactly; with two, units of the second share their inputs."""
    posterior = random_posterior(sizes, stack=1)
    rng = np.random.default_rng(2)
    x, draws = rng.normal(size=(4, 3)), 100_000
    flat = rng.normal(posterior.mean, np.sqrt(posterior.var), (draws, posterior.mean.shape[1]))
    z = np.broadcast_to(x, (draws, *x.shape))
    for depth, weights in enumerate(posterior.layers(flat)):
        z = np.maximum(z, 0.0) if depth else z
        z = (z @ weights[:, :-1] + weights[:, -1:]) / np.sqrt(weights.shape[1])
    sampled = z[:, :, 0]
    mean, var = output_moments(posterior, x)
    standard_error = sampled.std(axis=0) / np.sqrt(draws)
    np.testing.assert_array_less(np.abs(mean[0] - sampled.mean(axis=0)), 4.5 * standard_error)
    np.testing.assert_allclose(var[0], sampled.var(axis=0), rtol=0.03 + slack)


@pytest.mark.parametrize("sizes", [(3, 1), (3, 5, 1), (3, 5, 4, 1)])
def test_update_follows_the_gradient_of_the_evidence(sizes: tuple[int, ...]) -> None:
    posterior = random_posterior(sizes)
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 3)), rng.normal(size=2)

    def log_z() -> np.ndarray:
        mean, var = output_moments(posterior, x[:, None, :])
        return norm.logpdf(y, mean[:, 0], np.sqrt(var[:, 0] + posterior.noise_var))

    def derivatives(parameter: np.ndarray) -> np.ndarray:
        result, h = np.empty_like(parameter), 1e-6
        for i in range(parameter.shape[1]):
            parameter[:, i] += h
            above = log_z()
            parameter[:, i] -= 2 * h
            result[:, i] = (above - log_z()) / (2 * h)
            parameter[:, i] += h
        return result

    by_mean, by_var = derivatives(posterior.mean), derivatives(posterior.var)
    mean, var, expected = posterior.mean.copy(), posterior.var.copy(), log_z()
    surprise = Filter(posterior).observe(x, y)
    np.testing.assert_allclose(surprise, -2 * expected - np.log(2 * np.pi))
    np.testing.assert_allclose(posterior.mean, mean + var * by_mean, atol=1e-8)
    np.testing.assert_allclose(posterior.var, var - var**2 * (by_mean**2 - 2 * by_var), atol=1e-8)


def test_linear_network_gives_the_exact_marginals() -> None:
    """Without hidden units the first row's answer is Bayesian linear regression."""
    posterior = random_posterior((2, 1), stack=1)
    m, v, noise = posterior.mean[0].copy(), posterior.var[0].copy(), posterior.noise_var[0]
    x, y = np.array([0.4, -1.3]), 0.8
    inputs = np.append(x, 1.0) / np.sqrt(3)
    gain = v * inputs / (noise + inputs @ (v * inputs))
    Filter(posterior).observe(x[None], np.array([y]))
    np.testing.assert_allclose(posterior.mean[0], m + gain * (y - inputs @ m))
    np.testing.assert_allclose(posterior.var[0], v - gain * inputs * v)


@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning"
)  # `train` silences what `observe` alone does not
def test_update_that_overflows_is_dropped_for_that_network_only() -> None:
    posterior, other = random_posterior((3, 5, 1)), random_posterior((3, 5, 1))
    before = [posterior.mean[0].copy(), posterior.var[0].copy(), posterior.noise[:, 0].copy()]
    x = np.ones((2, 3))
    Filter(posterior).observe(x, np.array([1e200, 0.5]))
    Filter(other).observe(x, np.array([0.0, 0.5]))
    for old, new in zip(
        before, (posterior.mean[0], posterior.var[0], posterior.noise[:, 0]), strict=True
    ):
        np.testing.assert_array_equal(new, old)
    np.testing.assert_array_equal(posterior.mean[1], other.mean[1])


def test_gamma_matches_the_first_two_moments() -> None:
    """Against λ's exact moments; Z takes the Student-t for a normal, a small error here."""
    shape, rate, var, error = 40.0, 30.0, 0.3, 1.1
    new = matched_gamma(np.array([[shape], [rate]]), np.array([var]), np.array([error**2]))[:, 0]

    def moment(power: int) -> float:
        def integrand(precision: float) -> float:
            likelihood = norm.pdf(error, scale=np.sqrt(var + 1 / precision))
            return float(
                precision**power * likelihood * gamma_law.pdf(precision, shape, scale=1 / rate)
            )

        return float(quad(integrand, 1e-9, 5.0, limit=200)[0])

    first, second = moment(1) / moment(0), moment(2) / moment(0)
    assert new[0] / new[1] == pytest.approx(first, rel=1e-3)
    assert new[0] / new[1] ** 2 == pytest.approx(second - first**2, rel=2e-2)


def refined_one_by_one(posterior: Posterior) -> None:
    """Expectation propagation as the paper writes it, one scalar at a time."""
    for s, i in np.ndindex(posterior.mean.shape):
        precision, shape, rate = posterior.factors[:, s, i]
        v = 1 / (1 / posterior.var[s, i] - precision)
        m = v * posterior.mean[s, i] / posterior.var[s, i]
        a, b = posterior.prior[0, s] - shape, posterior.prior[1, s] - rate
        if not (0 < v < 1e6 and a > 1 and b > 0):
            continue
        z = [norm.pdf(m, scale=np.sqrt(v + b / (a + k))) for k in (-1, 0, 1)]
        total = v + b / (a - 1)
        by_mean, by_var = -m / total, 0.5 * (m**2 / total**2 - 1 / total)
        posterior.mean[s, i] = m + v * by_mean
        posterior.var[s, i] = v - v**2 * (by_mean**2 - 2 * by_var)
        new_a = 1 / (z[0] * z[2] / z[1] ** 2 * (a + 1) / a - 1)
        new_b = 1 / (z[2] / z[1] * (a + 1) / b - z[1] / z[0] * a / b)
        posterior.factors[:, s, i] = 1 / posterior.var[s, i] - 1 / v, new_a - a, new_b - b
        posterior.prior[:, s] = new_a, new_b


def test_refinement_is_expectation_propagation() -> None:
    fast, plain = random_posterior((3, 5, 1)), random_posterior((3, 5, 1))
    fast.var[0, 0] = plain.var[0, 0] = 1 / fast.factors[0, 0, 0]  # the data say nothing about it
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(3):
            refine_prior(fast)
            refined_one_by_one(plain)
    for name in ("mean", "var", "prior", "factors"):
        np.testing.assert_allclose(getattr(fast, name), getattr(plain, name), rtol=1e-8, atol=1e-10)


def test_stack_equals_networks_trained_one_by_one() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(3, 30, 2)), rng.normal(size=(3, 30))
    generators = [np.random.default_rng(seed) for seed in range(3)]
    stack = initial_posterior((2, 6, 1), generators)
    losses = list(train_pbp(stack, x, y, epochs=2, generators=generators))
    for s in range(3):
        alone_rng = [np.random.default_rng(s)]
        alone = initial_posterior((2, 6, 1), alone_rng)
        loss = list(train_pbp(alone, x[s : s + 1], y[s : s + 1], epochs=2, generators=alone_rng))
        np.testing.assert_allclose(alone.mean[0], stack.mean[s], rtol=1e-9)
        np.testing.assert_allclose(alone.noise[:, 0], stack.noise[:, s], rtol=1e-9)
        np.testing.assert_allclose(np.ravel(loss), np.array(losses)[:, s], rtol=1e-9)
