"""The paper's figures from our records, and one that shows the outliers of all sets at once."""

from collections.abc import Callable, Sequence
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from accord import plots
from accord.datasets import info, load
from accord.distributions import Normal
from accord.experiments import published
from accord.experiments.folds import TOY_GRID, folds
from accord.experiments.measures import LEVELS
from accord.experiments.results import Results
from accord.metrics import ReliabilityCurve
from accord.plots.style import PALETTE, ink, legend, method_look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawing", "drawings_of"]

_GAPS = (-30, -10, -3, -1, -0.3, 0, 0.3, 1, 3, 10, 30, 100)
Drawing = tuple[str, "Figure", str]  # name, figure, what it shows in words


def drawings_of(study: str, results: Results) -> list[Drawing]:
    """The figures of a study, as far as their records exist."""
    return _DRAWERS[study](results) if study in _DRAWERS else []


def _figure1(results: Results) -> list[Drawing]:
    panels = [
        ("MSE Ensemble", "plain", "MSE ensemble of 5"),
        ("BVM single", "model", "single BVM, N(μ, σ²)"),
        ("BVM", "model", "BVM ensemble of 5, N(μ, σ²)"),
        ("BVM", "local", "BVM ensemble, local tolerance"),
    ]
    [toy] = folds("cubic", "toy", [0])
    found = [(title, results.at("figure1", "cubic", m, v)) for m, v, title in panels]
    found = [(title, records) for title, records in found if records and records[0].split == 0]
    if not found:
        return []
    fig, axes = plots.figure(2, 2, height=6.4)
    for place, (ax, (title, records)) in enumerate(zip(axes, found, strict=False)):
        curves = records[0].curves
        plots.envelope(
            x=TOY_GRID,
            mean=curves["mean"],
            std=curves["std"],
            n_std=3.0,
            truth=TOY_GRID**3,
            x_data=toy.X_train[:, 0],
            y_data=toy.y_train,
            show_legend=place == 0,
            ax=ax,
        )
        ax.set(title=title, ylim=(-220, 220))
    return [("figure1", fig, "Cubic toy: predictions with bands of three standard deviations")]


def _curve(
    results: Results, study: str, dataset: str, method: str, variant: str
) -> ReliabilityCurve:
    observed = results.reliability(study, dataset, method, variant)
    rows = sum(record.measures["n_test"] for record in results.at(study, dataset, method, variant))
    return ReliabilityCurve(np.array(LEVELS), observed.mean(axis=0), int(rows))


def _reliability_panel(results: Results, dataset: str, recipe: str) -> dict[str, ReliabilityCurve]:
    places = {
        "MSE ensemble": ("calibration", "MSE Ensemble", recipe),
        "Deep Ensembles": ("table1", "Deep Ensembles", recipe),
        "BVM": ("table1", "BVM", f"{recipe}, model"),
        "BVM, local": ("table1", "BVM", f"{recipe}, local"),
    }
    return {
        label: _curve(results, study, dataset, method, variant)
        for label, (study, method, variant) in places.items()
        if results.at(study, dataset, method, variant)
    }


def _calibration(results: Results) -> list[Drawing]:
    drawings: list[Drawing] = []
    recipe = "rate 3e-3"
    energy = _reliability_panel(results, "energy", recipe)
    if energy:
        fig, [ax] = plots.figure(height=4.6)
        plots.reliability_diagram(energy, ax=ax)
        ax.set_title("Energy")
        drawings.append(("figure2", fig, "Reliability diagram of the energy data"))
    names = published.datasets("calibration")
    panels = {name: _reliability_panel(results, name, recipe) for name in names}
    panels = {name: curves for name, curves in panels.items() if curves}
    if len(panels) > 1:
        n_rows = ceil(len(panels) / 3)
        fig, axes = plots.figure(n_rows, 3, width=11.8, height=5.1 * n_rows)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        for ax, (name, curves) in zip(axes, panels.items(), strict=False):
            plots.reliability_diagram(curves, ax=ax)
            ax.set_title(info(name).title)
        drawings.append(("reliability", fig, "Reliability diagrams of the nine datasets"))
    return drawings


