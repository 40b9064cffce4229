"""The command: what it writes, what it says, and with which exit code."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click import BadParameter
from click.testing import CliRunner, Result

import accord
from accord.cli import application
from accord.cli.options import share
from accord.workflows import FitResult, PredictResult

QUICK = ["--effort", "quick"]
Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(application, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def table(houses: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "houses.csv"
    houses.to_csv(path, index=False)
    return path


@pytest.fixture
def at_once(fitted: FitResult, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits that are done already, for tests of what becomes of them."""
    monkeypatch.setattr("accord.workflows.fit_table", lambda *_, **__: fitted)


def one_sentence(result: Result) -> str:
    """The error of a failed command: a single line, no traceback."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.output
    return lines[0]


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- fit ---------------------------------------------------------------------------------------


def test_fit_with_the_method_of_the_paper(run: Run, table: Path, tmp_path: Path) -> None:
    rule = "within 5 or error inside 9 11"
    paper = ("--method", "bvm-paper", "--epochs", "1", "--hidden", "4,3")
    more = ("--predictive", "smoothed", "--rule", rule)
    result = run("fit", table, "--target", "price", *paper, *more)
    assert result.exit_code == 0, result.output
    assert files(tmp_path) >= {"model.accord", "report.html", "report.json"}
    assert "What was trained" in (tmp_path / "report.html").read_text()
    engine = accord.load(tmp_path / "model.accord").engine_.estimator_
    assert (engine.epochs, engine.hidden, engine.predictive) == (1, (4, 3), "smoothed")
    assert engine.rule == rule
    assert engine.optimizer == "adamw"
    assert run("predict", "model.accord", table, "-o", "out.csv").exit_code == 0
    assert (pd.read_csv(tmp_path / "out.csv")["std"] > 0).all()
    assert run("evaluate", "model.accord", table, "--no-report").exit_code == 0


def test_fit_writes_model_and_report_and_a_summary(run: Run, table: Path, tmp_path: Path) -> None:
    result = run("fit", table, "--target", "price", *QUICK)
    assert result.exit_code == 0, result.output
    assert files(tmp_path) == {"houses.csv", "model.accord", "report.html", "report.json"}
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert document["headline"] in result.stdout
    assert {"name": "country", "used": False} in [
        {key: column[key] for key in ("name", "used")} for column in document["columns"]
    ]
    assert re.search(r"[\d.]+ % of 150 held-out rows lie in their 95 % interval", result.stdout)
    assert "without a model" in result.stdout
    assert "Wrote model.accord, report.html and report.json." in result.stdout
    assert "Note: Column 'country' is the same in every row" in result.stderr


@pytest.mark.usefixtures("at_once")
def test_fit_for_machines(run: Run, table: Path) -> None:
    result = run("fit", table, "-t", "price", *QUICK, "--json", "--no-report", "-o", "m.accord")
    document = json.loads(result.stdout)
    assert document["outputs"] == ["m.accord"]
    assert 0 <= document["held_out"]["coverage"] <= 1
    assert document["card"]["target"] == "price"


@pytest.mark.usefixtures("at_once")
def test_existing_files_stay_unless_forced(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "model.accord").write_text("precious")
    result = run("fit", table, "-t", "price", *QUICK)
    assert result.exit_code == 2
    assert "model.accord already exists. Pass force (--force)" in one_sentence(result)
    assert (tmp_path / "model.accord").read_text() == "precious"
    assert "report.html" not in files(tmp_path)
    assert run("fit", table, "-t", "price", *QUICK, "--force").exit_code == 0


BAD_TABLES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 1, "bad.csv is empty. Give a file with a header line and data rows."),
    "header only": (
        b"x,y\n",
        1,
        "bad.csv has column names but no rows. Add the data rows, or check that the right file was "
        "given.",
    ),
    "one row": (
        b"x,y\n1,2\n",
        1,
        "training needs at least 20 rows with a target, got 1 in bad.csv. Add rows.",
    ),
    "constant": (
        b"x,y\n" + b"1,5\n2,5\n" * 20,
        1,
        "target column 'y' is constant (5 in every row): there is nothing to learn. Name another "
        "column.",
    ),
    "text": (
        b"x,y\n" + b"1,a\n2,b\n" * 20,
        1,
        "target column 'y' must hold numbers, got text such as 'a'. Name a numeric column, or "
        "remove units and remarks from its cells.",
    ),
    "two of a name": (
        b"x,y,x\n" + b"1,2,3\n" * 30,
        1,
        "column names must be unique, but bad.csv has 'x' more than once. Rename or remove the "
        "copies.",
    ),
    "no such target": (
        b"x,why\n" + b"1,2\n" * 30,
        2,
        "target column 'y' is not in bad.csv. Its columns are 'x' and 'why'.",
    ),
    "no value of the target": (
        b"x,y\n" + b"1,\n" * 30,
        1,
        "target column 'y' is empty in every row. Name another column.",
    ),
    "few values of the target": (
        b"x,y\n" + b"1,\n" * 30 + b"1,2\n" * 5,
        1,
        "training needs at least 20 rows with a target, got 5 in bad.csv. Add rows.",
    ),
    "infinite targets": (
        b"x,y\n" + b"1,inf\n" * 30,
        1,
        "training needs at least 20 rows with a target, got 0 in bad.csv. Add rows.",
    ),
    "nothing but the target": (
        b"y\n" + b"".join(b"%d\n" % i for i in range(30)),
        1,
        "no column is left to predict from (there is only the target). Add columns that vary with "
        "the target.",
    ),
    "one cell too many": (
        b"x,y\n" + b"1,2\n" * 20 + b"1,2,3\n" + b"1,2\n" * 10,
        1,
        "bad.csv cannot be read as a table (CSV parse error: Row #22: Expected 2 columns, got 3: "
        "1,2,3). Check that every line has the same number of cells, separated by commas, or give "
        "the delimiter (--delimiter).",
    ),
    "a single line": (
        b"<!doctype html><html></html>",
        1,
        "bad.csv has no complete data row: it is a single line, or a quotation mark is never "
        "closed. Give a file with a header line and data rows.",
    ),
    "targets of 1e298": (
        b"x,y\n" + b"".join(b"%d,%de297\n" % (i, i) for i in range(1, 30)),
        1,
        "target column 'y' must lie within ±1e+150, got 2.9e+298 in row 29. Correct it, or change "
        "the unit.",
    ),
    "targets of 1e-299": (
        b"x,y\n" + b"".join(b"%d,%de-300\n" % (i, i) for i in range(1, 30)),
        1,
        "target column 'y' must vary by more than 1e-150, got values like 2.9e-299 in row 29. "
        "Change the unit.",
    ),
    "dates as targets": (
        b"x,y\n" + b"".join(b"%d,2020-01-%02d\n" % (i, i) for i in range(1, 30)),
        1,
        "target column 'y' must hold numbers, got dates such as '2020-01-01'. Name a numeric "
        "column, or remove units and remarks from its cells.",
    ),
    "compressed": (b"\x1f\x8b\x08\x00aaa", 1, "bad.csv is not text. Give a CSV or Parquet file."),
    "not text": (
        b"x,y\n" + b"1,2\n" * 10 + bytes(3) + b"1,2\n" * 20,
        1,
        "bad.csv is not text. Give a CSV or Parquet file.",
    ),
    "a workbook": (
        b"PK\x03\x04 and so on",
        1,
        "bad.csv is an Excel workbook or a zip archive. Save the table as CSV or Parquet first.",
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_fail_in_one_exact_sentence(run: Run, tmp_path: Path, case: str) -> None:
    content, code, sentence = BAD_TABLES[case]
    (tmp_path / "bad.csv").write_bytes(content)
    result = run("fit", "bad.csv", "--target", "y")
    assert one_sentence(result) == f"Error: {sentence}"
    assert result.exit_code == code
    assert files(tmp_path) == {"bad.csv"}


BAD_REQUESTS: dict[str, tuple[list[str], str]] = {
    "no file": (["fit", "no.csv", "-t", "y"], "no.csv does not exist. Check the path."),
    "a folder": (
        ["fit", ".", "-t", "y"],
        ". is a folder without Parquet files. Give a file, or a folder of Parquet files.",
    ),
    "no model": (["predict", "no.accord", "t.csv"], "no.accord does not exist. Check the path."),
    "no folder for the output": (
        ["fit", "t.csv", "-t", "y", "-o", "no/model.accord"],
        "the folder no does not exist. Create it, or give another path.",
    ),
    "model over the table": (
        ["fit", "t.csv", "-t", "y", "-o", "t.csv", "--force"],
        "t.csv is the input t.csv, which must not be overwritten. Give another name for the "
        "output.",
    ),
    "model over a link to the table": (
        ["fit", "t.csv", "-t", "y", "-o", "link.csv", "--force"],
        "link.csv is the input t.csv, which must not be overwritten. Give another name for the "
        "output.",
    ),
    "report over the model": (
        ["fit", "t.csv", "-t", "y", "-o", "m.accord", "--report", "m.accord"],
        "each output needs a file of its own, got m.accord twice. Give different names.",
    ),
    "predictions over the table": (
        ["predict", "t.csv", "t.csv", "-o", "t.csv", "-f"],
        "t.csv is the input t.csv, which must not be overwritten. Give another name for the "
        "output.",
    ),
    "report over the predictions": (
        [
            *("validate", "t.csv", "--truth", "y", "--mean", "y", "--rule", "exact"),
            *("--report", "t.csv", "-f"),
        ],
        "t.csv is the input t.csv, which must not be overwritten. Give another name for the "
        "output.",
    ),
    "two kinds of standard output": (
        ["predict", "t.csv", "t.csv", "-o", "-", "--json"],
        "--json and '-o -' both write to standard output. Choose one of them.",
    ),
    "tolerance": (
        ["fit", "t.csv", "-t", "y", "--tolerance", "wide"],
        "tolerance must be a number in target units, a percentage of the targets' range such as "
        "'1%', or 'choose', got 'wide'.",
    ),
    "bounds": (
        ["fit", "t.csv", "-t", "y", "--bounds", "5,1"],
        "Invalid value for '--bounds': '5,1' is no pair of bounds. Write '0,' or '0,100', detect "
        "or none.",
    ),
    "coverage": (
        ["fit", "t.csv", "-t", "y", "--coverage", "120%"],
        "Invalid value for '--coverage': a share must lie strictly between 0 and 1, got '120%'. "
        "Write 0.95 or 95%.",
    ),
    "a coverage that may be a percentage or not": (
        ["fit", "t.csv", "-t", "y", "--coverage", "1.5"],
        "Invalid value for '--coverage': a share must lie strictly between 0 and 1, got '1.5'. "
        "Write 0.95 or 95%, or 1.5% for that percentage.",
    ),
    "two targets": (
        ["fit", "t.csv", "-t", "y", "--target", "x"],
        "Invalid value for '--target' / '-t': it must name one column, got 'y' and 'x'. Name one "
        "of them.",
    ),
    "two groups": (
        ["fit", "t.csv", "-t", "y", "--group", "x", "--group", "z"],
        "Invalid value for '--group': it must name one column, got 'x' and 'z'. Name one of them.",
    ),
    "time budget": (
        ["fit", "t.csv", "-t", "y", "--time-budget", "soon"],
        "Invalid value for '--time-budget': 'soon' is not a positive duration. Write 90s, 5m or "
        "1h.",
    ),
    "effort": (
        ["fit", "t.csv", "-t", "y", "--effort", "most"],
        "Invalid value for '--effort': 'most' is not one of 'quick', 'standard', 'best'.",
    ),
    "group": (
        ["fit", "t.csv", "-t", "y", "--group", "who"],
        "group column 'who' is not in t.csv. Its columns are 'x' and 'y'.",
    ),
    "time": (
        ["fit", "t.csv", "-t", "y", "--time", "when"],
        "time column 'when' is not in t.csv. Its columns are 'x' and 'y'.",
    ),
    "a column to ignore": (
        ["fit", "t.csv", "-t", "y", "--ignore", "zz"],
        "ignored column 'zz' is not in t.csv. Its columns are 'x' and 'y'.",
    ),
    "one column for two roles": (
        ["fit", "t.csv", "-t", "y", "--lower-column", "y"],
        "each role needs a column of its own, got 'y' and 'y' for 'target' and 'lower bound'. Name "
        "different columns.",
    ),
    "encoding": (
        ["fit", "t.csv", "-t", "y", "--encoding", "klingon"],
        "encoding must be a known text encoding, got 'klingon'. Use utf-8, latin-1 or cp1252.",
    ),
    "delimiter": (
        ["fit", "t.csv", "-t", "y", "--delimiter", "ab"],
        "delimiter must be one character, got 'ab'. Use , ; | ^, tab or space.",
    ),
    "a report that is no page": (
        ["fit", "t.csv", "-t", "y", "--report", "r.json"],
        "the report is an HTML page, got r.json. Give a name that ends in .html; its figures are "
        "written beside it as .json.",
    ),
    "predictions as a workbook": (
        ["predict", "t.csv", "t.csv", "-o", "out.xlsx"],
        "the output file must end in .csv or .parquet, got 'out.xlsx'. Give such a name, or - for "
        "standard output.",
    ),
    "standard input twice": (
        ["predict", "-", "-"],
        "only one input can be -, standard input. Give files for the others.",
    ),
    "a column to judge": (
        ["validate", "t.csv", "--truth", "y", "--mean", "m", "--rule", "within 1"],
        "mean column 'm' is not in t.csv. Its columns are 'x' and 'y'.",
    ),
    "half an interval": (
        [*("validate", "t.csv", "--truth", "y", "--mean", "x"), "--lower", "x", "--rule", "exact"],
        "intervals need both ends, got one. Name lower and upper.",
    ),
    "the share asked for": (
        [
            *("validate", "t.csv", "--truth", "y", "--mean", "x"),
            "--rule",
            "exact",
            "--fail-below",
            "2000",
        ],
        "Invalid value for '--fail-below': a share must lie strictly between 0 and 1, got '2000'. "
        "Write 0.95 or 95%.",
    ),
    "a dataset without a name": (
        ["datasets", "-o", "out.csv"],
        "-o needs the NAME of a dataset.",
    ),
    "method": (
        ["compare", "t.csv", "-t", "y", "--method", "BVN"],
        "method must be one of 'portfolio', 'bvm', 'bvm-paper', 'deep-ensemble', 'mse-ensemble', "
        "'mc-dropout', 'pbp', 'evidential', 'ngboost' and 'catboost', got 'BVN'.",
    ),
    "an option of another method": (
        ["fit", "t.csv", "-t", "y", "--hidden", "50"],
        "hidden must be an option of the method, got one for 'portfolio', which has 'effort', "
        "'time_budget', 'tolerance' and 'bounds'. Leave it out, or use a method that has it: "
        "'bvm', 'bvm-paper', 'deep-ensemble', 'mse-ensemble', 'mc-dropout', 'pbp' and "
        "'evidential'.",
    ),
    "layers": (
        ["fit", "t.csv", "-t", "y", "--method", "bvm-paper", "--hidden", "50x"],
        "Invalid value for '--hidden': '50x' is no list of layers. Write 50, or 50,50 for two.",
    ),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_bad_requests_are_refused_in_one_exact_sentence(
    run: Run, tmp_path: Path, case: str
) -> None:
    arguments, sentence = BAD_REQUESTS[case]
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(30)))
    (tmp_path / "link.csv").hardlink_to(table)
    before = table.read_bytes()
    result = run(*arguments)
    assert one_sentence(result) == f"Error: {sentence}"
    assert result.exit_code == 2
    assert table.read_bytes() == before
    assert files(tmp_path) == {"t.csv", "link.csv"}


def test_a_broken_parquet_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    result = run("fit", "bad.parquet", "--target", "y")
    assert result.exit_code == 1
    assert "cannot be read as Parquet" in one_sentence(result)


def test_misuse_has_its_own_code(run: Run, table: Path) -> None:
    absent = run("fit", table, "--target", "prise")
    assert absent.exit_code == 2
    assert "Did you mean 'price'?" in one_sentence(absent)
    assert run("fit", "nowhere.csv", "--target", "y").exit_code == 2
    assert run("fit", table).exit_code == 2
    assert run("fit", table, "-t", "price", "--tolerance", "wide").exit_code == 2
    assert run("fit", table, "-t", "price", "--coverage", "120%").exit_code == 2
    assert run("fit", table, "-t", "price", "--time-budget", "soon").exit_code == 2
    assert run("fit", table, "-t", "price", "--bounds", "5,1").exit_code == 2
    assert run("no-such-command").exit_code == 2


def test_a_cluster_is_for_units_that_do_not_need_each_other(run: Run, table: Path) -> None:
    result = run("fit", table, "--target", "price", "--method", "bvm", "--workers", "2")
    assert result.exit_code == 2
    assert "are for the portfolio, got --method bvm" in one_sentence(result)
    result = run("fit", table, "-t", "price", "--workers", "2", "--scheduler", "tcp://10.0.0.5:1")
    assert result.exit_code == 2
    assert "Give one of --scheduler and --workers" in one_sentence(result)


def test_the_portfolio_is_known_however_it_is_written(
    run: Run, table: Path, fitted: FitResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        "accord.workflows.fit_table",
        lambda model, *_, **options: given.update(options, model=model) or fitted,
    )
    named = ("--method", "Portfolio", "--tolerance", "0.5", "--workers", "1")
    assert run("fit", table, "-t", "price", *named).exit_code == 0
    assert given["client"] is not None
    assert given["checkpoint"] is not None
    assert given["model"].tolerance == 0.5


def test_paths_that_cannot_be_written_fail_before_training(run: Run, table: Path) -> None:
    result = run("fit", table, "-t", "price", "-o", "/proc/model.accord")
    assert result.exit_code == 1
    assert "cannot write to /proc" in one_sentence(result)
    nested = run("fit", table, "-t", "price", "-o", f"{table}/model.accord")
    assert nested.exit_code == 2
    assert "does not exist" in one_sentence(nested)


def test_errors_for_machines(run: Run, table: Path) -> None:
    result = run("fit", table, "--target", "prise", "--json")
    assert json.loads(result.stdout)["exit_code"] == 2


def test_a_traceback_only_on_request(run: Run, table: Path) -> None:
    assert "Traceback" not in run("fit", table, "--target", "prise").output
    result = run("fit", table, "--target", "prise", "--debug")
    assert result.exception is not None
    assert type(result.exception).__name__ == "OptionError"


# --- predict, evaluate, validate, compare ------------------------------------------------------


def test_predict(run: Run, model_file: Path, table: Path, tmp_path: Path) -> None:
    result = run("predict", model_file, table, "-o", "out.csv", "--id", "house")
    assert result.exit_code == 0, result.output
    assert "Predicted 150 rows" in result.stdout
    assert len(pd.read_csv(tmp_path / "out.csv")) == 150
    again = run("predict", model_file, table, "-o", "out.csv")
    assert again.exit_code == 2
    several = run(
        "predict", model_file, table, "-o", "b.parquet", "--coverage", "50%", "--coverage", "0.9"
    )
    assert several.exit_code == 0
    assert {"lower_50", "upper_90"} <= set(pd.read_parquet(tmp_path / "b.parquet").columns)


def test_predictions_come_with_receipts(run: Run, model_file: Path, table: Path) -> None:
    result = run("predict", model_file, table, "-o", "why.csv", "--explain", "--explain-row", "3")
    assert "Row 3.\nPredicted " in result.stdout
    assert "What would narrow it most: " in result.stdout
    written = pd.read_csv("why.csv")
    shares = written[["noise_share", "disagreement_share", "distance_share"]]
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(
        shares["distance_share"], np.square(written["distance"] / written["std"]), atol=1e-9
    )
    assert written["nearest"].str.startswith("1 ").iloc[0]
    refused = run("predict", model_file, table, "-o", "no.csv", "--explain-row", "151")
    assert refused.exit_code == 2
    assert "the row to explain must be one of 1 to 150, got 151" in refused.stderr


def test_strict_predictions_refuse_what_is_flagged_otherwise(
    run: Run, model_file: Path, houses: pd.DataFrame
) -> None:
    odd = houses.iloc[:5].astype({"area": object})
    odd.loc[odd.index[2], "area"] = "inf"
    odd.to_csv("odd.csv", index=False)
    flagged = run("predict", model_file, "odd.csv", "-o", "a.csv")
    assert flagged.exit_code == 0
    assert "Note: 1 infinite value in 'area'" in flagged.stderr
    assert bool(pd.read_csv("a.csv")["unusual"][2])
    refused = run("predict", model_file, "odd.csv", "-o", "b.csv", "--strict")
    assert refused.exit_code == 1
    assert "column 'area' must be finite: row 3" in one_sentence(refused)


def test_how_a_file_is_written_is_found_out_or_said(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"{i},5\t{i},25\té\n" for i in range(20))
    (tmp_path / "p.csv").write_bytes(("m\ty\tname\n" + rows).encode("latin-1"))
    ask = ["validate", "p.csv", "--truth", "y", "--mean", "m", "--rule", "within 1", "--json"]
    found = run(*ask)
    said = run(*ask, "--delimiter", "tab", "--decimal", ",", "--encoding", "latin-1")
    for result in (found, said):
        assert json.loads(result.stdout)["figures"]["bias"] == pytest.approx(0.25)
    assert any("latin" in note.lower() or "1252" in note for note in _warnings(found))


def _warnings(result: Result) -> list[str]:
    return list(json.loads(result.stdout)["warnings"])


def test_predict_warns_in_words(run: Run, model_file: Path, houses: pd.DataFrame) -> None:
    houses.assign(town="Atlantis").to_csv("odd.csv", index=False)
    result = run("predict", model_file, "odd.csv")
    assert result.exit_code == 0
    assert "Note: 150 categories not seen in training in 'town'" in result.stderr


def test_predict_with_a_file_from_elsewhere(run: Run, table: Path, tmp_path: Path) -> None:
    import pickle

    (tmp_path / "evil.accord").write_bytes(pickle.dumps({"not": "a model"}))
    result = run("predict", "evil.accord", table)
    assert result.exit_code == 1
    assert "not a model saved by accord" in one_sentence(result)
    assert "predictions.csv" not in files(tmp_path)


def test_evaluate(run: Run, model_file: Path, houses: pd.DataFrame, tmp_path: Path) -> None:
    houses.iloc[:60].to_csv("labelled.csv", index=False)
    result = run("evaluate", model_file, "labelled.csv")
    assert result.exit_code == 0, result.output
    assert "they cannot test it" in result.stdout
    assert "evaluation.html" in files(tmp_path)
    machine = run("evaluate", model_file, "labelled.csv", "--json", "--no-report")
    assert 0 <= json.loads(machine.stdout)["unusual"] <= 1


def test_validate(run: Run, tmp_path: Path) -> None:
    lines = ["y,m,s", *(f"{i},{i + 0.1},0.5" for i in range(50))]
    (tmp_path / "p.csv").write_text("\n".join(lines))
    columns = ["--truth", "y", "--mean", "m", "--std", "s"]
    result = run("validate", "p.csv", *columns, "--rule", "within 0.5", "--report", "v.html")
    assert result.exit_code == 0, result.output
    assert "! The predictions agree with the data in part: agreement" in result.stdout
    assert "The stated uncertainty can be believed" in result.stdout
    assert (tmp_path / "v.html").read_text().startswith("<!doctype html>")
    wrong = run("validate", "p.csv", *columns, "--rule", "more or less")
    assert wrong.exit_code == 2
    assert "rule must be" in one_sentence(wrong)


def test_validate_fails_for_machines_when_asked_to(run: Run, tmp_path: Path) -> None:
    lines = ["y,m", *(f"{i},{i + 0.4 * (i % 2)}" for i in range(50))]
    (tmp_path / "p.csv").write_text("\n".join(lines))
    ask = ["validate", "p.csv", "--truth", "y", "--mean", "m", "--rule", "within 0.1"]
    assert run(*ask, "--fail-below", "40%").exit_code == 0
    failed = run(*ask, "--fail-below", "90%")
    assert failed.exit_code == 1
    assert "✗ The predictions do not agree with the data: agreement 50 %" in failed.stdout
    assert json.loads(run(*ask, "--fail-below", "90%", "--json").stdout)["failed"] is True


def test_standard_input_and_output(run: Run, model_file: Path, table: Path) -> None:
    rows = "".join(table.read_text().splitlines(keepends=True)[:4])
    arguments = ["predict", str(model_file), "-", "-o", "-"]
    result = CliRunner().invoke(application, arguments, input=rows)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].replace('"', "").startswith("mean,std,lower,upper")
    assert len(result.stdout.splitlines()) == 4
    assert "Predicted 3 rows" in result.stderr
    lines = "y,m\n" + "".join(f"{i},{i}\n" for i in range(20))
    ask = ["validate", "-", "--truth", "y", "--mean", "m", "--rule", "within 1"]
    assert CliRunner().invoke(application, ask, input=lines).exit_code == 0


def test_compare(run: Run, table: Path, tmp_path: Path) -> None:
    result = run(
        *("compare", table, "-t", "price", "--splits", 2, "--method", "MSE ensemble"),
        *("--method", "deep-ensemble", "-o", "scores.csv"),
    )
    assert result.exit_code == 0, result.output
    assert "MSE ensemble: networks trained by squared error" in " ".join(result.stdout.split())
    assert re.search(r"Deep ensemble\s+[\d.]+ ± [\d.]+", result.stdout)
    assert {"comparison.html", "scores.csv"} <= files(tmp_path)


def test_compare_keeps_what_did_not_fail(
    run: Run, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, X: Any, y: Any, **_: Any) -> None:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr("accord.estimators.PBPRegressor._checked_pair", broken)
    result = run(
        *("compare", table, "-t", "price", "--splits", 1, "--no-report"),
        *("--method", "PBP", "--method", "MSE ensemble"),
    )
    assert result.exit_code == 1
    assert "– failed" in result.stdout
    assert "PBP failed: RuntimeError: no such kernel" in result.stdout
    assert re.search(r"MSE ensemble\s+[\d.]+", result.stdout)


# --- the rest ----------------------------------------------------------------------------------


def test_demo_says_how_to_go_on(
    run: Run, at_once: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the command is in an environment of its own, which no shell finds."""
    predicted = PredictResult(tmp_path / "p.csv", 20, 0, (), (), 0.1)
    monkeypatch.setattr("accord.workflows.predict_table", lambda *_, **__: predicted)
    monkeypatch.setattr("sys.argv", [".venv/bin/accord"])
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert ".venv/bin/accord fit table.csv --target COLUMN" in run("demo").stdout
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/accord")
    assert "With your own table: accord fit table.csv" in run("demo", "--force").stdout
    kept = run("demo")
    assert kept.exit_code == 2
    assert "patients.csv already exists" in one_sentence(kept)


