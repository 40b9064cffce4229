"""What a person sees: progress with the time left, notes, results; or one JSON document."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord._files import STANDARD_STREAM, OptionError, check_inputs, check_outputs
from accord._progress import Progress, lines, shown, silent
from accord._wording import count, json_text, listed_plainly, printable

if TYPE_CHECKING:
    from accord.tables import TableFile
    from accord.workflows import Verdict

# Options that name a column, and what messages call it.
_ROLES = {
    "group": "group",
    "time": "time",
    "target": "target",
    "sample_weight": "weight",
    "y_tolerance": "tolerance",
    "y_lower": "lower bound",
    "y_upper": "upper bound",
}


@contextmanager
def progress(*, quiet: bool) -> Iterator[Progress]:
    """A progress bar on a terminal, lines elsewhere, nothing if not wanted."""
    if quiet or not sys.stderr.isatty():
        yield silent if quiet else lines(lambda text: click.echo(text, err=True))
        return
    bar = shown(True)
    try:
        yield bar
    finally:
        bar(1.0)  # also after an error


def notes(lines: Iterable[str], *, quiet: bool, limit: int = 12) -> None:
    """Remarks to the user, beside the result."""
    if quiet:
        return
    lines = list(lines)
    for line in lines[:limit]:
        click.echo(harmless(f"Note: {line}"), err=True)
    if more := lines[limit:]:
        are = "is" if len(more) == 1 else "are"
        click.echo(f"Note: {count(len(more), 'further note')} {are} in the report.", err=True)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output; what is not a number is null."""
    say(json_text(document))


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


# Control characters as JSON writes them: a name or a category may hold a terminal's commands.
_CONTROLS = {
    code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


def harmless(text: str) -> str:
    """A text that a terminal only shows, whatever names of columns and files are in it."""
    return text.translate(_CONTROLS)


MARKS = {"good": ("✓", "green"), "caution": ("!", "yellow"), "poor": ("✗", "red")}


def print_verdict(verdict: "Verdict") -> None:
    """The judgement with its sign (shape and colour say the same), and what supports it."""
    mark, colour = MARKS[verdict.level]
    say(f"{mark} {verdict.headline}", fg=colour, bold=True)
    for sentence in (verdict.summary, *verdict.remarks):
        if sentence:
            say(sentence)


class Misused(click.ClickException):
    """What was asked for cannot be done, said in one sentence."""

    exit_code = 2


def check_files(inputs: Sequence[Path], outputs: Sequence[Path], *, force: bool) -> None:
    """Refuse files that cannot be read or written, before anything heavy is imported."""
    try:
        check_inputs(inputs)
        check_outputs(outputs, inputs=inputs, force=force)
    except OptionError as error:
        raise Misused(str(error)) from None


def file_of(table: Path, settings: dict[str, Any]) -> "TableFile":
    """A table with the settings that say how it is written, which are taken out of all of them."""
    from accord.tables import TableFile

    names = ("encoding", "delimiter", "decimal")
    return TableFile(table, **{name: settings.pop(name, None) for name in names})


def check_columns(file: "TableFile", columns: Iterable[tuple[str, str | None]]) -> None:
    """Refuse columns, given with their roles, that a file does not have, before torch is loaded."""
    table = Path(file.path)
    if table == STANDARD_STREAM:
        return
    from accord.tables import check_present, read_header

    names = read_header(file)
    if len(names) > 1:  # hardly a table else: whoever reads all of it knows better what is wrong
        check_present(columns, names, source=table.name)


def check_roles(file: "TableFile", settings: Mapping[str, Any]) -> None:
    """:func:`check_columns` for all columns that a fit may be told of."""
    given = [(role, settings.get(name)) for name, role in _ROLES.items()]
    given += [("ignored", name) for name in settings["ignore"]]
    given += [("used", name) for name in (*settings["use"], *settings["category"])]
    check_columns(file, given)


def say(text: str, *, err: bool = False, **style: Any) -> None:
    """A line of the result. Whatever could be written has been written by then."""
    try:
        click.echo(click.style(harmless(text), reset=bool(style), **style), err=err)
    except BrokenPipeError:
        raise  # whoever read the output has gone: click ends the process quietly
    except OSError as error:
        if err:
            return  # nobody is left to tell
        # What is still in the buffer would fail once more when the process ends.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        raise click.ClickException(
            f"cannot print the result ({error.strerror}). The files that it names are written."
        ) from None


def with_document(report: Path) -> list[Path]:
    """A report, and the JSON document of the same name that holds all that it shows."""
    if report.suffix.lower() == ".json":
        raise Misused(
            f"the report is an HTML page, got {printable(report)}. Give a name that ends in .html; "
            "its figures are written beside it as .json."
        )
    return [report, report.with_suffix(".json")]


def write_report(places: Sequence[Path], page: str, document: dict[str, Any]) -> None:
    """Write a page and its document to the places of :func:`with_document`."""
    places[0].write_text(page, encoding="utf-8")
    places[1].write_text(json_text(document) + "\n", encoding="utf-8")


def wrote(paths: Sequence[Path]) -> None:
    """The last line of a command: where its files are."""
    if paths:
        say(f"Wrote {listed_plainly([printable(path, limit=300) for path in paths])}.")
