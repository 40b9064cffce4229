"""The demonstration: what a newcomer sees first must be reliable and of use."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from accord.cli import application


@pytest.mark.slow
def test_the_demonstration_is_reliable_and_of_use(tmp_path: Path) -> None:
    done = CliRunner().invoke(application, ["demo", "--folder", str(tmp_path), "--json", "-q"])
    fit = json.loads(done.stdout)["fit"]
    assert fit["verdict"] == "good"
    assert fit["held_out"]["coverage"] >= 0.93
    assert fit["held_out"]["interval_width"] <= 220
    assert {path.name for path in tmp_path.iterdir()} == {
        *("patients.csv", "new-patients.csv", "predictions.csv"),
        *("model.accord", "report.html", "report.json"),
    }
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert document["headline"] == fit["headline"]
