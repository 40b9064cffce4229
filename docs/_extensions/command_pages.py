"""The pages of the command, one per subcommand, written from what ``--help`` prints."""

from pathlib import Path

import click
from reference_pages import contents, write_if_changed
from sphinx.application import Sphinx

from accord.cli import application

FOLDER = "_generated/command"


def command_page(name: str, command: click.Command) -> str:
    """The page of one subcommand: usage, description and a table of its options."""
    context = click.Context(command, info_name=f"accord {name}")
    title = f"accord {name}"
    lines = [title, "=" * len(title), "", *_code([command.get_usage(context)[7:]])]
    lines += _paragraphs(command.help or "")
    lines += ["", "Options", "-------", "", ".. list-table::", "   :widths: 35 65", ""]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:  # the help's text describes arguments
            spelling, about = (" ".join(text.split()) for text in record)
            lines += [f"   * - ``{spelling}``", f"     - {_plain(about)}"]
    return "\n".join(lines)


def _paragraphs(text: str) -> list[str]:
    """The help's paragraphs; those whose lines belong apart stay as they are."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        if "\b" in paragraph:  # click's mark for lines that must not be joined
            lines += _code(paragraph.split("\b\n")[1].splitlines())
        else:
            lines += [_plain(" ".join(paragraph.split())), ""]
    return lines


def _code(lines: list[str]) -> list[str]:
    return [".. code-block:: text", "", *(f"   {line}" for line in lines), ""]


def _plain(text: str) -> str:
    """Text without marks that reStructuredText would read."""
    return "".join(f"\\{letter}" if letter in "*`|_\\" else letter for letter in text)


def index_page(commands: dict[str, click.Command]) -> str:
    """The contents of the command's reference."""
    title = "Command reference"
    lines = [title, "=" * len(title), "", "What ``accord COMMAND --help`` prints.", ""]
    about = {
        name: _plain(command.get_short_help_str(limit=200)) for name, command in commands.items()
    }
    return "\n".join(lines + contents(about))


def write_pages(app: Sphinx) -> None:
    """Write the pages before sources are read."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    write_if_changed(folder / "index.rst", index_page(application.commands) + "\n")
    for name, command in application.commands.items():
        write_if_changed(folder / f"{name}.rst", command_page(name, command) + "\n")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
