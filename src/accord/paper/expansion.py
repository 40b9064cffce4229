"""Appendix B: the expansion of the loss, checked numerically.

With z = (t − μ)/σ, the paper expands the density form of the loss around ε = 0,

    −log g(ε) ≈ ½ log 2πσ² + z²/2 − (ε/σ)²/6 · (z² − 1),

and concludes from it that the minimiser is μ = t, σ = ε/√3, so that σ grows with ε. The exact loss
is compared here with the expansion, and its own minimisers with that conclusion: for a single
point, where there is none, and for data with noise, N(0, s²), where it is σ² ≈ s² − ε²/3.
"""

import math
from collections.abc import Iterable

import numpy as np

from accord._types import Floats
from accord.paper.claims import JudgedClaim, fact
from accord.paper.results import MeanOverSplits, Results
from accord.paper.study import (
    AS_PRINTED,
    SMOOTHED,
    Answer,
    Departure,
    Drawing,
    Group,
    Predictive,
    Protocol,
    Source,
    Study,
    StudyModel,
)
from accord.paper.tables import Entry, ResultColumn, ResultTable

NAME, DATASET = "expansion", "cubic"
EXACT = Source(NAME, "BVM", "formula", "exact")
_Z = np.linspace(0.0, 3.0, 61)
_SIGMA = np.geomspace(1e-3, 10.0, 201)
_EPS = np.geomspace(0.01, 3.0, 61)


def loss(z: Floats, eps: float, sigma: float = 1.0) -> Floats:
    """The exact loss in density form, −log g(ε), at standardised errors z."""
    import torch

    from accord.losses import bvm_loss

    mean = torch.zeros(len(z), dtype=torch.float64)
    target = torch.from_numpy(np.ascontiguousarray(z * sigma))
    variance = torch.full_like(mean, sigma**2)
    value: Floats = bvm_loss(mean, variance, target, eps, density=True).numpy()
    return value


def expansion(z: Floats, eps: float, sigma: float = 1.0) -> Floats:
    """The paper's second-order expansion of the same."""
    return 0.5 * math.log(2 * math.pi * sigma**2) + z**2 / 2 - (eps / sigma) ** 2 / 6 * (z**2 - 1)


def population_std(eps: float, noise: float = 1.0) -> float:
    """The σ that minimises the expected loss of targets N(μ, noise²), by quadrature."""
    from scipy.optimize import minimize_scalar

    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()

    def expected(log_sigma: float) -> float:
        sigma = math.exp(log_sigma)
        return float(weights @ loss(noise * nodes / sigma, eps, sigma))

    bounds = (math.log(noise) - 6, math.log(noise) + 2)
    return math.exp(minimize_scalar(expected, bounds=bounds, method="bounded").x)


def checked() -> tuple[dict[str, float], dict[str, Floats]]:
    """Measures and curves of the whole check, σ = s = 1 unless it is what varies.

    - ``error``: largest |expansion − loss| over |z| ≤ 3, by ε; ``order``: its power of ε near 0;
    - ``loss_by_sigma`` and ``expansion_by_sigma``: at μ = t and ε = 1, by σ;
    - ``population``: the σ that noisy data lead to, by ε, and ``smoothed`` with ε²/3 added.
    """
    errors = np.array([np.abs(expansion(_Z, eps) - loss(_Z, eps)).max() for eps in _EPS])
    at_target = np.zeros(1)
    exact = np.array([loss(at_target, 1.0, sigma)[0] for sigma in _SIGMA])
    expanded = np.array([expansion(at_target, 1.0, sigma)[0] for sigma in _SIGMA])
    grid = np.linspace(0.0, 2.0, 21)[1:]
    population = np.array([population_std(eps) for eps in grid])
    measures = {
        "order": float(np.polyfit(np.log(_EPS[:12]), np.log(errors[:12]), 1)[0]),
        **{f"error_at_{eps:g}": _at(eps, _EPS, errors) for eps in (0.1, 0.5, 1.0, 2.0)},
        "expansion_minimiser": float(_SIGMA[expanded.argmin()]),
        "exact_at_minimiser": float(loss(at_target, 1.0, 3**-0.5)[0]),
        "exact_at_zero": float(exact[0]),
        **{f"population_at_{eps:g}": population_std(eps) for eps in (0.5, 1.0, 1.5)},
    }
    curves = {
        "eps": _EPS,
        "error": errors,
        "sigma": _SIGMA,
        "loss_by_sigma": exact,
        "expansion_by_sigma": expanded,
        "population_eps": grid,
        "population": population,
        "smoothed": np.sqrt(population**2 + grid**2 / 3),
    }
    return measures, curves


def answered(group: str, dataset: str, split: int) -> dict[tuple[str, str], Answer]:
    """The check is the same whatever the data."""
    return {(EXACT.method, EXACT.recipe): Answer(*checked())}


def _at(eps: float, grid: Floats, values: Floats) -> float:
    return float(np.exp(np.interp(math.log(eps), np.log(grid), np.log(values))))


