"""Shared set-up: one thread per worker, so that parallel tests do not fight for the cores."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

if TYPE_CHECKING:
    from accord.workflows import FitResult

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the real datasets; tests that need it skip where it is absent."""
    folder = os.environ.get("ACCORD_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("ACCORD_DATA does not point to the datasets")
    return Path(folder)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars are drawn at every report, also of short work."""
    monkeypatch.setattr("accord._progress._PATIENCE", -1.0)
    monkeypatch.setattr("accord._progress._PACE", -1.0)


@pytest.fixture(scope="session")
def houses() -> pd.DataFrame:
    """A table as people have it: numbers, gaps, categories, dates, a constant, hostile names."""
    rng = np.random.default_rng(0)
    n = 150
    area, age = rng.uniform(40, 200, n), rng.uniform(0, 80, n)
    town = rng.choice(["Ulm", "Bonn", "<b>Kiel</b>"], n, p=[0.5, 0.4, 0.1])
    frame = pd.DataFrame(
        {
            "house": [f"H{i:03d}" for i in range(n)],
            "area": area.round(1),
            "age": np.where(rng.random(n) < 0.1, np.nan, age.round(1)),
            "town": town,
            "sold": pd.date_range("2020-01-01", periods=n, freq="5D").strftime("%Y-%m-%d"),
            "<script>alert(1)</script>": rng.normal(size=n).round(3),
            "country": "DE",
        }
    )
    noise = rng.normal(0, 10 + area / 10)
    frame["price"] = (2 * area - age / 2 + 20 * (town == "Ulm") + noise).round(2)
    return frame


@pytest.fixture(scope="session")
def fitted(houses: pd.DataFrame) -> "FitResult":
    """A quick fit of the houses, for all who need one."""
    from accord.workflows import fit_table, table_model

    return fit_table(table_model(effort="quick"), houses, "price")


@pytest.fixture(scope="session")
def model_file(fitted: "FitResult", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quick fit as a file."""
    path = tmp_path_factory.mktemp("model") / "model.accord"
    fitted.model.save(path)
    return path
