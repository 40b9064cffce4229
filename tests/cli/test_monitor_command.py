"""``accord monitor`` as a person, and as cron, runs it."""

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from accord.cli import application


@pytest.fixture
def folder(model_file: Path, houses: pd.DataFrame, tmp_path: Path) -> Path:
    """A model, rows that it predicts well, rows that it does not, and rows without targets."""
    (tmp_path / "model.accord").write_bytes(model_file.read_bytes())
    # otherwise these were the rows that it was trained on
    houses = houses.assign(area=houses["area"] + 0.05)
    houses.iloc[:60].to_csv(tmp_path / "monday.csv", index=False)
    houses.iloc[60:].assign(price=lambda t: 900 - t["price"]).to_csv(
        tmp_path / "tuesday.csv", index=False
    )
    houses.iloc[:30].drop(columns="price").to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    monkeypatch.chdir(folder)
    return CliRunner().invoke(application, ["monitor", "model.accord", *arguments])


def test_a_week(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = run(folder, monkeypatch, "new.csv", "--label-first", "ask.csv", "--label-rows", "5")
    assert waiting.exit_code == 0, waiting.output
    assert "No target is known yet: expect" in waiting.stdout
    assert len(pd.read_csv(folder / "ask.csv")) == 5
    monday = run(folder, monkeypatch, "monday.csv", "--json")
    assert monday.exit_code == 0, monday.output
    said = json.loads(monday.stdout)
    assert said["counted"]
    assert not said["broken"]
    assert said["coverage"]["rows"] == 60
    assert said["evidence"] < 20
    tuesday = run(folder, monkeypatch, "tuesday.csv", "--report", "monitor.html")
    assert tuesday.exit_code == 3, tuesday.output
    assert "✗ Coverage no longer holds" in tuesday.stdout
    page = (folder / "monitor.html").read_text()
    assert "Does coverage still hold?" in page
    assert json.loads((folder / "monitor.json").read_text())["broken"] is True
    again = run(folder, monkeypatch, "tuesday.csv", "--json")
    assert again.exit_code == 3
    assert json.loads(again.stdout)["coverage"]["rows"] == 150
    assert len(json.loads((folder / "model.monitor.json").read_text())["batches"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["new.csv", "--state", "new.csv"], "which must not be overwritten"),
        (["new.csv", "--state", "model.accord"], "which must not be overwritten"),
        (["new.csv", "--state", "monday.csv"], "must be a file that monitoring wrote"),
        (["absent.csv"], "does not exist"),
        (["new.csv", "--report", "r.json"], "HTML page"),
        (["new.csv", "--label-first", "ask.xlsx"], "xlsx"),
        (["new.csv", "--label-first", "a.csv", "--state", "a.csv"], "a file of its own"),
    ],
)
def test_misuse(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(folder, monkeypatch, *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_state_s_words_are_shown_and_not_obeyed_by_the_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(folder, monkeypatch, "tuesday.csv").exit_code == 3
    state = folder / "model.monitor.json"
    name = json.dumps("\x1b]0;title\x07\x1b[2Jtuesday.csv")
    state.write_text(state.read_text().replace('"tuesday.csv"', name))
    found = CliRunner().invoke(application, ["monitor", "model.accord", "tuesday.csv"], color=True)
    assert found.exit_code == 3
    assert "as \\u001b]0;title\\u0007\\u001b[2Jtuesday.csv on" in found.stderr
    assert "with \\u001b]0;title\\u0007\\u001b[2Jtuesday.csv (" in found.stdout
    assert "\x1b]" not in found.output
    assert "\x1b[2J" not in found.output
