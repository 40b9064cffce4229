"""Invented results for every cell of every study, so that tables and verdicts can be tested."""

from collections.abc import Callable

import numpy as np

from accord.paper import STUDIES
from accord.paper.results import Results
from accord.paper.sets import TOY_GRID
from accord.paper.stacks import Cell, Record, cells_of, stacks_of

Level = Callable[[Cell], float]
LEVELS = np.arange(1, 10) / 10


def invented(nll: Level = lambda cell: 1.0, *, ece: Level = lambda cell: 0.03) -> Results:
    """Results whose NLL and ECE are as stated, with a little noise over the splits."""
    stacks = stacks_of(STUDIES, quick=False)
    return Results(record_of(cell, nll, ece) for stack in stacks for *_, cell in cells_of(stack))


def record_of(cell: Cell, nll: Level, ece: Level) -> Record:
    wiggle = 0.01 * (-1) ** cell.split
    if cell.source.study == "expansion":
        measures = {"order": 4.0, "exact_at_minimiser": 0.8, "exact_at_zero": 0.7}
        measures |= dict.fromkeys(_EXPANSION, 0.5)
        return Record(
            cell.source,
            cell.dataset,
            cell.split,
            measures,
            {name: [1.0, 2.0] for name in _EXPANSION_CURVES},
        )
    measures = dict.fromkeys(
        ("rmse", "mae", "crps", "width95", "mean_shift", "variance_shift"), 1.0
    )
    measures |= {"coverage95": 0.9, "n_test": 50.0}
    measures |= {name: nll(cell) + wiggle for name in ("nll", "nll_exact")}
    n = {"figure1": len(TOY_GRID), "table2": 20}.get(cell.source.study, 0)
    curves = {"observed": (LEVELS - ece(cell)).tolist()}
    curves |= {name: [1.0] * n for name in ("mean", "std")}
    return Record(cell.source, cell.dataset, cell.split, measures, curves, networks=5, seconds=2.0)


_EXPANSION = (
    *(f"error_at_{eps:g}" for eps in (0.1, 0.5, 1.0, 2.0)),
    "expansion_minimiser",
    *(f"population_at_{eps:g}" for eps in (0.5, 1.0, 1.5)),
)
_EXPANSION_CURVES = (
    "eps",
    "error",
    "sigma",
    "loss_by_sigma",
    "expansion_by_sigma",
    "population_eps",
    "population",
    "smoothed",
)
