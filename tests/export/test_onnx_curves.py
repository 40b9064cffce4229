"""Curves and mixtures in a graph against SciPy and the library's own distributions."""

import numpy as np
import pytest
from scipy import integrate, stats

from accord.distributions import Log, Mixture, Normal, StudentT, Transformed, with_moments
from accord.export import (
    NORMAL,
    CurveGroup,
    MixtureGraph,
    NotExportableError,
    StudentCurve,
    curve_of,
)

PEERS = {
    ("normal", None): stats.norm(),
    ("student-t", 3.0): stats.t(3),
    ("student-t", 4.5): stats.t(4.5),
    ("student-t", 12.0): stats.t(12),
    ("laplace", None): stats.laplace(),
    ("logistic", None): stats.logistic(),
}
Z = np.concatenate([np.linspace(-9, 9, 73), [-30.0, -0.0, 30.0]])[:, None]


@pytest.mark.parametrize(("family", "df"), PEERS)
def test_curves_are_scipys_also_far_out(family, df, values_of) -> None:
    peer = PEERS[family, df]
    cdf, density = values_of(curve_of(family, df).both, Z)
    np.testing.assert_allclose(cdf, peer.cdf(Z), rtol=2e-12)
    np.testing.assert_allclose(density, peer.pdf(Z), rtol=2e-12)
    assert curve_of(family, df).variance == pytest.approx(peer.var())


def test_curves_at_infinity(values_of) -> None:
    ends = np.array([[-np.inf], [np.inf]])
    for curve in (NORMAL, StudentCurve(3.0)):
        cdf, density = values_of(curve.both, ends)
        assert cdf.ravel().tolist() == [0.0, 1.0]
        assert density.ravel().tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("family", "df"), PEERS)
@pytest.mark.parametrize("half", [0.0, 9e-5, 2e-4, 1.5])
def test_smoothed_cdf_is_the_mean_over_the_window(family, df, half, values_of) -> None:
    z = np.linspace(-4, 4, 9)[:, None]
    curve, peer = curve_of(family, df), PEERS[family, df]

    def smoothed(x):
        return curve.smoothed(x, 0.0 * x + half)

    cdf, density = values_of(smoothed, z)
    if half == 0:
        expected, height = peer.cdf(z), peer.pdf(z)
    else:
        area = [integrate.quad(peer.cdf, v - half, v + half, points=[0.0])[0] for v in z[:, 0]]
        expected = np.array(area)[:, None] / (2 * half)
        height = (peer.cdf(z + half) - peer.cdf(z - half)) / (2 * half)
    np.testing.assert_allclose(cdf, expected, atol=3e-9)
    np.testing.assert_allclose(density, height, atol=5e-5)  # a kink has no slope


def mixture_of(x, *, knot: float) -> MixtureGraph:
    """A normal, a Student-t and a logarithm, whose parameters are the six columns of x."""
    one = [x.take([place], 1) for place in range(6)]
    weight = [x.graph.real([[share]]) for share in (0.3, 0.4, 0.3)]
    return MixtureGraph(
        [
            CurveGroup(NORMAL, one[0], one[1], weight[0]),
            CurveGroup(StudentCurve(3.0), one[2], one[3], weight[1]),
            CurveGroup(NORMAL, one[4], one[5], weight[2], knot=knot),
        ]
    )


def rows(n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    location, scale = rng.normal(0, 3, (3, n)), rng.uniform(0.1, 2, (3, n))
    columns = [location[0], scale[0], location[1], scale[1], location[2] / 3, scale[2] / 2]
    return np.column_stack(columns)


def as_distribution(x: np.ndarray, *, knot: float) -> Mixture:
    parts = x.T[:, None]
    log = Transformed(Normal(parts[4], parts[5]), Log(straight_from=float(np.exp(knot))))
    kinds = [Normal(parts[0], parts[1]), StudentT(3, parts[2], parts[3]), log]
    return Mixture(kinds, np.array([0.3, 0.4, 0.3]))


LEVELS = np.array([1e-9, 0.001, 0.3, 0.5, 0.9, 1 - 1e-9])


def test_quantiles_and_moments_of_a_mixture(values_of) -> None:
    x = rows(60)
    tails, sign = np.minimum(LEVELS, 1 - LEVELS), np.where(LEVELS <= 0.5, 1.0, -1.0)

    def answer(value):
        mixture = mixture_of(value, knot=1.0)
        return mixture.quantiles(tails, sign), *mixture.moments()

    quantiles, mean, std = values_of(answer, x, (len(LEVELS), 1, 1))
    dist = as_distribution(x, knot=1.0)
    np.testing.assert_allclose(quantiles, dist.quantile(LEVELS), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(mean[:, 0], dist.mean, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(std[:, 0], dist.std, rtol=1e-10)


def test_separate_modes_do_not_hide_a_quantile(values_of) -> None:
    """Between two narrow modes far apart lies next to nothing, and the median."""
    x = np.array([[-1.0, 1e-3, 1.0, 1e-3]])

    def answer(value):
        one = [value.take([place], 1) for place in range(4)]
        half = value.graph.real([[0.5]])
        groups = [
            CurveGroup(NORMAL, one[0], one[1], half),
            CurveGroup(NORMAL, one[2], one[3], half),
        ]
        return MixtureGraph(groups).quantiles(np.array([0.25, 0.4999]), np.array([1.0, -1.0]))

    (found,) = values_of(answer, x, (2,))
    assert found[0, 0] == pytest.approx(-1.0, abs=1e-8)
    assert found[0, 1] == pytest.approx(1 + 1e-3 * stats.norm.ppf(0.0002), abs=1e-8)


def test_a_family_without_a_curve_is_named() -> None:
    with pytest.raises(NotExportableError, match="'uniform'"):
        curve_of("uniform")


def test_scales_follow_from_moments(values_of) -> None:
    """An estimator's standard deviation becomes the curve's scale."""
    curve = curve_of("laplace")
    peer = with_moments("laplace", np.array([1.0]), np.array([2.0]), None)
    (cdf,) = values_of(lambda x: curve.both((x - 1.0) / (2.0 / curve.variance**0.5))[0], Z)
    np.testing.assert_allclose(cdf[:, 0], [peer.cdf(z)[0] for z in Z[:, 0]], rtol=1e-10)
