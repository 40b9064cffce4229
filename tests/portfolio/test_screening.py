"""Columns that do not matter are found on held-out rows, and nothing looks at them any more."""

import numpy as np
import pytest

from accord._types import Floats
from accord.portfolio import PortfolioRegressor
from accord.portfolio.crossfit import TrainingTable
from accord.portfolio.folds import held_out_parts
from accord.portfolio.screening import columns_that_matter

N = 300


def columns_and_target(n: int = N) -> tuple[Floats, Floats]:
    """The mean is column 0, the noise grows with column 1, 2 to 4 are nothing, 5 hardly varies."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(n, 6))
    x[:, 5] = np.arange(n) < 4
    y = np.sin(3 * x[:, 0]) + 0.05 * np.exp(2 * x[:, 1]) * rng.normal(size=n)
    return x, y


def matter(x: Floats, y: Floats) -> list[bool]:
    measured = np.ones(len(y), bool)
    parts = held_out_parts(x, y, measured, seed=0)
    found = columns_that_matter(
        TrainingTable(x, y, np.ones(len(y)), measured), parts, seed=0
    ).tolist()
    return list(found)


def test_noise_is_left_out_and_what_matters_is_not() -> None:
    found = matter(*columns_and_target())
    assert found[0]
    assert found[1]  # it says how noisy a row is
    assert found[5]  # too few rows differ to say that it does not matter
    assert found[2:5].count(False) >= 2  # one in 80 is kept by chance


@pytest.mark.parametrize("noisy", ["above", "in the middle", "by an interaction"])
def test_a_column_that_only_sets_the_noise_is_kept_above_a_thousand_rows(noisy: str) -> None:
    """A line and a brief network explain little of the mean, and their errors hide the noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(1_200, 7))
    a, b, c = x[:, :3].T
    sign = {"above": c, "in the middle": 0.5 - abs(c), "by an interaction": a * c}[noisy]
    noise = np.where(sign > 0, 0.25, 0.05)
    found = matter(x, np.sin(4 * a) + b * x[:, 3] + noise * rng.normal(size=len(x)))
    assert found[:4] == [True] * 4
    assert found[4:].count(False) >= 2


def test_a_column_that_only_sets_the_noise_is_kept_among_many() -> None:
    """Among so many that no process is trained."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(1_500, 70))
    noise = np.where(x[:, 2] > 0, 0.25, 0.05)
    y = np.sin(4 * x[:, 0]) + x[:, 1] + noise * rng.normal(size=len(x))
    assert matter(x, y)[:3] == [True] * 3


def test_nothing_is_left_out_where_everything_matters() -> None:
    x, _ = columns_and_target()
    assert all(matter(x[:, :3], x[:, 0] + np.square(x[:, 1]) - x[:, 1] * x[:, 2]))


def test_columns_that_say_something_together_are_kept() -> None:
    """None of forty columns matters much alone; without all of them nothing is left."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 40))
    assert sum(matter(x, 0.15 * x.sum(axis=1) + rng.normal(size=N))) >= 30


@pytest.mark.parametrize("n", [60, 199])
def test_few_rows_decide_nothing(n: int) -> None:
    assert all(matter(*columns_and_target(n)))


def test_a_column_that_is_left_out_changes_no_prediction() -> None:
    """Neither mean nor width, however far the column moves."""
    x, y = columns_and_target()
    moved = x.copy()
    model = PortfolioRegressor(effort="quick", random_state=0).fit(x, y)
    assert np.array_equal(x, moved)  # rows of a caller are not written to
    moved[:, model.left_out_] += 1e6
    assert len(model.left_out_) >= 2
    assert np.array_equal(model.predict_interval(x, 0.9), model.predict_interval(moved, 0.9))
    assert any("left out" in note for note in model.notes_)


def test_rows_are_written_to_only_if_they_may_be() -> None:
    x, y = columns_and_target()
    before, idle = x.copy(), np.array([False, False, True, True, False, False])
    table = TrainingTable(x, y, np.ones(len(y)), np.ones(len(y), bool))
    copied = table.without(idle)
    assert np.array_equal(x, before)
    assert np.array_equal(copied.x, np.where(idle, np.median(before, axis=0), before))
    assert np.array_equal(table.without(idle, overwrite=True).x, copied.x)
    assert np.array_equal(x, copied.x)