def _stocks(results: Results) -> list[Drawing]:
    drawings: list[Drawing] = []
    for variant, title in (
        ("model", "predicted with N(μ, σ²), as in the paper"),
        ("smoothed", "predicted with the density smoothed by its tolerance"),
    ):
        places = {
            "Deep Ensembles": ("Deep Ensembles", "plain"),
            "BVM ε = 0.01": ("BVM eps=0.01", variant),
            "BVM ε = 0.1": ("BVM eps=0.1", variant),
        }
        found = {label: results.at("table2", "google", *place) for label, place in places.items()}
        if not all(found.values()):
            continue
        holdout = load("google").holdout
        if holdout is None:
            continue
        fig, [ax] = plots.figure(height=4.4)
        plots.series_envelope(
            x=np.arange(1, len(holdout.y) + 1),
            y_true=holdout.y,
            methods={
                label: Normal(records[0].curves["mean"], records[0].curves["std"])
                for label, records in found.items()
            },
            ax=ax,
        )
        ax.set(title=title, xlabel="trading day of January 2017", ylabel="opening price [USD]")
        ax.set_xticks(range(1, len(holdout.y) + 1))
        drawings.append((f"stocks-{variant}", fig, f"Google stocks, January 2017, {title}"))
    return drawings


def _outliers(results: Results) -> list[Drawing]:
    """NLL above that of Deep Ensembles, by dataset: left of the line is better."""
    places: Sequence[tuple[str, str, str]] = (
        ("BVM, as the paper", "BVM", "model"),
        ("smoothed, ε = 0.01", "BVM", "smoothed"),
        ("smoothed, ε = 0.1", "BVM eps=0.1", "smoothed"),
        ("local", "BVM", "local"),
    )
    names = published.datasets("table3")
    fig, [ax] = plots.figure(height=4.8)
    drawn = False
    for number, (label, method, variant) in enumerate(places):
        gaps = [
            results.difference(
                "table3", name, (method, variant), ("Deep Ensembles", "plain"), "nll"
            )
            for name in names
        ]
        shown = [(place, gap) for place, gap in enumerate(gaps) if gap is not None]
        if shown:
            drawn = True
            ax.errorbar(
                [gap.value for _, gap in shown],
                [place + 0.16 * (number - 1.5) for place, _ in shown],
                xerr=np.nan_to_num([gap.error for _, gap in shown]),
                label=label,
                linestyle="none",
                capsize=2,
                **method_look(number),
            )
    if not drawn:
        return []
    ax.axvline(0.0, color=ink(ax), alpha=0.6, linewidth=1)
    ax.set(
        title="Outliers: test NLL against Deep Ensembles",
        xlabel="NLL − NLL of Deep Ensembles (lower is better)",
        yticks=range(len(names)),
        yticklabels=[info(name).title for name in names],
    )
    ax.set_xscale("symlog", linthresh=0.5)
    low, high = ax.get_xlim()
    ticks = [tick for tick in _GAPS if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks], minor=False)
    ax.minorticks_off()
    ax.invert_yaxis()
    legend(ax)
    return [("table3", fig, "Test NLL on outliers against Deep Ensembles, by dataset and variant")]


def _expansion(results: Results) -> list[Drawing]:
    records = results.at("expansion", "cubic", "BVM", "exact")
    if not records:
        return []
    curves = records[0].curves
    fig, (left, middle, right) = plots.figure(1, 3, width=10.0, height=3.6)
    left.loglog(curves["eps"], curves["error"], color=PALETTE[0])
    left.set(title="error of the expansion", xlabel="ε/σ", ylabel="largest |error|, |z| ≤ 3")
    middle.semilogx(curves["sigma"], curves["loss_by_sigma"], color=PALETTE[0], label="exact")
    middle.semilogx(
        curves["sigma"], curves["expansion_by_sigma"], "--", color=PALETTE[1], label="expansion"
    )
    middle.set(title="loss at μ = t, ε = 1", xlabel="σ", ylabel="loss", ylim=(0, 4))
    legend(middle)
    right.plot(curves["population_eps"], curves["population"], color=PALETTE[0], label="trained σ")
    right.plot(
        curves["population_eps"], curves["smoothed"], "--", color=PALETTE[1], label="√(σ² + ε²/3)"
    )
    right.set(title="noise s = 1", xlabel="ε", ylabel="standard deviation", ylim=(0, 1.4))
    legend(right)
    return [("expansion", fig, "The loss and its expansion")]


_DRAWERS: dict[str, Callable[[Results], list[Drawing]]] = {
    "figure1": _figure1,
    "calibration": _calibration,
    "table2": _stocks,
    "table3": _outliers,
    "expansion": _expansion,
}
