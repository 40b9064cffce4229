"""The page and the README's table: the numbers that the reproduction has written, and no others."""

import json
from pathlib import Path

import pytest
from invented import invented

from accord.paper import STUDIES, claim_grid, claim_groups, group_sentences, study_named
from accord.paper.claims import JudgedClaim
from accord.paper.page import END, START, markdown_page, results_table, update_readme
from accord.paper.reproduction import Reproduction, StudyResult
from accord.paper.results import Results
from accord.paper.stacks import Cell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    levels = {"plain": 4.0, "as printed": 3.0, "smoothed": 2.0, "local": 1.0}

    def nll(cell: Cell) -> float:
        return levels[cell.source.predictive] if cell.source.recipe == "printed" else 0.5

    (tmp_path / "tables").mkdir()
    for study in ("table1", "table3"):
        for table in study_named(study).tables(invented(nll)):
            (tmp_path / "tables" / f"{table.name}.csv").write_text(table.to_csv())
    claims = {"as printed": {"holds": 11, "does not hold": 9}, "smoothed": {"undecided": 20}}
    (tmp_path / "summary.json").write_text(json.dumps({"claims": claims}))
    return tmp_path


def test_numbers_come_from_the_tables(folder: Path) -> None:
    [row] = [line for line in results_table(folder).splitlines() if line.startswith("| Wine ")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    outliers = ["4.00 ± 0.00<br>*3.15*", "3.00 ± 0.00<br>*1.47*", "2.00 ± 0.00", "1.00 ± 0.00"]
    assert cells == ["Wine", *outliers, "0.50 ± 0.00", "0.50 ± 0.00"]


def test_only_what_is_between_the_markers_changes(folder: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before 3\n{START}\nold\n{END}\nafter\n")
    update_readme(readme, folder)
    text = readme.read_text()
    assert text.startswith(f"before 3\n{START}\n| dataset |")
    assert text.endswith(f"\n{END}\nafter\n")
    assert "old" not in text
    update_readme(readme, folder)
    assert readme.read_text() == text


def test_verdicts_are_counted_in_the_words_that_are_there(folder: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    counts = "Of 1, 2 hold\nas printed, 3 do not and 4 are undecided; smoothed by the tolerance"
    readme.write_text(f"In 2023. {counts} 5,\n6 and 7. The 8.\n{START}\n{END}\n")
    update_readme(readme, folder)
    words = "Of 20, 11 hold\nas printed, 9 do not and 0 are undecided; smoothed by the tolerance"
    assert readme.read_text().startswith(f"In 2023. {words} 0,\n0 and 20. The 8.\n{START}")


def test_a_readme_without_markers_is_refused(folder: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("nothing")
    with pytest.raises(ValueError, match="must hold the lines"):
        update_readme(readme, folder)
    assert readme.read_text() == "nothing"


def test_the_readme_counts_the_verdicts_that_were_found() -> None:
    root = Path(__file__).parents[2]
    claims = json.loads((root / "results" / "summary.json").read_text("utf-8"))["claims"]
    printed, smoothed = (
        [claims[name][o] for o in ("holds", "does not hold", "undecided")]
        for name in ("as printed", "smoothed")
    )
    expected = (
        f"Of {sum(printed)}, {printed[0]} hold as printed, {printed[1]} do not and {printed[2]} "
        f"are undecided; smoothed by the tolerance {smoothed[0]}, {smoothed[1]} and {smoothed[2]}."
    )
    assert expected in " ".join((root / "README.md").read_text("utf-8").split())


def outcome_of(results: Results) -> Reproduction:
    parts = tuple(
        StudyResult(
            s, tuple(s.tables(results)), tuple(s.claims(results)), tuple(s.beyond(results)), ()
        )
        for s in STUDIES
    )
    run = {"date": "2000-01-01", "protocol": "full", "versions": {"accord": "0"}, "code": "c0de"}
    return Reproduction(parts, (), (), {part.study.name: run for part in parts})


class TestPage:
    def test_the_first_screen_has_a_sentence_per_study_and_the_grid(self) -> None:
        outcome = outcome_of(invented())
        first = markdown_page(outcome).split("## Figure 1")[0]
        assert first.count("\n- ") == len(STUDIES)
        assert first.count("\n| ") == len(claim_grid(outcome.claims)) + 2
        assert "local" not in first, "what is ours comes later"

    def test_every_claim_is_judged_under_both_predictives(self) -> None:
        for row in claim_grid(outcome_of(invented()).claims):
            assert [v.predictive for v in row.verdicts if v] == ["as printed", "smoothed"]

    def test_groups_hold_the_whole_grid(self) -> None:
        outcome = outcome_of(invented())
        groups = claim_groups(outcome.parts)
        assert [row for group in groups for row in group.rows] == claim_grid(outcome.claims)
        for group, sentence in zip(groups, group_sentences(outcome.parts), strict=True):
            assert sentence.startswith(f"{group.where}. {group.asks} As printed, ")
            assert sentence.endswith(f"; smoothed, {group.holding[1]}.")

    def test_sentences_count(self) -> None:
        def verdict(claim: str, predictive: str, outcome: str) -> JudgedClaim:
            return JudgedClaim("T", claim, predictive, outcome, "")  # type: ignore[arg-type]

        claims = (
            verdict("one", "as printed", "undecided"),
            verdict("two", "as printed", "does not hold"),
            verdict("one", "smoothed", "holds"),
            verdict("two", "smoothed", "holds"),
        )
        part = StudyResult(study_named("table3"), (), claims, (), ())
        assert group_sentences([part]) == [
            "Table 3. Is BVM better than Deep Ensembles on outliers? As printed, 0 of 2 claims "
            "hold (1 undecided); smoothed, 2 of 2."
        ]

    def test_each_study_opens_with_its_departures(self) -> None:
        page = markdown_page(outcome_of(invented()))
        assert page.count("| paper says | we do | why |") == len(STUDIES)
        assert all(d.ours in page for study in STUDIES for d in study.departures)
