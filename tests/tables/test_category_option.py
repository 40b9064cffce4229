"""``category``: numbers that are names of kinds, in whatever type a file brings them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import accord
from accord._files import OptionError
from accord.tables import conform, prepare_training, read_table

RANDOM = np.random.default_rng(0)
KIND = RANDOM.choice([7, 12, 30], 60)
FRAME = pd.DataFrame({"kind": KIND, "x": RANDOM.normal(size=60), "y": 5.0 * (KIND == 12)})
FRAME["y"] += FRAME["x"] + 0.1 * RANDOM.normal(size=60)


@pytest.mark.parametrize("written", ["integers", "floats with gaps", "text"])
def test_numbers_become_categories_whatever_their_type(written: str, tmp_path: Path) -> None:
    frame = FRAME.copy()
    if written == "floats with gaps":
        frame["kind"] = frame["kind"].astype(float)
        frame.loc[3, "kind"] = np.nan
    if written == "text":
        frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv" if written == "text" else frame)
    data = prepare_training(table, target="y", category=["kind"])
    (kind,) = (column for column in data.schema.columns if column.name == "kind")
    assert kind.categories == ("12", "30", "7")
    new = pa.table({"kind": [12, 99], "x": [0.0, 0.0]})
    found = conform(new, data.schema, source="new rows")
    assert found.X["kind"].tolist() == ["12", "99"]


def test_a_model_keeps_it_in_its_file(tmp_path: Path) -> None:
    model = accord.TableRegressor(effort="quick", category=["kind"], random_state=0)
    model.fit(FRAME, "y").save(tmp_path / "m.accord")
    again = accord.load(tmp_path / "m.accord")
    rows = pd.DataFrame({"kind": [7, 12, 30], "x": 0.0})
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    low, high, other = again.predict(rows)
    assert high - max(low, other) > 3


def test_it_must_be_a_column_with_no_other_role() -> None:
    with pytest.raises(OptionError, match="one role"):
        prepare_training(read_table(FRAME), target="y", category=["y"])
