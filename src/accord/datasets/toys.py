"""Toys whose truth is known, so that an estimated uncertainty can be compared with the real one."""

import numpy as np

from accord._checks import RandomState, check_count, generator_from
from accord._types import Floats
from accord.datasets.registry import Dataset, Truth


def make_cubic(
    n: int = 20,
    *,
    noise: float = 3.0,
    low: float = -4.0,
    high: float = 4.0,
    random_state: RandomState = None,
) -> Dataset:
    """The cubic of the paper's first figure: t = x³ + ξ, ξ ~ N(0, 3²), x uniform in [−4, 4].

    Args:
        n: Number of rows.
        noise: Standard deviation of ξ.
        low, high: Where x is drawn; the figure looks from −6 to 6.
        random_state: Seed.

    **Shape**: X (n, 1), y (n,).

    Example:
        >>> toy = make_cubic(random_state=0)
        >>> toy.truth.mean(np.array([[2.0]])), toy.truth.std(np.array([[2.0]]))
        (array([8.]), array([3.]))
    """
    _check(n, noise)
    truth = Truth(
        mean=lambda X: X[:, 0] ** 3,
        std=lambda X: np.full(len(X), noise, dtype=np.float64),
    )
    about = f"t = x³ + N(0, {noise:g}²), x uniform in [{low:g}, {high:g}]."
    return _draw("cubic", truth, n, low, high, about, random_state)


def make_heteroscedastic(n: int = 1000, *, random_state: RandomState = None) -> Dataset:
    """Noise that depends on the input, after Nix and Weigend (1994).

    With x uniform in [0, π/2],

        μ(x) = sin(2.5 x) · sin(1.5 x),   σ²(x) = 0.01 + 0.25 (1 − sin(2.5 x))².

    Args:
        n: Number of rows.
        random_state: Seed.

    **Shape**: X (n, 1), y (n,).

    Example:
        >>> toy = make_heteroscedastic(100, random_state=0)
        >>> toy.truth.std(np.array([[0.0], [np.pi / 5]])).round(3)
        array([0.51, 0.1 ])
    """
    _check(n, 0.0)
    truth = Truth(
        mean=_waves,
        std=lambda X: np.sqrt(0.01 + 0.25 * (1 - np.sin(2.5 * X[:, 0])) ** 2),
    )
    about = "t = sin(2.5x) sin(1.5x) + N(0, 0.01 + 0.25 (1 − sin 2.5x)²), x uniform in [0, π/2]."
    return _draw("heteroscedastic", truth, n, 0.0, np.pi / 2, about, random_state)


def make_homoscedastic(
    n: int = 1000, *, noise: float = 0.1, random_state: RandomState = None
) -> Dataset:
    """The same mean as :func:`make_heteroscedastic` under noise of one size.

    Args:
        n: Number of rows.
        noise: Standard deviation of the noise.
        random_state: Seed.

    **Shape**: X (n, 1), y (n,).

    Example:
        >>> make_homoscedastic(100, noise=0.2, random_state=0).truth.std(np.zeros((2, 1)))
        array([0.2, 0.2])
    """
    _check(n, noise)
    truth = Truth(mean=_waves, std=lambda X: np.full(len(X), noise, dtype=np.float64))
    about = f"t = sin(2.5x) sin(1.5x) + N(0, {noise:g}²), x uniform in [0, π/2]."
    return _draw("homoscedastic", truth, n, 0.0, np.pi / 2, about, random_state)


def _waves(X: Floats) -> Floats:
    x = X[:, 0]
    return np.sin(2.5 * x) * np.sin(1.5 * x)


def _check(n: int, noise: float) -> None:
    check_count("n", n)
    if not noise >= 0:
        raise ValueError(f"noise must be non-negative, got {noise}. Use 0 for exact targets.")


def _draw(
    name: str,
    truth: Truth,
    n: int,
    low: float,
    high: float,
    about: str,
    random_state: RandomState,
) -> Dataset:
    generator = generator_from(random_state)
    X = generator.uniform(low, high, size=(n, 1))
    return Dataset(
        name=name,
        X=X,
        y=generator.normal(truth.mean(X), truth.std(X)),
        feature_names=("x",),
        target_name="t",
        feature_units=("",),
        target_unit="",
        description=about,
        licence="generated",
        truth=truth,
    )
