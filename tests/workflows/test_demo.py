"""The demonstration: what a newcomer sees first must be reliable and of use."""

import json
from pathlib import Path

import pytest

from accord.report import fit_report
from accord.workflows import run_demo


@pytest.mark.slow
def test_the_demonstration_is_reliable_and_of_use(tmp_path: Path) -> None:
    result = run_demo(tmp_path, write_report=fit_report)
    assert result.fit.verdict.level == "good"
    assert result.fit.held_out.covered >= 0.93
    assert result.fit.held_out.mean_width <= 220
    assert {path.name for path in tmp_path.iterdir()} == {
        *("patients.csv", "new-patients.csv", "predictions.csv"),
        *("model.accord", "report.html", "report.json"),
    }
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert document["headline"] == result.fit.verdict.headline
