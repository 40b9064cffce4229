"""Tables: our numbers in the right places, beside the right published ones."""

import csv
import io
import math

import pytest
from invented import invented

from accord.experiments.comparisons import tables_of
from accord.experiments.estimates import Estimate
from accord.experiments.published import Figure
from accord.experiments.records import Cell
from accord.experiments.results import Results
from accord.experiments.studies import STUDIES
from accord.experiments.tables import Table, formatted


def named(study: str, name: str, results: Results) -> Table:
    [table] = [table for table in tables_of(study, results) if table.name == name]
    return table


def cells(table: Table, row: str) -> dict[str, str]:
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("|")]
    head = [word.strip() for word in lines[0].strip("|").split("|")]
    [body] = [line for line in lines if line.startswith(f"| {row} |")]
    return dict(zip(head, [word.strip() for word in body.strip("|").split("|")], strict=True))


def by_place(cell: Cell) -> float:
    """A different number for every method and variant."""
    return 10.0 + len(cell.method) + 0.5 * len(cell.variant) + len(cell.dataset) / 100


def test_every_number_stands_where_it_belongs() -> None:
    results = invented(by_place)
    row = cells(named("table3", "table3", results), "Boston housing")
    assert row["Deep Ensembles, paper"] == "4.51"
    assert row["BVM, paper"] == "3.92"
    for heading, method, variant in [
        ("Deep Ensembles, ours", "Deep Ensembles", "plain"),
        ("BVM, model", "BVM", "model"),
        ("BVM, smoothed", "BVM", "smoothed"),
        ("BVM, local", "BVM", "local"),
        ("BVM eps=0.1, smoothed", "BVM eps=0.1", "smoothed"),
    ]:
        expected = results.estimate("table3", "boston", method, variant, "nll")
        assert row[heading].startswith(formatted(expected))


def test_distance_is_in_combined_standard_errors() -> None:
    results = invented(lambda cell: 2.60)
    row = cells(named("table1", "table1-nll-bvm", results), "Boston housing")
    error = results.estimate("table1", "boston", "BVM", "printed, model", "nll").error
    apart = (2.60 - 2.52) / math.sqrt(error**2 + 0.08**2 + 0.01**2 / 12)
    assert row["BVM, printed, model"] == f"2.60 ± 0.00 ({apart:+.1f})"


def test_three_variants_side_by_side() -> None:
    head = cells(named("table1", "table1-nll-bvm", invented()), "Wine")
    assert {"BVM, printed, model", "BVM, printed, smoothed", "BVM, rate 3e-3, local"} <= set(head)


def test_shift_columns() -> None:
    row = cells(named("table3", "table3", invented()), "Yacht")
    assert row["shift of mean, paper"] == "0.26"
    assert row["of variance, paper"] == "0.10"


def test_calibration_reads_both_studies() -> None:
    row = cells(named("calibration", "calibration-ece", invented()), "Energy")
    assert row["MSE Ensemble, paper"] == "0.3513"
    assert row["MSE Ensemble, printed"].startswith("0.03")
    assert row["Deep Ensembles, rate 3e-3"].startswith("0.03")


def test_stocks_by_method() -> None:
    row = cells(named("table2", "table2", invented()), "BVM eps=0.1, model")
    assert row["NLL, paper"] == "5.13"
    assert row["inside 95 %"] == "0.90 ± 0.00"


@pytest.mark.parametrize("study", [study.name for study in STUDIES])
def test_csv_has_every_number_once(study: str) -> None:
    for table in tables_of(study, invented()):
        rows = list(csv.DictReader(io.StringIO(table.to_csv())))
        places = [(r["dataset"], r["measure"], r["method"], r["variant"]) for r in rows]
        assert len(places) == len(set(places)) > 0
        entries = [e for column in table.columns if not column.is_printed for e in column.entries]
        ours = [entry.ours.value for entry in entries if entry.ours]
        assert [float(row["value"]) for row in rows] == pytest.approx(ours, rel=1e-5)


@pytest.mark.parametrize("study", [study.name for study in STUDIES])
def test_missing_records_leave_blanks(study: str) -> None:
    for table in tables_of(study, Results([])):
        assert "–" in table.to_markdown()
        assert "nan" not in table.to_markdown() + table.to_csv()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "–"),
        (Estimate(-1.204, 0.0213, 20), "−1.20 ± 0.02"),
        (Estimate(0.0042, 0.00031, 20), "0.0042 ± 0.0003"),
        (Estimate(3.0, math.nan, 1), "3.00"),
        (Figure(0.1, 0.0, 2), "0.10 ± 0.00"),
    ],
)
def test_numbers_are_written_as_in_the_paper(number: Estimate | Figure | None, text: str) -> None:
    assert formatted(number) == text
