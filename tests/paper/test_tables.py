"""Tables: our numbers in the right places, beside the right published ones."""

import csv
import io
import math
from itertools import count

import pytest
from invented import invented

from accord.paper import STUDIES, study_named, table1, table3
from accord.paper.results import MeanOverSplits, Results
from accord.paper.stacks import Cell
from accord.paper.study import AS_PRINTED, LOCAL, SMOOTHED, Figure, Source
from accord.paper.tables import ResultTable, formatted


def named(study: str, name: str, results: Results) -> ResultTable:
    [table] = [table for table in study_named(study).tables(results) if table.name == name]
    return table


def cells(table: ResultTable, row: str) -> dict[str, str]:
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("|")]
    head = [word.strip() for word in lines[0].strip("|").split("|")]
    [body] = [line for line in lines if line.startswith(f"| {row} |")]
    words = [word.replace("*", "").replace("†", "").strip() for word in body.strip("|").split("|")]
    return dict(zip(head, words, strict=True))


def both(table: ResultTable, row: str, heading: str) -> list[str]:
    """Ours and the published number of one cell."""
    return cells(table, row)[heading].split("<br>")


class Numbered:
    """A different number for every source and dataset."""

    def __init__(self) -> None:
        self._next = count(10)
        self._seen: dict[tuple[Source, str], int] = {}

    def __call__(self, cell: Cell) -> float:
        key = (cell.source, cell.dataset)
        if key not in self._seen:
            self._seen[key] = next(self._next)
        return float(self._seen[key])


def test_every_number_stands_where_it_belongs() -> None:
    results = invented(Numbered())
    table = named("table3", "table3", results)
    row = cells(table, "Boston housing")
    assert (row["N"], row["d"]) == ("506", "13")
    for heading, source, published in (
        ("Deep Ensembles", table3.deep(), ["4.51"]),
        ("BVM as printed", table3.bvm(AS_PRINTED), ["3.92"]),
        ("BVM smoothed", table3.bvm(SMOOTHED), []),
    ):
        found = formatted(results.estimate("boston", source, "nll"))
        assert both(table, "Boston housing", heading) == [found, *published]
    other = cells(named("table3", "table3-ours", results), "Boston housing")
    assert other["local"] == formatted(results.estimate("boston", table3.bvm(LOCAL), "nll"))


def test_far_from_the_published_number_is_marked() -> None:
    def shown(level: float) -> str:
        table = named("table1", "table1-nll", invented(lambda cell: level))
        place = table.head.index("BVM as printed") - 3
        return table.cells()[0][1][place].text

    error = math.hypot(0.01 / math.sqrt(19), 0.08, 0.01 / math.sqrt(12))
    assert "†" not in shown(2.52 + 1.9 * error)
    assert "†" in shown(2.52 + 2.1 * error)


def test_the_lowest_is_bold_on_both_sides() -> None:
    def nll(cell: Cell) -> float:
        return 1.0 if cell.source == table3.bvm(SMOOTHED) else 2.0

    lines = named("table3", "table3", invented(nll)).to_markdown().splitlines()
    [boston] = [line for line in lines if line.startswith("| Boston")]
    assert boston.count("**") == 4
    assert "***3.92***" in boston
    assert "| **1.00 ± 0.00†** |" in boston


def test_numbers_that_are_compared_have_equally_many_decimals() -> None:
    def nll(cell: Cell) -> float:
        return 0.0987 if cell.source.method == "PBP" else 0.141

    table = named("table1", "table1-nll", invented(nll))
    shown = [both(table, "Kin8nm", name)[0].rstrip("†") for name in ("PBP", "Deep Ensembles")]
    assert shown == ["0.0987 ± 0.0023", "0.1410 ± 0.0023"]


def test_shift_columns() -> None:
    table = named("table3", "table3-shifts", invented())
    assert both(table, "Yacht", "of the mean") == ["1.00 ± 0.00", "0.26"]
    assert both(table, "Yacht", "of the variance")[1] == "0.10"


def test_calibration_reads_both_studies_with_four_decimals() -> None:
    table = named("calibration", "calibration-ece", invented())
    assert both(table, "Energy", "MSE Ensemble") == ["0.0300 ± 0.0000", "0.3513"]
    assert both(table, "Energy", "Deep Ensembles")[0] == "0.0300 ± 0.0000"


