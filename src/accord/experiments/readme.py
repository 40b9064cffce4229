"""The README's table of results, made from what a reproduction has written.

python -m accord.experiments.readme README.md results
"""

import csv
import math
import sys
from pathlib import Path

from accord.datasets import info
from accord.experiments import published
from accord.experiments.estimates import Estimate
from accord.experiments.published import Figure
from accord.experiments.records import write_whole
from accord.experiments.tables import formatted

__all__ = ["results_table", "update_readme"]

START = "<!-- results: made by accord.experiments.readme -->"
END = "<!-- end of results -->"
# heading, table, method, variant; no variant: the published figure
_COLUMNS = (
    ("paper: Deep Ensembles", "table3", "Deep Ensembles", None),
    ("paper: BVM", "table3", "BVM", None),
    ("Deep Ensembles", "table3", "Deep Ensembles", "plain"),
    ("BVM as printed", "table3", "BVM", "model"),
    ("BVM smoothed", "table3", "BVM", "smoothed"),
    ("BVM local", "table3", "BVM", "local"),
    ("random rows: Deep Ensembles", "table1", "Deep Ensembles", "rate 3e-3"),
    ("random rows: BVM local", "table1", "BVM", "rate 3e-3, local"),
)
Numbers = dict[tuple[str, str, str], Estimate]


def results_table(folder: Path) -> str:
    """Test NLL on outliers and on random rows, the published figures beside ours, as Markdown.

    Args:
        folder: Where :func:`~accord.experiments.reproduce` has written tables 1 and 3.
    """
    numbers = {
        "table1": {
            **_numbers(folder / "tables" / "table1-nll-rivals.csv"),
            **_numbers(folder / "tables" / "table1-nll-bvm.csv"),
        },
        "table3": _numbers(folder / "tables" / "table3.csv"),
    }
    head = ["dataset", *(heading for heading, *_ in _COLUMNS)]
    lines = [head, ["---", *("---:" for _ in _COLUMNS)]]
    for dataset in published.datasets("table3"):
        row = [_cell(numbers, dataset, *column[1:]) for column in _COLUMNS]
        lines.append([info(dataset).title, *row])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def update_readme(readme: Path, folder: Path) -> None:
    """Put the table between the README's two markers."""
    text = readme.read_text(encoding="utf-8")
    if START not in text or END not in text:
        raise ValueError(f"{readme} must hold the lines {START!r} and {END!r}, got none of them.")
    before, rest = text.split(START, 1)
    _, after = rest.split(END, 1)
    write_whole(readme, f"{before}{START}\n{results_table(folder)}\n{END}{after}")


def _numbers(path: Path) -> Numbers:
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["dataset"], row["method"], row["variant"]): _estimate(row)
            for row in csv.DictReader(file)
            if row["measure"] == "nll" and row["value"]
        }


def _estimate(row: dict[str, str]) -> Estimate:
    error = float(row["standard_error"]) if row["standard_error"] else math.nan
    return Estimate(float(row["value"]), error, int(row["splits"]))


def _cell(
    numbers: dict[str, Numbers],
    dataset: str,
    table: published.Table,
    method: str,
    variant: str | None,
) -> str:
    number: Estimate | Figure | None
    if variant is None:
        number = published.figure(table, dataset, "nll", method)
    else:
        number = numbers[table].get((dataset, method, variant))
    return formatted(number, 2)


if __name__ == "__main__":
    update_readme(*(Path(argument) for argument in sys.argv[1:]))
