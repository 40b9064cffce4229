"""The README's picture: Deep Ensembles and Accord's default on the same 200 rows.

Both have their default settings and seed 0. Deep Ensembles are trained for 400 epochs instead of
40, without which they do not follow the curve. The bands are 90 % intervals.
"""

from pathlib import Path

import numpy as np

from accord import DeepEnsembleRegressor, PortfolioRegressor, plots
from accord.plots import PALETTE, legend

BLUE, VERMILLION, *_ = PALETTE


def wave(x: np.ndarray) -> np.ndarray:
    return np.sin(1.5 * x) + 0.25 * x


def make_data(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """A wave with noise that grows outwards, with nothing from −1 to 1.5, below −4 and above 5."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-4, -1, n // 2), rng.uniform(1.5, 5, n // 2)])
    return x, wave(x) + (0.1 + 0.04 * np.abs(x)) * rng.normal(size=n)


def main() -> None:
    x, y = make_data()
    grid = np.linspace(-7, 8, 301)
    models = {
        "Deep Ensembles: five networks, NLL": DeepEnsembleRegressor(epochs=400, random_state=0),
        "Accord's default: PortfolioRegressor()": PortfolioRegressor(random_state=0),
    }
    fig, axes = plots.figure(1, 2, width=9, height=3.6, titles=list(models))
    for ax, model in zip(axes, models.values(), strict=True):
        lower, upper = model.fit(x[:, None], y).predict_interval(grid[:, None], coverage=0.9).T
        ax.fill_between(grid, lower, upper, color=BLUE, alpha=0.35, lw=0, label="90 % interval")
        ax.plot(grid, model.predict(grid[:, None]), color=BLUE, lw=1.8, label="prediction")
        ax.plot(grid, wave(grid), color=VERMILLION, lw=1.4, ls=(0, (5, 2)), label="truth")
        ax.plot(x, y, color="0.15", lw=0, marker="o", ms=3, mec="none", label="data")
        ax.set(xlabel="x", ylabel="y", xlim=(-7, 8), ylim=(-6.5, 6.5))
    legend(axes[0], loc="lower right")
    alt = "Two models of the same data; the default widens where there are none."
    plots.save(fig, Path(__file__).with_name("envelope.svg"), alt=alt)


if __name__ == "__main__":
    main()