def test_datasets(run: Run, tmp_path: Path) -> None:
    listing = run("datasets")
    assert "boston" in listing.stdout
    assert "diabetes" in listing.stdout
    assert "442 rows" in run("datasets", "diabetes").stdout
    assert run("datasets", "diabetes", "-o", "d.csv").exit_code == 0
    assert len(pd.read_csv(tmp_path / "d.csv")) == 442
    assert json.loads(run("datasets", "--json").stdout)["datasets"]
    unknown = run("datasets", "bostn")
    assert unknown.exit_code == 2
    assert "boston" in one_sentence(unknown)
    assert run("datasets", "-o", "d.csv").exit_code == 2


def test_reproduce_writes_a_page(run: Run, tmp_path: Path) -> None:
    done = run("reproduce", "expansion", "--folder", str(tmp_path / "again"), "--jobs", "1")
    assert done.exit_code == 0
    assert "report.html" in done.stdout
    report, readme = (tmp_path / "again" / name for name in ("report.html", "README.md"))
    assert "Appendix B" in report.read_text(encoding="utf-8")
    written = readme.read_text(encoding="utf-8")
    report.unlink()
    readme.unlink()
    again = run("reproduce", "--pages-only", "--folder", str(tmp_path / "again"))
    assert again.exit_code == 0
    assert readme.read_text(encoding="utf-8") == written
    assert "Appendix B" in report.read_text(encoding="utf-8")


