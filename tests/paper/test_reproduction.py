"""The whole way, on the studies that need no data: run, write, run again for nothing."""

import json
import re
import shutil
from pathlib import Path

import pytest

from accord.paper import lay_out, reproduce, reproduction
from accord.paper.reproduction import Reproduction


class Heard:
    """A progress that remembers what is done."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self, share: float, what: str = "") -> None:
        self.words += [what] if what else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def outcome(folder: Path) -> Reproduction:
    return reproduce(["figure1", "expansion"], folder=folder, quick=True, jobs=1)


def test_everything_is_written(outcome: Reproduction, folder: Path) -> None:
    for name in (
        "README.md",
        "summary.json",
        "verdicts.csv",
        "tables/figure1.csv",
        "tables/expansion.md",
    ):
        assert (folder / name).stat().st_size > 0
    for name in ("figure1", "expansion"):
        assert (folder / "figures" / f"{name}.svg").read_text().startswith("<svg")
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert not outcome.failed
    assert list(folder.rglob("*.part")) == []


def test_summary_says_what_it_took(outcome: Reproduction, folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == outcome.summary
    assert list(summary["made"]) == ["figure1", "expansion"]
    for run in summary["made"].values():
        assert run["protocol"] == "quick"
        assert {"accord", "python", "torch", "numpy"} <= set(run["versions"])
    assert summary["costs"]["figure1"]["networks"] == 3 * (5 + 5 + 1 + 5) + 3 * 5
    assert summary["costs"]["expansion"]["networks"] == 0


def test_page_holds_claims_tables_and_figures(outcome: Reproduction, folder: Path) -> None:
    page = (folder / "README.md").read_text()
    assert "does not hold" in page
    assert "### Figure 1, the toy" in page
    assert "](figures/figure1.svg)" in page


def test_second_run_has_nothing_to_do(outcome: Reproduction, folder: Path) -> None:
    heard = Heard()
    again = reproduce(["figure1", "expansion"], folder=folder, quick=True, jobs=1, progress=heard)
    assert heard.words == ["0 stacks of networks to train, 3 done before, 1 at a time"]
    assert [table.to_csv() for table in again.tables] == [t.to_csv() for t in outcome.tables]


def test_lost_records_are_made_again(outcome: Reproduction, folder: Path) -> None:
    victim = next((folder / "records" / "expansion").rglob("*.json"))
    victim.unlink()
    heard = Heard()
    reproduce(["figure1", "expansion"], folder=folder, quick=True, jobs=1, progress=heard)
    assert heard.words[1:] == ["0/1  expansion · cubic · formula · split 0"]


def test_a_malformed_record_is_named_and_made_again(outcome: Reproduction, folder: Path) -> None:
    victim = next((folder / "records" / "figure1").rglob("*.json"))
    whole = json.loads(victim.read_text())["record"]["measures"]
    victim.write_text('{"key": null, "record": {"measures": 3}}')
    heard = Heard()
    with pytest.warns(UserWarning, match=re.escape(victim.name)):
        reproduce(["figure1", "expansion"], folder=folder, quick=True, jobs=1, progress=heard)
    assert len(heard.words[1:]) == 1
    assert json.loads(victim.read_text())["record"]["measures"] == whole


def test_the_two_kinds_of_verdicts_are_counted_apart(outcome: Reproduction) -> None:
    claims = outcome.summary["claims"]
    assert sum(claims["as printed"].values()) == sum(claims["smoothed"].values()) == 5
    assert sum(outcome.summary["beyond"].values()) == len(outcome.beyond) == 1


def test_stale_files_of_a_study_are_removed_and_no_others(tmp_path: Path) -> None:
    names = ("old.csv", "old.md", "toy.csv", "mine.csv")
    for name in names:
        (tmp_path / "tables").mkdir(exist_ok=True)
        (tmp_path / "tables" / name).write_text("from before")
    (tmp_path / "outside.csv").write_text("from before")
    files = {
        "expansion": ["tables/old.csv", "tables/old.md", "tables/expansion.csv", "outside.csv"],
        "figure1": ["tables/toy.csv"],
    }
    (tmp_path / "summary.json").write_text(json.dumps({"files": files}))
    reproduce(["expansion"], folder=tmp_path, quick=True, jobs=1)
    left = {path.name for path in (tmp_path / "tables").iterdir()}
    assert left == {"expansion.csv", "expansion.md", "toy.csv", "mine.csv"}
    assert (tmp_path / "outside.csv").exists()
    now = json.loads((tmp_path / "summary.json").read_text())["files"]
    assert now["figure1"] == ["tables/toy.csv"]
    assert "tables/expansion.md" in now["expansion"]
    assert "figures/expansion.svg" in now["expansion"]


def test_pages_can_be_laid_out_without_the_records(outcome: Reproduction, folder: Path) -> None:
    before = {p: p.read_text() for p in folder.rglob("*") if p.suffix in (".csv", ".md", ".svg")}
    kept = {study: list(files) for study, files in outcome.summary["files"].items()}
    (folder / "README.md").unlink()
    (folder / "records").rename(folder / "elsewhere")
    try:
        again = lay_out(folder)
    finally:
        (folder / "elsewhere").rename(folder / "records")
    assert {path: path.read_text() for path in before} == before
    assert again.summary["files"] == kept
    assert again.claims == outcome.claims
    assert again.beyond == outcome.beyond
    shown = [(d.name, d.words) for part in again.parts for d in part.figures]
    assert shown == [(d.name, d.words) for part in outcome.parts for d in part.figures]


def test_one_study_made_again_leaves_the_others_as_they_were(
    outcome: Reproduction, folder: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(folder, whole)
    shutil.rmtree(whole / "records")
    earlier = json.loads((whole / "summary.json").read_text())
    earlier["made"]["figure1"]["date"] = "1999-12-31"
    earlier["costs"]["figure1"]["core_seconds"] = 1234.5
    earlier["failed"] = ["figure1 · cubic · ensembles · split 0", "expansion · cubic · formula"]
    (whole / "summary.json").write_text(json.dumps(earlier))
    before = {p: p.read_bytes() for p in whole.rglob("*figure1*") if p.is_file()}

    again = reproduce(["expansion"], folder=whole, records=tmp_path / "r", quick=True, jobs=1)

    assert {path: path.read_bytes() for path in before} == before
    assert [part.study.name for part in again.parts] == ["figure1", "expansion"]
    assert again.claims == outcome.claims
    assert again.beyond == outcome.beyond
    now = json.loads((whole / "summary.json").read_text())
    assert now == again.summary
    assert now["made"]["figure1"]["date"] == "1999-12-31" != now["made"]["expansion"]["date"]
    assert now["costs"]["figure1"]["core_seconds"] == 1234.5
    assert now["failed"] == ["figure1 · cubic · ensembles · split 0"]
    assert now["claims"] == outcome.summary["claims"]
    page = (whole / "README.md").read_text()
    assert "on 1999-12-31, quick protocol" in page
    assert "### Figure 1, the toy" in page


def test_pages_need_a_reproduction_of_the_paper(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"summary\.json"):
        lay_out(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(ValueError, match="names the studies made"):
        lay_out(tmp_path)
    (tmp_path / "summary.json").write_text('{"made": {"shift": {}}}')
    with pytest.raises(ValueError, match="uses them again"):
        lay_out(tmp_path)


def test_unknown_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got 'table7'"):
        reproduce(["table7"], folder=tmp_path)


def test_missing_data_are_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise FileNotFoundError(f"{name} must be on disk or within reach")

    monkeypatch.setattr(reproduction, "load", absent)
    heard = Heard()
    with pytest.raises(FileNotFoundError, match="google must be on disk"):
        reproduce(["table2"], folder=tmp_path, quick=True, progress=heard)
    assert heard.words == []
