"""What a person sees: progress with the time left, notes, results; or one JSON document."""

import json
import math
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord._paths import path_problem
from accord._progress import Progress, silent

if TYPE_CHECKING:
    from accord.workflows import Verdict

STANDARD = Path("-")


def _lines() -> "Progress":
    """A line for each new kind of work, for logs."""
    last = ""

    def report(share: float, what: str = "") -> None:
        nonlocal last
        if what and what != last:
            click.echo(f"{what} …", err=True)
            last = what

    return report


def _bar(bar: Any) -> "Progress":
    """A bar that is full only when the work is over."""
    line = bar.add_task("Starting", total=1.0)

    def report(share: float, what: str = "") -> None:
        bar.update(line, completed=min(share, 0.99), **({"description": what} if what else {}))

    return report


@contextmanager
def progress(*, quiet: bool) -> Iterator["Progress"]:
    """A progress bar on a terminal, lines elsewhere, nothing if not wanted."""
    if quiet or not sys.stderr.isatty():
        yield silent if quiet else _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    with RichProgress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=32),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("·"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        yield _bar(bar)


def notes(lines: Iterable[str], *, quiet: bool, limit: int = 12) -> None:
    """Remarks to the user, beside the result."""
    if quiet:
        return
    lines = list(lines)
    for line in lines[:limit]:
        click.echo(f"Note: {line}", err=True)
    if len(lines) > limit:
        click.echo(f"Note: {len(lines) - limit} further notes are in the report.", err=True)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output; what is not a number is null."""
    click.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def table(header: list[str], rows: list[list[str]]) -> str:
    """Columns of text; those of numbers to the right."""
    cells = [header, *rows]
    numeric = {
        place
        for place in range(len(header))
        if all(row[place][:1].isdigit() or row[place][:1] in "-−–∞" for row in rows)
    }
    widths = [max(len(row[place]) for row in cells) for place in range(len(header))]
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if place in numeric else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "─" * max(map(len, lines)))
    return "\n".join(lines)


def bold(text: str) -> str:
    return click.style(text, bold=True)


MARKS = {"good": ("✓", "green"), "caution": ("!", "yellow"), "poor": ("✗", "red")}


def print_verdict(verdict: "Verdict") -> None:
    """The judgement with its sign (shape and colour say the same), and what supports it."""
    mark, colour = MARKS[verdict.level]
    click.echo(click.style(f"{mark} {verdict.headline}", fg=colour, bold=True))
    for sentence in (verdict.summary, *verdict.remarks):
        if sentence:
            click.echo(sentence)


class Misused(click.ClickException):
    """What was asked for cannot be done, said in one sentence."""

    exit_code = 2


def check_paths(inputs: Sequence[Path], outputs: Sequence[Path], *, force: bool) -> None:
    """Refuse files that cannot be read or written, before anything heavy is imported."""
    if problem := path_problem(inputs, outputs, force=force):
        raise Misused(problem)


def is_standard(path: Path) -> bool:
    """Whether a path stands for standard input or output."""
    return path == STANDARD


@contextmanager
def files(
    inputs: Sequence[Path], outputs: Sequence[Path], *, force: bool, as_json: bool = False
) -> Iterator[tuple[list[Path], list[Path]]]:
    """The files of a job, with a temporary one in place of each ``-``.

    Standard input is read before, and standard output written after the work.
    """
    if as_json and any(is_standard(path) for path in outputs):
        raise Misused("--json and '-o -' both write to standard output. Choose one of them.")
    if sum(is_standard(path) for path in inputs) > 1:
        raise Misused("only one input can be '-', standard input. Give a file for the others.")
    named = [[p for p in paths if not is_standard(p)] for paths in (inputs, outputs)]
    check_paths(*named, force=force)
    with tempfile.TemporaryDirectory(prefix="accord-") as folder:
        source, target = Path(folder) / "standard input", Path(folder) / "standard output.csv"
        if len(named[0]) < len(inputs):
            with source.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        yield (
            [source if is_standard(path) else path for path in inputs],
            [target if is_standard(path) else path for path in outputs],
        )
        if target.exists():
            stream = sys.stdout.buffer
            with target.open("rb") as file:
                shutil.copyfileobj(file, stream)
            stream.flush()