def test_stocks_by_method() -> None:
    def nll(cell: Cell) -> float:
        return 4.0 if cell.source.method == "Deep Ensembles" else 5.0

    table, row = named("table2", "table2-sigmoid", invented(nll)), "BVM ε = 0.1, as printed"
    assert both(table, row, "inside 95 %") == ["0.90 ± 0.00"]
    lines = [line for line in table.to_markdown().splitlines() if line.startswith(f"| {row}")]
    assert "| 5.00 ± 0.00†<br>***5.13*** |" in lines[0]  # the paper's lowest, not ours
    [deep] = [line for line in table.to_markdown().splitlines() if line.startswith("| Deep")]
    assert "| **4.00 ± 0.00†**<br>*5.23* | **4.00 ± 0.00** |" in deep
    assert "**0.90" not in table.to_markdown()  # no score


def test_stocks_say_which_heads_reproduce_the_printed_number() -> None:
    def nll(cell: Cell) -> float:
        return 5.2 if cell.source.recipe == "identity mean" else 4.0

    assert "The identity mean is nearer." in named("table2", "table2-sigmoid", invented(nll)).note


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_full_records_leave_no_blank(study: object) -> None:
    """Every source that a table names is one that a run answers."""
    for table in study.tables(invented()):  # type: ignore[attr-defined]
        for column in table.columns:
            assert all(e.ours is not None for e in column.entries)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_caption_says_what_is_scored(study: object) -> None:
    for table in study.tables(invented()):  # type: ignore[attr-defined]
        if any("nll" in e.measure for column in table.columns for e in column.entries):
            assert "Scored densit" in table.note


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_csv_has_every_number_once(study: object) -> None:
    for table in study.tables(invented()):  # type: ignore[attr-defined]
        rows = list(csv.DictReader(io.StringIO(table.to_csv())))
        keys = ("dataset", "measure", "method", "recipe", "predictive")
        places = [tuple(row[key] for key in keys) for row in rows]
        assert len(places) == len(set(places)) > 0
        entries = [entry for column in table.columns for entry in column.entries]
        ours = [entry.ours.value for entry in entries if entry.ours]
        assert [float(row["value"]) for row in rows] == pytest.approx(ours, rel=1e-5)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_missing_records_leave_blanks(study: object) -> None:
    for table in study.tables(Results([])):  # type: ignore[attr-defined]
        assert "–" in table.to_markdown()
        assert "nan" not in table.to_markdown() + table.to_csv()


def test_no_table_is_wider_than_a_page() -> None:
    for study in STUDIES:
        assert all(len(table.head) <= 8 for table in study.tables(invented()))


def test_rates_have_tables_of_their_own() -> None:
    names = {table.name for table in table1.STUDY.tables(invented())}
    assert {"table1-nll", "table1-nll-rate", "table1-nll-ours", "table1-rmse"} <= names


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "–"),
        (MeanOverSplits(-1.204, 0.0213, 20), "−1.20 ± 0.02"),
        (MeanOverSplits(0.0042, 0.00031, 20), "0.0042 ± 0.0003"),
        (MeanOverSplits(3.0, math.nan, 1), "3.00"),
        (Figure(0.1, 0.0, 2), "0.10 ± 0.00"),
    ],
)
def test_numbers_are_written_as_in_the_paper(
    number: MeanOverSplits | Figure | None, text: str
) -> None:
    assert formatted(number) == text


def test_methods_with_fewer_splits_stand_beside_the_others_on_these() -> None:
    def nll(cell: Cell) -> float:
        return 9.0 if cell.split >= 10 else 1.0

    results = invented(nll)
    table = named("discussion", "discussion-chosen-out", results)
    assert {e.ours.n for column in table.columns for e in column.entries if e.ours} == {10}
    assert cells(table, "Yacht")["ε = 0 (NLL)"] == "1.00 ± 0.00"
    whole = named("discussion", "discussion-sweep-smoothed-out", results)
    assert cells(whole, "Yacht")["ε = 0 (NLL)"] == "5.00 ± 0.92"
    written = Results((), table.numbers() | whole.numbers())
    for shown in (table, whole):  # each finds its own numbers again
        assert named("discussion", shown.name, written).to_markdown() == shown.to_markdown()


def test_what_rounds_to_nothing_has_no_sign() -> None:
    assert formatted(MeanOverSplits(-1e-6, 0.1, 3)) == "0.0000 ± 0.1000"
    assert formatted(MeanOverSplits(-0.5, 0.1, 3)) == "−0.50 ± 0.10"
