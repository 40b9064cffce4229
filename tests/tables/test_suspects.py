"""Copies, groups and times are found, and ordinary columns are left in peace."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest

from accord.tables import prepare_training, read_table, suspects

N = 300
rng = np.random.default_rng(0)


def found(**columns: Any) -> dict[str, str]:
    frame = pd.DataFrame({"x": rng.normal(size=N), **columns, "y": rng.normal(size=N)})
    data = prepare_training(read_table(frame), target="y")
    return {suspect.column: suspect.role for suspect in suspects(data.X, data.schema)}


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("patient_id", np.arange(N) % 40, "group"),
        ("person", [f"p{i % 60}" for i in range(N)], "group"),
        ("t", np.arange(N), "time"),
        ("measured", pd.date_range("2020-01-01", periods=N), "time"),
        ("level", np.sort(rng.normal(size=N)), "time"),
        ("year", rng.integers(1990, 2020, N), "time"),
    ],
)
def test_groups_and_times_are_pointed_out(name: str, values: Any, role: str) -> None:
    assert found(**{name: values}) == {name: role}


def test_a_code_that_fixes_other_columns_is_a_group() -> None:
    code = rng.integers(0, 30, N)
    fixed = rng.integers(0, 8, 30)[code], rng.integers(0, 5, 30)[code]
    assert found(code=code, born=fixed[0], home=fixed[1]).get("code") == "group"


def test_ordinary_columns_are_not_suspected() -> None:
    ordinary = found(
        rooms=rng.integers(1, 9, N), town=rng.choice(["Ulm", "Bonn", "Kiel"], N), z=rng.random(N)
    )
    assert ordinary == {}


def test_a_time_of_day_orders_no_rows() -> None:
    assert found(time=[dt.time(hour % 24, 30) for hour in rng.integers(0, 24, N)]) == {}


def test_the_sentence_names_column_and_switch() -> None:
    frame = pd.DataFrame({"patient": np.arange(N) % 40, "y": rng.normal(size=N)})
    data = prepare_training(read_table(frame), target="y")
    (suspect,) = suspects(data.X, data.schema)
    assert "'patient' looks like a group (40 values" in suspect.sentence
    assert "--group" in suspect.sentence