DEPARTURES = (
    Departure(
        "proves that the minimiser of the expansion is μ = t, σ = ε/√3",
        "compares the expansion with the exact loss, and its minimiser with those of the exact "
        "loss: for one point, and for noisy data",
        "the expansion holds for ε ≪ σ, which is not so at that minimiser",
    ),
)
_ROWS = {
    "order": "power of ε in the expansion's error",
    "error_at_0.1": "largest error for z up to 3 at ε = 0.1 σ",
    "error_at_0.5": "… at ε = 0.5 σ",
    "error_at_1": "… at ε = σ",
    "error_at_2": "… at ε = 2 σ",
    "expansion_minimiser": "minimiser σ/ε of the expansion at μ = t (1/√3 = 0.577)",
    "exact_at_minimiser": "exact loss there",
    "exact_at_zero": "exact loss as σ → 0: lower",
    "population_at_0.5": "trained σ/s on noise s, ε = 0.5 s (√(1 − ε²/3) = 0.957)",
    "population_at_1": "… ε = s (0.816)",
    "population_at_1.5": "… ε = 1.5 s (0.5)",
}


def tables(results: Results) -> list[ResultTable]:
    """The quantities of the check."""
    entries = tuple(Entry(DATASET, key, EXACT, _once(results, key), None) for key in _ROWS)
    note = "By quadrature and the exact loss in double precision."
    title = "Appendix B, the expansion checked"
    columns = (ResultColumn("value", entries),)
    return [ResultTable("expansion", title, note, "quantity", tuple(_ROWS.values()), columns)]


def _once(results: Results, measure: str) -> MeanOverSplits | None:
    found = results.estimate(DATASET, EXACT, measure)
    return found and MeanOverSplits(found.value, math.nan, 1)


def claims(results: Results) -> Iterable[JudgedClaim]:
    """The paper's; a formula has no spread, so that nothing is undecided."""
    records = results.at(DATASET, EXACT)
    found = records[0].measures if records else None
    for predictive in (AS_PRINTED, SMOOTHED):
        yield fact(
            "Appendix B",
            "the loss is NLL − ε²/6 [(t−μ)²/σ⁴ − 1/σ²] to its order",
            predictive.name,
            None if found is None else found["order"] > 3,
            f"error of power {found['order']:.2f} in ε; {found['error_at_1']:.2g} at ε = σ"
            if found
            else "",
        )
        yield _grows(found, predictive)


def _grows(found: dict[str, float] | None, predictive: Predictive) -> JudgedClaim:
    """As printed, σ is the networks' own; smoothed, the predictive's, √(σ² + ε²/3)."""
    claim = "the predicted σ grows with ε (least loss at μ = t, σ = ε/√3)"
    if found is None:
        return fact("Appendix B", claim, predictive.name, None, "")
    if predictive is AS_PRINTED:
        text = (
            f"exact loss {found['exact_at_minimiser']:.3f} at ε/√3, {found['exact_at_zero']:.3f} "
            f"as σ → 0; on noise s = ε, σ shrinks to {found['population_at_1']:.2f} s"
        )
        holds = found["exact_at_minimiser"] <= found["exact_at_zero"]
        return fact("Appendix B", claim, predictive.name, holds, text)
    total = math.sqrt(found["population_at_1"] ** 2 + 1 / 3)
    text = f"on noise s = ε, √(σ² + ε²/3) = {total:.3f} s: the noise itself"
    return fact("Appendix B", claim, predictive.name, total > 1.01, text)


def figures(results: Results) -> list[Drawing]:
    """The error of the expansion, both losses at μ = t, and what noisy data lead to."""
    from accord import plots

    records = results.at(DATASET, EXACT)
    if not records:
        return []
    curves = records[0].curves
    one, two = (plots.method_look(number)["color"] for number in (0, 1))
    fig, (left, middle, right) = plots.figure(1, 3, width=10.0, height=3.6)
    left.loglog(curves["eps"], curves["error"], color=one)
    left.set(title="error of the expansion", xlabel="ε/σ", ylabel="largest |error|, |z| ≤ 3")
    middle.semilogx(curves["sigma"], curves["loss_by_sigma"], color=one, label="exact")
    middle.semilogx(
        curves["sigma"], curves["expansion_by_sigma"], "--", color=two, label="expansion"
    )
    middle.set(title="loss at μ = t, ε = 1", xlabel="σ", ylabel="loss", ylim=(0, 4))
    right.plot(curves["population_eps"], curves["population"], color=one, label="trained σ")
    right.plot(curves["population_eps"], curves["smoothed"], "--", color=two, label="√(σ² + ε²/3)")
    right.set(title="noise s = 1", xlabel="ε", ylabel="standard deviation", ylim=(0, 1.4))
    for ax in (middle, right):
        plots.legend(ax)
    return [("expansion", fig, "The loss and its expansion")]


STUDY = Study(
    name=NAME,
    title="Appendix B: the expansion of the loss",
    asks="Is the expansion right, and does σ grow with ε?",
    about="Loss against expansion as ε grows, and the minimisers of both; nothing is trained.",
    departures=DEPARTURES,
    groups=(
        Group(
            NAME,
            "formula",
            Protocol("own", (DATASET,), splits=1, quick_splits=1),
            (StudyModel(EXACT.method, EXACT.recipe, "", {}, (Predictive(EXACT.predictive),)),),
            answered_by=answered,
        ),
    ),
    tables=tables,
    claims=claims,
    figures=figures,
)