def test_reproduce_lists_its_studies(run: Run) -> None:
    shown = run("reproduce", "--list").stdout
    assert "table3  Table 3" in shown
    assert "paper: AdamW with rate 3e-4" in shown
    listed = json.loads(run("reproduce", "--list", "--json").stdout)["studies"]
    assert set(listed["table2"]["departures"][0]) == {"paper", "ours", "why"}
    assert listed["shift"]["terms"][0].startswith("Frozen before: nothing is tuned here.")
    assert run("reproduce", "table9").exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_ACCORD_COMPLETE" in result.stdout


def test_completion_knows_the_columns(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ACCORD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"accord fit {table} --target pr")
    monkeypatch.setenv("COMP_CWORD", "4")
    result = CliRunner().invoke(application, [], prog_name="accord")
    assert "price" in result.stdout


@pytest.mark.parametrize(
    "command",
    [None, *sorted(application.commands)],
)
def test_help_has_examples(run: Run, command: str | None) -> None:
    result = run(*([command] if command else []), "--help")
    assert result.exit_code == 0
    assert re.search(r"\n\s+accord \w+", result.stdout)


def test_version(run: Run) -> None:
    from accord import __version__

    assert run("--version").stdout.strip() == f"accord {__version__}"


def test_a_run_that_can_go_on_says_so(
    run: Run, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("accord.workflows.fit_table", stopped)
    command = ("fit", table, "-t", "price")
    assert "Run the same command again to go on" in one_sentence(run(*command))
    assert "again" not in one_sentence(run(*command, "--no-resume"))


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (MemoryError(), "not enough memory"),
        (OSError(28, "No space left on device"), "the disk is full"),
        (RuntimeError("a surprise"), "RuntimeError: a surprise Run again with --debug"),
        (KeyboardInterrupt(), "stopped. What was not finished was not written"),
    ],
    ids=["memory", "disk", "surprise", "Ctrl-C"],
)
def test_failures_of_the_machine_are_sentences(
    run: Run,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    failure: BaseException,
    words: str,
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise failure

    monkeypatch.setattr("accord.workflows.fit_table", broken)
    result = run("fit", table, "-t", "price")
    assert result.exit_code == 1
    assert words in one_sentence(result)
    assert files(tmp_path) == {"houses.csv"}


def test_the_command_runs_as_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "accord", "--version"], capture_output=True, text=True, check=True
    )
    assert accord.__version__ in done.stdout


