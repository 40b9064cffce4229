"""Shared set-up: one thread per worker, so that parallel tests do not fight for the cores."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the real datasets; tests that need it skip where it is absent."""
    folder = os.environ.get("ACCORD_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("ACCORD_DATA does not point to the datasets")
    return Path(folder)
