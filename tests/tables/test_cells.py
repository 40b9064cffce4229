"""What cells are taken to mean, and that they mean the same in training and prediction."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from accord.tables import prepare_training, read_table
from accord.tables.cells import CellFormat, UnreadableCells, convert
from accord.tables.detection import decimal_mark, detect

NAN = float("nan")


def column(values: list[Any]) -> pa.ChunkedArray:
    return pa.chunked_array([values])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2.5", None], [1, 2.5, NAN]),
        (["1e3", "-inf"], [1000, -np.inf]),
        (["1,234", "1,000,000.5", "7"], [1234, 1000000.5, 7]),
        (["1,5", "1.234,25"], [1.5, 1234.25]),
        (["true", "False", None], [1, 0, NAN]),
        (["10:30", "9:05:10", None], [37800, 32710, NAN]),
        ([1, None, 3], [1, NAN, 3]),
        ([1.5, float("inf")], [1.5, np.inf]),
        (["$1,234.50", "-$7", None], [1234.5, -7, NAN]),
        (["12 %", "7.5%", "3"], [12, 7.5, 3]),
        (["1.234,56 €", "0,50 €"], [1234.56, 0.5]),
        (["USD 1,200", "USD 15"], [1200, 15]),
        (["1 234.5", "12", "1'000"], [1234.5, 12, 1000]),
        (["1\u00a0234,5", "12"], [1234.5, 12]),
        (["0,500", "1,250"], [0.5, 1.25]),
        (["23:59", "26:30:05.5", None], [86340, 95405.5, NAN]),
        (["1", " NA ", "None", "n/a"], [1, NAN, NAN, NAN]),
        ([True, None], [1, NAN]),
        ([Decimal("1.5"), None], [1.5, NAN]),
        ([dt.timedelta(minutes=1)], [60]),
        ([dt.time(10, 30), None], [37800, NAN]),
        ([*map(str, range(50)), "?", "?"], [*range(50), NAN, NAN]),
        (["(1,234.50)", "2,000", "7-", "\u22123"], [-1234.5, 2000, -7, -3]),
        (["($1,234.50)", "$2.00", "-$3"], [-1234.5, 2, -3]),
        (["1.5", "-", "2.5", "."], [1.5, NAN, 2.5, NAN]),
        (["#DIV/0!", "1", "#REF!"], [NAN, 1, NAN]),
        (["12.5 kg", "13 kg"], [12.5, 13]),
        (["1 248 cc", "998 cc"], [1248, 998]),
        (["120m²", "85m²"], [120, 85]),
        (["1,23,456.50", "2,000"], [123456.5, 2000]),
        (["R$ 1.234,50", "R$ 7,00"], [1234.5, 7]),
        (["US$5", "-US$1,200"], [5, -1200]),
        (["12 m2", "7.5 m2"], [12, 7.5]),
        (['="12"', '="0.5"'], [12, 0.5]),
        (["1:30 PM", "12:05 am", "9:00 a.m."], [48600, 300, 32400]),
        (["0 days 00:10:00", "-1 days +23:50:00", None], [600, -600, NAN]),
        (["1 day, 2:00:00", "0:30:00"], [93600, 1800]),
        ([*map(str, range(30)), "<0.5", "≥ 40", ">=9"], [*range(30), 0.5, 40, 9]),
        ([*(f"{n} mg" for n in range(40)), "<5 mg", "n.d."], [*range(40), 5, NAN]),
    ],
)
def test_numbers(values: list[Any], expected: list[float]) -> None:
    cells = column(values)
    cells_format = detect(cells)
    assert cells_format is not None
    np.testing.assert_array_equal(convert(cells, cells_format), np.array(expected, dtype=float))


@pytest.mark.parametrize(
    "values",
    [
        ["2020-12-31", "2021-02-01", None],
        ["2020-12-31T00:00:00Z", "2021-02-01T00:00:00Z", None],
        ["31.12.2020", "01.02.2021", None],
        ["12/31/2020", "02/01/2021", None],
        ["31 December 2020", "1 February 2021", None],
        ["Dec 31, 2020", "Feb 1, 2021", None],
        ["31DEC2020", "01FEB2021", None],
        ["31.12.2020, 00:00:00", "01.02.2021, 00:00:00", None],
        ["12/31/2020, 12:00:00 AM", "2/1/2021, 12:00:00 AM", None],
        ["20201231T000000", "20210201T000000", None],
        [dt.date(2020, 12, 31), dt.date(2021, 2, 1), None],
        [dt.datetime(2020, 12, 31), dt.datetime(2021, 2, 1), None],
    ],
)
def test_dates_in_many_coats(values: list[Any]) -> None:
    cells = column(values)
    cells_format = detect(cells)
    assert cells_format is not None
    assert cells_format.kind == "date"
    expected = np.array(["2020-12-31", "2021-02-01", "NaT"], dtype="datetime64[us]")
    np.testing.assert_array_equal(convert(cells, cells_format), expected)


def test_dates_beyond_the_nanosecond_era() -> None:
    cells = column(["9999-12-31", "2020-01-01"])
    assert convert(cells, CellFormat("date"))[0] == np.datetime64("9999-12-31")


def test_a_doubtful_comma_follows_the_table() -> None:
    cells = column(["1,234", "5,678"])
    for mark, expected in ((None, 1234), (".", 1234), (",", 1.234)):
        found = detect(cells, decimal=mark)
        assert found is not None
        assert convert(cells, found)[0] == expected
    doubtful = column(["1.234", "5.678"])
    for mark, expected in ((None, 1.234), (",", 1234)):
        found = detect(doubtful, decimal=mark)
        assert found is not None
        assert convert(doubtful, found)[0] == expected


@pytest.mark.parametrize(
    ("columns", "mark"),
    [
        ({"a": ["0,5"], "b": ["1,234"]}, ","),
        ({"a": ["0.5"], "b": ["1,234"]}, "."),
        ({"a": ["1,234"], "b": ["x"]}, None),
        ({"a": ["0,5"], "b": ["0.5"]}, None),
        ({"a": [0.5], "b": ["3,5 €"]}, ","),
    ],
)
def test_the_decimal_mark_of_a_table(columns: dict[str, list[Any]], mark: str | None) -> None:
    assert decimal_mark(pa.table(columns)) == mark


def test_a_category_called_none_is_one() -> None:
    cells = column(["None", "Brick", "Stone", "NA", None])
    found = detect(cells)
    assert found == CellFormat("category")
    assert list(convert(cells, found))[:3] == ["None", "Brick", "Stone"]
    assert pd.isna(list(convert(cells, found))[3])


@pytest.mark.parametrize("values", [["$5", "€5"], ["5 kg", "6 lb"], ["A1", "A2"], ["%", "$"]])
def test_units_that_are_not_one_sign_are_text(values: list[str]) -> None:
    assert detect(column(values)) == CellFormat("category")


def test_what_is_done_to_cells_is_said() -> None:
    found = detect(column(["1.234,56 €", "2,50 €"]))
    assert found is not None
    assert found.remark() == "numbers without the sign €; the comma is the decimal mark"


@pytest.mark.parametrize(
    "values", [["a", "b", None], ["1-2-3", "99-99-99"], ["2020-13-45", "x"], ["A1", "12"]]
)
def test_all_else_is_a_category(values: list[Any]) -> None:
    cells = column(values)
    cells_format = detect(cells)
    assert cells_format == CellFormat("category")
    # how a missing cell is held depends on pandas' version
    assert [None if pd.isna(cell) else cell for cell in convert(cells, cells_format)] == values


def test_dictionary_columns_are_read_as_their_values() -> None:
    cells = pa.chunked_array([pa.array(["a", "b", "a"]).dictionary_encode()])
    assert detect(cells) == CellFormat("category")
    assert list(convert(cells, CellFormat("category"))) == ["a", "b", "a"]


@pytest.mark.parametrize("values", [[[1], [2]], [b"x"], [{"a": 1}]])
def test_types_that_no_model_can_use(values: list[Any]) -> None:
    assert detect(column(values)) is None


@pytest.mark.parametrize(
    ("values", "cells_format", "message"),
    [
        (["1", "x", None, "y"], CellFormat("number"), "numbers, got 'x' in row 2 and 1 more"),
        (["1", "x"], CellFormat("number", missing_tokens=("y",)), "got 'x'"),
        (["1,5", "1.5"], CellFormat("number", "comma"), "a decimal comma, got '1.5' in row 2"),
        (["1,234", "1,5"], CellFormat("number", "thousands"), "between thousands, got '1,5'"),
        (["12 kg", "12 lb"], CellFormat("number", unit="kg"), "numbers, got '12 lb' in row 2"),
        (["true", "maybe"], CellFormat("boolean"), "true or false, got 'maybe' in row 2"),
        (["2020-01-01", "soon"], CellFormat("date"), "dates, got 'soon'"),
        (["31/01/2020", "01/31/2020"], CellFormat("date", date_format="%d/%m/%Y"), "row 2"),
        (["late"], CellFormat("time"), "times of day"),
        (["10:00", "26:30"], CellFormat("time"), "times of day, got '26:30' in row 2"),
        (["26:30", "x"], CellFormat("number", "clock"), "durations like 26:30:00, got 'x'"),
        (["$5", "€6"], CellFormat("number", unit="$"), "numbers, got '€6' in row 2"),
        ([1.5], CellFormat("category"), "text, not double"),
        ([1], CellFormat("date"), "dates, not int64"),
        ([dt.date(2020, 1, 1)], CellFormat("number"), "numbers, not date32"),
    ],
)
def test_cells_that_changed_their_meaning(
    values: list[Any], cells_format: CellFormat, message: str
) -> None:
    with pytest.raises(UnreadableCells) as caught:
        convert(column(values), cells_format)
    assert message in caught.value.sentence()


@pytest.mark.parametrize("kind", ["number", "boolean", "time", "date", "category"])
def test_a_batch_of_nothing_but_missing_cells(kind: Any) -> None:
    converted = convert(column([None, None]), CellFormat(kind))
    assert converted.shape == (2,)


@pytest.mark.parametrize("kind", ["number", "date"])
def test_signs_for_nothing_are_missing_also_where_training_had_none(kind: Any) -> None:
    found = convert(column(["-", "None", "?"]), CellFormat(kind))
    assert pd.isna(found).all()
    assert list(convert(column(["-", "None"]), CellFormat("category"))) == ["-", "None"]


@pytest.mark.parametrize(
    "values",
    [["2024-01", "2024-03"], ["Jan 2024", "Mar 2024"], ["Jan-24", "Mar-24"], ["01/2024", "3/2024"]],
)
def test_months_are_dates(values: list[str]) -> None:
    cells = column(values)
    found = detect(cells)
    assert found is not None
    assert found.kind == "date"
    first, last = convert(cells, found)
    assert first == np.datetime64("2024-01-01")
    assert last == np.datetime64("2024-03-01")


@pytest.mark.parametrize("values", [["<18", "18", "19", ">19"] * 9, ["<=50K", ">50K"] * 9])
def test_classes_with_open_ends_are_no_limits(values: list[str]) -> None:
    assert detect(column(values)) == CellFormat("category")


@pytest.mark.parametrize("values", [["2020/21", "2021/22"], ["2A", "3B"], ["10-20", "20-30"]])
def test_seasons_codes_and_ranges_are_categories(values: list[str]) -> None:
    assert detect(column(values)) == CellFormat("category")


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["01/02/2024", "03/04/2024"], "month before the day"),
        (["01.02.2024", "03.04.2024"], "day before the month"),
        (["1/2/24 10:30", "3/4/24 11:00"], "month before the day"),
    ],
)
def test_an_order_of_day_and_month_that_is_a_guess_is_said(cells: list[str], first: str) -> None:
    notes = date_notes(cells)
    assert [first in note and "no value tells the order" in note for note in notes] == [True]


@pytest.mark.parametrize(
    ("cells", "second_of"),
    [
        (["01/02/2024", "25/12/2024"], "February"),
        (["01/02/2024", "12/25/2024"], "January"),
        (["2024-01-02", "2024-03-04"], "January"),
        (["2024/01/02", "2024/03/04"], "January"),
        (["05/05/2024", "07/07/2024"], "May"),
    ],
)
def test_one_date_that_tells_the_order_decides(cells: list[str], second_of: str) -> None:
    assert date_notes(cells) == []
    column = pa.chunked_array([cells])
    (first, _) = convert(column, detected(cells))
    assert pd.Timestamp(first).month_name() == second_of


def date_notes(cells: list[str]) -> list[str]:
    frame = pd.DataFrame({"day": cells * 10, "x": range(20), "y": range(20)})
    notes = prepare_training(read_table(frame), target="y", ignore=["x"]).notes
    return [note for note in notes if "order" in note]


def detected(cells: list[str]) -> CellFormat:
    found = detect(pa.chunked_array([cells]))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["2024-01-02"] * 19 + ["unknown"], "date"),
        (["1,5"] * 10 + ["2,25"] * 9 + ["broken"], "number"),
        (["12.5 kg"] * 19 + ["broken"], "number"),
        (["10:30"] * 19 + ["broken"], "time"),
    ],
)
def test_a_word_among_cells_of_any_kind_is_missing(cells: list[str], kind: str) -> None:
    found = detected(cells)
    assert (found.kind, found.missing_tokens) == (kind, (cells[-1],))
    assert pd.isna(convert(pa.chunked_array([cells]), found)).tolist() == [False] * 19 + [True]


def test_names_with_a_few_numbers_stay_names() -> None:
    assert detected(["10 kg"] * 10 + ["light"] * 10).kind == "category"