# --- export ------------------------------------------------------------------------------------


def test_export_writes_a_file_that_says_what_it_is(run: Run, model_file: Path) -> None:
    pytest.importorskip("onnx")
    result = run("export", model_file, "-o", "m.onnx", "--level", "0.1", "--level", "90%")
    assert result.exit_code == 0, result.output
    assert "quantiles at 0.1, 0.9" in result.output
    again = run("export", model_file, "-o", "m.onnx")
    assert again.exit_code == 2
    assert "--force" in one_sentence(again)
    document = json.loads(run("export", model_file, "-o", "m.onnx", "--force", "--json").stdout)
    assert document["levels"] == [0.025, 0.5, 0.975]
    assert document["outputs"][:3] == ["y_mean", "y_std", "y_quantiles"]
    assert document["inputs"] == ["numbers", "categories"]
    assert files(Path()) == {"m.onnx"}


def test_export_without_its_package_says_what_to_install(
    run: Run, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("export", model_file, "-o", "m.onnx")
    assert result.exit_code == 2
    assert one_sentence(result).endswith("Run: pip install 'accord[export]'")


def test_export_names_what_it_cannot_state(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    x = np.linspace(-1, 1, 30)[:, None]
    accord.MCDropoutRegressor(epochs=1, random_state=0).fit(x, x[:, 0]).save(tmp_path / "m.accord")
    result = run("export", "m.accord")
    assert result.exit_code == 1
    assert "MCDropoutRegressor" in one_sentence(result)
    assert files(Path()) == {"m.accord"}


@pytest.mark.parametrize("text", ["0.95", ".95", "95", "95%", " 95 %", "95.0"])
def test_a_share_is_written_in_several_ways(text: str) -> None:
    assert share(text) == 0.95


@pytest.mark.parametrize(
    "text", ["0", "1", "1.0", "1.5", "5", "9.5", "100", "100%", "0%", "-5", "x"]
)
def test_what_is_no_share_for_certain_is_refused(text: str) -> None:
    with pytest.raises(BadParameter, match="strictly between 0 and 1"):
        share(text)
