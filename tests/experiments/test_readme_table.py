"""The README's table: the numbers that the reproduction has written, and no others."""

from pathlib import Path

import pytest
from invented import invented

from accord.experiments.comparisons import tables_of
from accord.experiments.readme import END, START, results_table, update_readme
from accord.experiments.records import Cell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def nll(cell: Cell) -> float:
        return {"plain": 4.0, "model": 3.0, "smoothed": 2.0, "local": 1.0}.get(cell.variant, 0.5)

    (tmp_path / "tables").mkdir()
    for study in ("table1", "table3"):
        for table in tables_of(study, invented(nll)):
            (tmp_path / "tables" / f"{table.name}.csv").write_text(table.to_csv())
    return tmp_path


def test_numbers_come_from_the_tables(folder: Path) -> None:
    [row] = [line for line in results_table(folder).splitlines() if line.startswith("| Wine ")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    outliers = ["3.15", "1.47", "4.00 ± 0.00", "3.00 ± 0.00", "2.00 ± 0.00", "1.00 ± 0.00"]
    assert cells == ["Wine", *outliers, "0.50 ± 0.00", "0.50 ± 0.00"]


def test_only_what_is_between_the_markers_changes(folder: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{START}\nold\n{END}\nafter\n")
    update_readme(readme, folder)
    text = readme.read_text()
    assert text.startswith(f"before\n{START}\n| dataset |")
    assert text.endswith(f"\n{END}\nafter\n")
    assert "old" not in text
    update_readme(readme, folder)
    assert readme.read_text() == text


def test_a_readme_without_markers_is_refused(folder: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("nothing")
    with pytest.raises(ValueError, match="must hold the lines"):
        update_readme(readme, folder)
    assert readme.read_text() == "nothing"
