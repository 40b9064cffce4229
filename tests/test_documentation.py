"""The worked examples of the guides run, and the numbers of the theory are right."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import log_ndtr

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(("guide", "n_examples"), [("validation.md", 20), ("own-network.md", 12)])
def test_guide_runs(guide: str, n_examples: int, tmp_path, monkeypatch) -> None:
    text = (DOCS / guide).read_text()
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```pycon\n(.*?)```", text, flags=re.S)
    session = doctest.DocTestParser().get_doctest("".join(blocks), {}, guide, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(session, out=report.append)
    assert len(session.examples) > n_examples
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def table(after: str) -> list[list[float]]:
    """The numbers of the first table after a mark in the theory."""
    text = (DOCS / "theory.md").read_text().split(f"<!-- {after} -->")[1]
    lines = [line for line in text.split("\n\n")[1].splitlines() if line.startswith("|")][2:]
    return [
        [float(cell.replace("−", "-")) for cell in line.strip("|").split("|")] for line in lines
    ]


def log_agreement(z, h):
    """log[Φ(z + h) − Φ(z − h)], written independently of the library."""
    upper, lower = log_ndtr(h - np.abs(z)), log_ndtr(-h - np.abs(z))
    return upper + np.log1p(-np.exp(lower - upper))


T = np.linspace(-12, 12, 40_001)
WEIGHT = stats.norm.pdf(T) * (T[1] - T[0])
ENTROPY = 0.5 * np.log(2 * np.pi * np.e)


def smoothed_nll(variance: float, eps: float) -> float:
    sigma = np.sqrt(variance)
    return float(-(WEIGHT * log_agreement(T / sigma, eps / sigma)).sum() + np.log(2 * eps))


def coverage(half_width: float) -> float:
    return 2 * float(stats.norm.cdf(half_width)) - 1


@pytest.mark.parametrize("row", table("population optima"), ids=lambda row: f"eps={row[0]:g}")
def test_population_optima(row: list[float]) -> None:
    eps = row[0]
    found = optimize.minimize_scalar(
        lambda log_v: smoothed_nll(np.exp(log_v), eps), bounds=(-6, 1), method="bounded"
    )
    v = float(np.exp(found.x))
    sigma = np.sqrt(v)
    # q_ε's cdf is the mean of Φ over the box: ∫Φ(u) du = uΦ(u) + φ(u).
    area = lambda u: u * stats.norm.cdf(u) + stats.norm.pdf(u)  # noqa: E731
    cdf = lambda y: (area((y + eps) / sigma) - area((y - eps) / sigma)) * sigma / (2 * eps)  # noqa: E731
    end = optimize.brentq(lambda y: cdf(y) - 0.975, 0, 20)
    expected = [
        eps,
        v,
        1 - eps**2 / 3,
        np.sqrt(v + eps**2 / 3),
        coverage(1.959964 * sigma),
        coverage(end),
        0.5 * np.log(2 * np.pi * v) + 0.5 / v - ENTROPY,
        found.fun - ENTROPY,
    ]
    np.testing.assert_allclose(row, expected, atol=6e-4)


@pytest.mark.parametrize("row", table("one point"), ids=lambda row: f"sigma={row[0]:g}")
def test_loss_of_one_point(row: list[float]) -> None:
    sigma = 1 / np.sqrt(3) if row[0] == 0.577 else row[0]
    exact = -np.log(2 * stats.norm.cdf(1 / sigma) - 1) + np.log(2)
    series = 0.5 * np.log(2 * np.pi * sigma**2) + 1 / (6 * sigma**2)
    np.testing.assert_allclose(row[1:], [exact, series], atol=6e-4)


def test_averaged_expansion_shrinks_the_variance() -> None:
    """v² − (s² + ε²/3)v + (2ε²/3)s² = 0 has the root s² − ε²/3 up to ε⁴."""
    for eps in (0.02, 0.1, 0.2):
        root = np.roots([1, -(1 + eps**2 / 3), 2 * eps**2 / 3]).max()
        assert abs(root - (1 - eps**2 / 3)) < 2 * eps**4


def test_misprinted_mixture_variance_is_negative() -> None:
    sigma, mu = np.array([0.1, 0.1]), np.array([2.0, 2.0])
    assert (sigma**2 + mu).mean() - mu.mean() ** 2 < 0
    assert (sigma**2 + mu**2).mean() - mu.mean() ** 2 == pytest.approx(0.01)
