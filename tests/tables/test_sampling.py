"""Tables larger than memory: a random sample is read, row numbers are kept, folders are tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accord
from accord._files import OptionError, check_inputs, check_output
from accord.tables import TableError, open_table, prepare_training, read_table

N = 5_000


@pytest.fixture
def frame() -> pd.DataFrame:
    number = np.arange(1, N + 1)
    return pd.DataFrame({"number": number * 1.5, "y": np.sin(number)})


def test_a_sample_has_its_size_its_order_and_the_rows_own_numbers(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", max_rows=400)
    assert table.data.num_rows == 400
    assert table.numbers is not None
    np.testing.assert_array_equal(table.data["number"].to_numpy(), table.numbers * 1.5)
    assert np.all(np.diff(table.numbers) > 0)
    assert table.notes == ("Of 5,000 rows, a random sample of 400 is used.",)


def test_every_part_of_a_file_is_sampled_alike(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "t.parquet")
    numbers = read_table(tmp_path / "t.parquet", max_rows=1_000).numbers
    assert numbers is not None
    counts = np.histogram(numbers, bins=10, range=(1, N))[0]
    assert np.all(np.abs(counts - 100) < 5 * np.sqrt(100 * 0.8)), counts
    even = np.mean(numbers % 2 == 0)
    assert abs(even - 0.5) < 5 * 0.5 / np.sqrt(1_000)


def test_the_sample_does_not_depend_on_the_file_format_or_its_batches(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame.to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=300)
    (tmp_path / "parts").mkdir()
    for part in range(5):
        own = frame.iloc[part * 1_000 : (part + 1) * 1_000]
        own.to_parquet(tmp_path / "parts" / f"{part}.parquet")
    samples = [
        read_table(tmp_path / name, max_rows=300) for name in ("t.csv", "t.parquet", "parts")
    ]
    for other in samples[1:]:
        assert other.numbers is not None
        np.testing.assert_array_equal(other.numbers, samples[0].numbers)


@pytest.mark.parametrize("most", [None, N, 2 * N])
def test_a_table_that_fits_is_read_whole(
    frame: pd.DataFrame, tmp_path: Path, most: int | None
) -> None:
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", max_rows=most)
    assert table.data.num_rows == N
    assert table.numbers is None
    assert table.notes == ()


def test_notes_name_the_row_of_the_file_and_not_of_the_sample(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame["y"] += 1e-3 * frame["number"]
    frame.loc[frame.index % 2 == 1, "y"] = np.nan
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", max_rows=600)
    data = prepare_training(table, target="y", use=["number"])
    np.testing.assert_array_equal(data.X["number"], data.rows * 1.5)
    np.testing.assert_array_equal(table.data["number"].to_numpy()[data.places], data.rows * 1.5)
    assert np.all(data.rows % 2 == 1)


def test_a_model_learns_from_a_sample_of_a_folder(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for part in range(2):
        x = random.uniform(-1, 1, 300)
        pd.DataFrame({"x": x, "who": random.integers(0, 9, 300), "y": 2 * x}).to_parquet(
            tmp_path / f"{part}.parquet"
        )
    model = accord.TableRegressor(
        effort="quick", group="who", max_rows=200, passes=0, random_state=0
    )
    model.fit(tmp_path, "y")
    assert "Of 600 rows, a random sample of 200 is used." in model.notes_
    assert len(model.held_out_.y) == 200
    assert model.held_out_.rows.max() > 200
    assert model.predict(tmp_path).shape == (600,)


def test_files_of_a_folder_must_be_of_one_kind(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "a.parquet")
    frame.rename(columns={"y": "z"}).to_parquet(tmp_path / "b.parquet")
    with (
        pytest.raises(TableError, match=r"b\.parquet has 'number' and 'z' and a\.parquet has"),
        open_table(tmp_path),
    ):
        pass


def test_nothing_is_written_into_a_folder_that_is_read(frame: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is a folder without Parquet files"):
        check_inputs([tmp_path])
    frame.to_parquet(tmp_path / "a.parquet")
    check_inputs([tmp_path])
    with pytest.raises(OptionError, match="which is read as one table"):
        check_output(tmp_path / "out.parquet", inputs=[tmp_path], force=True)
