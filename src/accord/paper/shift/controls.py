"""Negative controls: changes that carry no information must not widen intervals.

A column of pure noise is added to the features. On test rows it is then shifted, or shuffled; and
the model is trained with five such columns. Widths are compared with those of the same rows
without the change.
"""

import time

import numpy as np

from accord._types import Floats
from accord.metrics import interval_width
from accord.paper.shift.families import RANDOM, case
from accord.paper.shift.methods import ACCORD, EFFORT
from accord.paper.study import Answer
from accord.portfolio import PortfolioRegressor

__all__ = ["ADDED", "CONTROLS", "GROUP", "SHIFT", "SHIFTED", "SHUFFLED", "answered"]

GROUP = "controls"
SHIFTED, SHUFFLED, ADDED = "shifted noise column", "shuffled noise column", "five noise columns"
CONTROLS = (SHIFTED, SHUFFLED, ADDED)
# How far the column moves, in its standard deviations.
SHIFT = 3.0


def answered(group: str, dataset: str, split: int) -> dict[tuple[str, str], Answer]:
    """How much the 90 % intervals of random test rows widen under each control, as a share."""
    start = time.process_time()
    rows = case(RANDOM, dataset, split)
    random = np.random.default_rng([split, 2])
    noise, asked = (random.normal(size=(len(x), 5)) for x in (rows.X_train, rows.X_test))
    bare, one, five = (
        _model(np.column_stack([rows.X_train, noise[:, :n]]), rows.y_train, seed=split)
        for n in (0, 1, 5)
    )

    def width(model: PortfolioRegressor, columns: Floats) -> float:
        X = np.column_stack([rows.X_test, columns])
        return interval_width(y_true=rows.y_test, dist=model.predict_dist(X), coverage=0.9)

    column = asked[:, :1]
    usual = width(one, column)
    growths = {
        SHIFTED: width(one, column + SHIFT) / usual - 1,
        SHUFFLED: width(one, random.permutation(column)) / usual - 1,
        ADDED: width(five, asked) / width(bare, asked[:, :0]) - 1,
    }
    seconds = (time.process_time() - start) / len(growths)
    return {
        (ACCORD, control): Answer({"growth": growth, "seconds": seconds}, {})
        for control, growth in growths.items()
    }


def _model(X: Floats, y: Floats, *, seed: int) -> PortfolioRegressor:
    return PortfolioRegressor(effort=EFFORT, random_state=seed).fit(X, y)
