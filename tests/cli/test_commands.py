"""The command: what it writes, what it says, and with which exit code."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from accord.cli import application

QUICK = ["--tolerance", "2%", "--members", "2"]
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


def one_sentence(result: Result) -> str:
    """The error of a failed command: a single line, no traceback."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.output
    return lines[0]


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- fit ---------------------------------------------------------------------------------------


def test_fit_writes_model_and_report_and_a_summary(run: Run, table: Path, tmp_path: Path) -> None:
    result = run("fit", table, "--target", "price", *QUICK)
    assert result.exit_code == 0, result.output
    assert files(tmp_path) == {"houses.csv", "model.skops", "report.html"}
    assert re.search(r"95 % intervals cover [\d.]+ % of held-out rows", result.stdout)
    assert "Wrote model.skops and report.html." in result.stdout
    assert "Note: Column 'country' is not used" in result.stderr


def test_fit_for_machines(run: Run, table: Path) -> None:
    result = run("fit", table, "-t", "price", *QUICK, "--json", "--no-report", "-o", "m.skops")
    document = json.loads(result.stdout)
    assert document["outputs"] == ["m.skops"]
    assert 0 <= document["held_out"]["coverage"] <= 1
    assert document["card"]["target"] == "price"


def test_existing_files_stay_unless_forced(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "model.skops").write_text("precious")
    result = run("fit", table, "-t", "price", *QUICK)
    assert result.exit_code == 2
    assert "model.skops already exists. Pass --force" in one_sentence(result)
    assert (tmp_path / "model.skops").read_text() == "precious"
    assert "report.html" not in files(tmp_path)
    assert run("fit", table, "-t", "price", *QUICK, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("content", "target", "message"),
    [
        (b"", "y", "is empty"),
        (b"x,y\n", "y", "no rows"),
        (b"x,y\n1,2\n", "y", "at least 20 rows"),
        (b"x,y\n" + b"1,5\n2,5\n" * 20, "y", "is constant"),
        (b"x,y\n" + b"1,a\n2,b\n" * 20, "y", "must hold numbers, got text such as 'a'"),
        (b"x,y,x\n" + b"1,2,3\n" * 30, "y", "column names must be unique"),
        (b"v,y\n" + b",1\n,2\n" * 20, "y", "no column is left to predict from"),
        ("é,y\n1,2\n".encode("latin-1"), "y", "not utf-8 text. Pass --encoding latin-1"),
        (b"x,y\n1,2\n3\n", "y", "cannot be read as a table"),
    ],
    ids=[
        *("empty", "header only", "one row", "constant", "text", "duplicates", "all missing"),
        *("encoding", "ragged"),
    ],
)
def test_bad_tables_fail_in_one_sentence(
    run: Run, tmp_path: Path, content: bytes, target: str, message: str
) -> None:
    (tmp_path / "bad.csv").write_bytes(content)
    result = run("fit", "bad.csv", "--target", target)
    assert result.exit_code == 1
    assert message in one_sentence(result)
    assert files(tmp_path) == {"bad.csv"}


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
    assert run("no-such-command").exit_code == 2


def test_paths_that_cannot_be_written_fail_before_training(run: Run, table: Path) -> None:
    result = run("fit", table, "-t", "price", "-o", "/proc/model.skops")
    assert result.exit_code == 1
    assert "cannot write to /proc" in one_sentence(result)
    nested = run("fit", table, "-t", "price", "-o", f"{table}/model.skops")
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


def test_predict_warns_in_words(run: Run, model_file: Path, houses: pd.DataFrame) -> None:
    houses.assign(town="Atlantis").to_csv("odd.csv", index=False)
    result = run("predict", model_file, "odd.csv")
    assert result.exit_code == 0
    assert "Note: 150 categories not seen in training in 'town'" in result.stderr


def test_predict_with_a_file_from_elsewhere(run: Run, table: Path, tmp_path: Path) -> None:
    import pickle

    (tmp_path / "evil.skops").write_bytes(pickle.dumps({"not": "a model"}))
    result = run("predict", "evil.skops", table)
    assert result.exit_code == 1
    assert "not a model saved by accord" in one_sentence(result)
    assert "predictions.csv" not in files(tmp_path)


def test_evaluate(run: Run, model_file: Path, houses: pd.DataFrame, tmp_path: Path) -> None:
    houses.iloc[:60].to_csv("labelled.csv", index=False)
    result = run("evaluate", model_file, "labelled.csv")
    assert result.exit_code == 0, result.output
    assert "columns" in result.stdout
    assert "evaluation.html" in files(tmp_path)
    machine = run("evaluate", model_file, "labelled.csv", "--json", "--no-report")
    assert set(json.loads(machine.stdout)["drift"]) >= {"columns", "statement", "unusual"}


def test_validate(run: Run, tmp_path: Path) -> None:
    lines = ["y,m,s", *(f"{i},{i + 0.1},0.5" for i in range(50))]
    (tmp_path / "p.csv").write_text("\n".join(lines))
    columns = ["--truth", "y", "--mean", "m", "--std", "s"]
    result = run("validate", "p.csv", *columns, "--rule", "within 0.5", "--report", "v.html")
    assert result.exit_code == 0, result.output
    assert "Model and data agree (within 0.5) with probability" in result.stdout
    assert (tmp_path / "v.html").read_text().startswith("<!doctype html>")
    wrong = run("validate", "p.csv", *columns, "--rule", "more or less")
    assert wrong.exit_code == 2
    assert "rule must be" in one_sentence(wrong)


def test_compare(run: Run, table: Path, tmp_path: Path) -> None:
    result = run(
        *("compare", table, "-t", "price", "--splits", 1, "--method", "MSE ensemble"),
        *("--method", "Deep ensemble", "-o", "scores.csv"),
    )
    assert result.exit_code == 0, result.output
    assert "Deep ensemble" in result.stdout
    assert {"comparison.html", "scores.csv"} <= files(tmp_path)


# --- the rest ----------------------------------------------------------------------------------


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
    page = (tmp_path / "again" / "report.html").read_text(encoding="utf-8")
    assert "Appendix B" in page


def test_reproduce_lists_its_studies(run: Run) -> None:
    shown = run("reproduce", "--list").stdout
    assert "table3  Table 3" in shown
    assert "paper: AdamW with rate 3e-4" in shown
    listed = json.loads(run("reproduce", "--list", "--json").stdout)["studies"]
    assert set(listed["table2"]["departures"][0]) == {"paper", "ours", "why"}
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
