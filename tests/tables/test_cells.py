"""What cells are taken to mean, and that they mean the same in training and prediction."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from accord.tables.cells import Reading, UnreadableCells, convert, detect

NAN = float("nan")


def column(values: list[Any]) -> pa.ChunkedArray:
    return pa.chunked_array([values])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2.5", None], [1, 2.5, NAN]),
        (["1e3", "-inf"], [1000, NAN]),
        (["1,234", "1,000,000.5", "7"], [1234, 1000000.5, 7]),
        (["1,5", "1.234,25"], [1.5, 1234.25]),
        (["true", "False", None], [1, 0, NAN]),
        (["10:30", "9:05:10", None], [37800, 32710, NAN]),
        ([1, None, 3], [1, NAN, 3]),
        ([1.5, float("inf")], [1.5, NAN]),
        ([True, None], [1, NAN]),
        ([Decimal("1.5"), None], [1.5, NAN]),
        ([dt.timedelta(minutes=1)], [60]),
        ([dt.time(10, 30), None], [37800, NAN]),
        ([*map(str, range(50)), "?", "?"], [*range(50), NAN, NAN]),
    ],
)
def test_numbers(values: list[Any], expected: list[float]) -> None:
    cells = column(values)
    reading = detect(cells)
    assert reading is not None
    np.testing.assert_array_equal(convert(cells, reading), np.array(expected, dtype=float))


@pytest.mark.parametrize(
    "values",
    [
        ["2020-12-31", "2021-02-01", None],
        ["2020-12-31T00:00:00Z", "2021-02-01T00:00:00Z", None],
        ["31.12.2020", "01.02.2021", None],
        ["12/31/2020", "02/01/2021", None],
        ["31 December 2020", "1 February 2021", None],
        ["Dec 31, 2020", "Feb 1, 2021", None],
        [dt.date(2020, 12, 31), dt.date(2021, 2, 1), None],
        [dt.datetime(2020, 12, 31), dt.datetime(2021, 2, 1), None],
    ],
)
def test_dates_in_many_coats(values: list[Any]) -> None:
    cells = column(values)
    reading = detect(cells)
    assert reading is not None
    assert reading.kind == "date"
    expected = np.array(["2020-12-31", "2021-02-01", "NaT"], dtype="datetime64[us]")
    np.testing.assert_array_equal(convert(cells, reading), expected)


def test_dates_beyond_the_nanosecond_era() -> None:
    cells = column(["9999-12-31", "2020-01-01"])
    assert convert(cells, Reading("date"))[0] == np.datetime64("9999-12-31")


def test_the_comma_follows_the_separator() -> None:
    cells = column(["1,234", "5,678"])
    as_thousands, as_decimals = detect(cells), detect(cells, delimiter=";")
    assert as_thousands is not None
    assert as_decimals is not None
    assert convert(cells, as_thousands)[0] == 1234
    assert convert(cells, as_decimals)[0] == 1.234


@pytest.mark.parametrize(
    "values", [["a", "b", None], ["1-2-3", "99-99-99"], ["2020-13-45", "x"], ["A1", "12"]]
)
def test_all_else_is_a_category(values: list[Any]) -> None:
    cells = column(values)
    reading = detect(cells)
    assert reading == Reading("category")
    # how a missing cell is held depends on pandas' version
    assert [None if pd.isna(cell) else cell for cell in convert(cells, reading)] == values


def test_dictionary_columns_are_read_as_their_values() -> None:
    cells = pa.chunked_array([pa.array(["a", "b", "a"]).dictionary_encode()])
    assert detect(cells) == Reading("category")
    assert list(convert(cells, Reading("category"))) == ["a", "b", "a"]


@pytest.mark.parametrize("values", [[[1], [2]], [b"x"], [{"a": 1}]])
def test_types_that_no_model_can_use(values: list[Any]) -> None:
    assert detect(column(values)) is None


@pytest.mark.parametrize(
    ("values", "reading", "message"),
    [
        (["1", "x", None, "y"], Reading("number"), "numbers, got 'x' in row 2 and 1 more"),
        (["1", "-"], Reading("number", missing_tokens=("?",)), "got '-'"),
        (["true", "maybe"], Reading("boolean"), "true or false, got 'maybe' in row 2"),
        (["2020-01-01", "soon"], Reading("date"), "dates, got 'soon'"),
        (["31/01/2020", "01/31/2020"], Reading("date", date_format="%d/%m/%Y"), "row 2"),
        (["late"], Reading("time"), "times of day"),
        ([1.5], Reading("category"), "text, not double"),
        ([1], Reading("date"), "dates, not int64"),
        ([dt.date(2020, 1, 1)], Reading("number"), "numbers, not date32"),
    ],
)
def test_cells_that_changed_their_meaning(
    values: list[Any], reading: Reading, message: str
) -> None:
    with pytest.raises(UnreadableCells) as caught:
        convert(column(values), reading)
    assert message in caught.value.sentence()


@pytest.mark.parametrize("kind", ["number", "boolean", "time", "date", "category"])
def test_a_batch_of_nothing_but_missing_cells(kind: Any) -> None:
    converted = convert(column([None, None]), Reading(kind))
    assert converted.shape == (2,)
