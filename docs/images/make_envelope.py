"""The README's picture: the same networks trained on NLL and within a local tolerance."""

from pathlib import Path

import numpy as np

from accord import BVMRegressor, plots

SETTINGS = {"mean_head": "identity", "epochs": 200, "hidden": (100,), "random_state": 0}


def make_data(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-4, -1, n // 2), rng.uniform(1, 4, n // 2)])
    return x, x**3 + 3 * rng.normal(size=n)


def main() -> None:
    x, y = make_data()
    grid = np.linspace(-7, 7, 281)
    titles = {0.0: "Trained on NLL: Deep Ensembles", "local": "Agreement within a local tolerance"}
    fig, axes = plots.figure(1, 2, width=9, height=3.6, titles=list(titles.values()))
    for ax, tolerance in zip(axes, titles, strict=True):
        model = BVMRegressor(tolerance=tolerance, **SETTINGS).fit(x[:, None], y)
        dist = model.predict_dist(grid[:, None])
        plots.envelope(
            x=grid, dist=dist, n_std=2, truth=grid**3, x_data=x, y_data=y, ax=ax, show_legend=False
        )
        ax.set_ylim(-250, 250)
    axes[0].legend(*axes[0].get_legend_handles_labels(), loc="upper left", frameon=False)
    alt = "Two ensembles on the same data; only the second widens where there are none."
    plots.save(fig, Path(__file__).with_name("envelope.svg"), alt=alt)


if __name__ == "__main__":
    main()
