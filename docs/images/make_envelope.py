"""The README's picture: Deep Ensembles and Accord's default on the same 200 rows.

Both have their default settings and seed 0. Deep Ensembles are trained for 400 epochs instead of
40, without which they do not follow the curve. The band is ±2 standard deviations.
"""

from pathlib import Path

import numpy as np

from accord import DeepEnsembleRegressor, PortfolioRegressor, plots
from accord.plots import legend


def make_data(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """y = x³ + noise of standard deviation 3, with nothing between −1 and 1 and beyond ±4."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-4, -1, n // 2), rng.uniform(1, 4, n // 2)])
    return x, x**3 + 3 * rng.normal(size=n)


def main() -> None:
    x, y = make_data()
    grid = np.linspace(-7, 7, 281)
    models = {
        "Deep Ensembles: five networks, NLL": DeepEnsembleRegressor(epochs=400, random_state=0),
        "Accord's default: PortfolioRegressor()": PortfolioRegressor(random_state=0),
    }
    fig, axes = plots.figure(1, 2, width=9, height=3.6, titles=list(models))
    for ax, model in zip(axes, models.values(), strict=True):
        dist = model.fit(x[:, None], y).predict_dist(grid[:, None])
        plots.envelope(
            x=grid, dist=dist, n_std=2, truth=grid**3, x_data=x, y_data=y, ax=ax, show_legend=False
        )
        ax.set_ylim(-250, 250)
    legend(axes[0], loc="upper left")
    alt = "Two models of the same data; the default widens where there are none."
    plots.save(fig, Path(__file__).with_name("envelope.svg"), alt=alt)


if __name__ == "__main__":
    main()
