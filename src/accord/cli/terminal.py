"""What a person sees: progress with the time left, notes, results; or one JSON document."""

import json
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from accord.workflows import Progress


class Quiet:
    """Tells nothing."""

    def plan(self, total: float) -> None: ...
    def stage(self, name: str, *, weight: float) -> None: ...
    def advance(self, share: float) -> None: ...


class Lines:
    """A line per stage, for logs."""

    def plan(self, total: float) -> None: ...
    def advance(self, share: float) -> None: ...

    def stage(self, name: str, *, weight: float) -> None:
        click.echo(f"{name} …", err=True)


class Bar:
    """A bar of all stages together, in proportion to their expected cost, with the time left."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._line = bar.add_task("Starting", total=1.0)
        self._done = self._weight = 0.0

    def plan(self, total: float) -> None:
        self._bar.update(self._line, total=total)

    def stage(self, name: str, *, weight: float) -> None:
        self._done += self._weight
        self._weight = weight
        self._bar.update(self._line, description=name, completed=self._done)

    def advance(self, share: float) -> None:
        done = self._done + min(1.0, share) * self._weight
        self._bar.update(self._line, completed=done)


@contextmanager
def progress(*, quiet: bool) -> Iterator["Progress"]:
    """A progress bar on a terminal, lines elsewhere, nothing if not wanted."""
    if quiet or not sys.stderr.isatty():
        yield Quiet() if quiet else Lines()
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
        yield Bar(bar)


def notes(lines: Iterable[str], *, quiet: bool, limit: int = 12) -> None:
    """Remarks to the user, apart from the result."""
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


def verdict(level: str, headline: str) -> str:
    """The judgement with its sign: shape and colour say the same."""
    mark, colour = MARKS[level]
    return click.style(f"{mark} {headline}", fg=colour, bold=True)
