from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from accord.service import Service


@pytest.fixture(scope="module")
def service(model_file: Path) -> Iterator[Service]:
    """The houses' quick model, ready to answer."""
    made = Service(model_file)
    made.open()
    yield made
    made.close()


@pytest.fixture
def rows(houses: pd.DataFrame) -> list[dict[str, object]]:
    """A few houses as JSON records; gaps are null."""
    frame = houses.head(5).drop(columns="price").astype(object)
    return frame.where(frame.notna(), None).to_dict("records")
