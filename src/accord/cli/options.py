"""Options that several subcommands share."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from accord._wording import listed

Command = TypeVar("Command", bound=Callable[..., Any])

# Keys of click's context, where options that act outside their command are kept.
DEBUG = "accord.debug"
JSON = "accord.json"
RESUMABLE = "accord.resumable"

TABLE = click.Path(path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
OUTPUT = click.Path(dir_okay=False, path_type=Path, allow_dash=True)

# From here on a number without % can only be meant as a percentage.
_PERCENT_FROM = 10.0
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(value: str) -> float:
    """Seconds, from a number with or without a unit.

    >>> duration("90"), duration("1.5m"), duration("1h")
    (90.0, 90.0, 3600.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(s|m|min|h)?\s*", str(value).lower())
    if not match or float(match.group(1)) == 0:
        raise click.BadParameter(f"{value!r} is not a positive duration. Write 90s, 5m or 1h.")
    return float(match.group(1)) * _UNITS[match.group(2) or ""]


def layers(value: str) -> tuple[int, ...]:
    """Units of each hidden layer.

    >>> layers("50"), layers("64,32")
    ((50,), (64, 32))
    """
    words = str(value).split(",")
    if not all(re.fullmatch(r"\s*[1-9]\d*\s*", word) for word in words):
        raise click.BadParameter(f"{value!r} is no list of layers. Write 50, or 50,50 for two.")
    return tuple(int(word) for word in words)


def share(value: str | float) -> float:
    """A share strictly between nothing and everything, also as a percentage.

    A number without % is a percentage from 10 on: 1.5 can be a mistake for 0.15, or mean 1.5 %.

    >>> share("0.95"), share("95"), share("95%"), share("1.5 %"), share(0.5)
    (0.95, 0.95, 0.95, 0.015, 0.5)
    """
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = 0.0
    in_doubt = not text.endswith("%") and 1 < number < _PERCENT_FROM
    number = number / 100 if text.endswith("%") or number >= _PERCENT_FROM else number
    if not 0 < number < 1:
        percentage = f", or {text}% for that percentage" if in_doubt else ""
        raise click.BadParameter(
            f"a share must lie strictly between 0 and 1, got {value!r}. Write 0.95 or 95%"
            f"{percentage}."
        )
    return round(number, 10)


def tolerance(value: str) -> float | str:
    """A number in target units; a percentage or a word, which the method knows, is passed on.

    >>> tolerance("0.5"), tolerance("1%"), tolerance("Choose")
    (0.5, '1%', 'choose')
    """
    text = str(value).strip().lower()
    try:
        return float(text)
    except ValueError:
        return text


def bounds(value: str) -> tuple[float | None, float | None] | str | None:
    """Two ends, either of which may be left out; or "detect" or "none".

    >>> bounds("0,"), bounds("0,100"), bounds("none"), bounds("detect")
    ((0.0, None), (0.0, 100.0), None, 'detect')
    """
    text = str(value).strip().lower()
    if text in ("none", "detect"):
        return "detect" if text == "detect" else None
    try:
        low, high = (float(end) if end.strip() else None for end in text.split(","))
    except ValueError:
        low, high = 1.0, 0.0
    if low is not None and high is not None and not low < high:
        raise click.BadParameter(
            f"{value!r} is no pair of bounds. Write '0,' or '0,100', detect or none."
        )
    return low, high


def _use_threads(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    """Set before any library that reads it is imported."""
    if value is not None:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[name] = str(value)


def _remember(key: str) -> Callable[[click.Context, click.Parameter, bool], bool]:
    def callback(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
        ctx.meta[key] = value
        return value

    return callback


def complete_column(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Column names of the table that stands earlier on the line, for shell completion."""
    from accord.tables import read_header

    # While an option waits for its value, click leaves the arguments before it unassigned.
    given = [ctx.params.get("table"), ctx.params.get("predictions"), *reversed(ctx.args)]
    source = next((Path(word) for word in given if word and Path(word).is_file()), None)
    try:
        names = read_header(source) if source else []
    except (OSError, ValueError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def column(name: str, *names: str, about: str, **more: Any) -> Callable[[Command], Command]:
    """An option that names a column, which shells complete; a second one is refused, not lost."""
    once: dict[str, Any] = {} if more.get("multiple") else {"multiple": True, "callback": _only_one}
    return click.option(
        name, *names, metavar="COLUMN", shell_complete=complete_column, help=about, **more, **once
    )


def _only_one(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str | None:
    if len(value) > 1:
        raise click.BadParameter(f"it must name one column, got {listed(value)}. Name one of them.")
    return value[0] if value else None


def columns(name: str, *names: str, about: str) -> Callable[[Command], Command]:
    """An option that names columns, one each time."""
    return column(name, *names, multiple=True, about=f"{about}; may be repeated.")


def count(
    *names: str, about: str, default: int | None = None, at_least: int = 1
) -> Callable[[Command], Command]:
    """An option that is a number of things."""
    return click.option(
        *names,
        type=click.IntRange(min=at_least),
        metavar="N",
        default=default,
        show_default=default is not None,
        help=about,
    )


def file(
    *names: str, about: str, default: str | None = None, kind: Any = FILE
) -> Callable[[Command], Command]:
    """An option that is a file to write."""
    return click.option(
        *names,
        type=kind,
        default=None if default is None else Path(default),
        show_default=default is not None,
        help=about,
    )


def report(default: str | None = None) -> Callable[[Command], Command]:
    """``--report``; where one is written by default, also ``--no-report``."""
    about = "one HTML file; its figures go beside it as .json."
    if default is None:
        return file("--report", about=f"Also write a report, {about}")

    def add(command: Command) -> Command:
        none = click.option("--no-report", is_flag=True, help="Write no report.")
        return file("--report", about=f"The report, {about}", default=default)(none(command))

    return add


def share_of(
    name: str, *names: str, about: str, default: float | None = None, multiple: bool = False
) -> Callable[[Command], Command]:
    """An option that is a share between 0 and 1."""
    return click.option(
        name,
        *names,
        type=share,
        metavar="SHARE",
        default=default,
        show_default=default is not None,
        multiple=multiple,
        help=about,
    )


def common(command: Command) -> Command:
    """What every command has that says something on its way: ``--quiet``, and :func:`always`."""
    quiet = click.option("--quiet", "-q", is_flag=True, help="No progress bar and no notes.")
    return always(quiet(command))


def always(command: Command) -> Command:
    """What every command has: ``--json`` and ``--debug``."""
    for option in (
        click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_remember(DEBUG),
            help="Show a traceback if something fails.",
        ),
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            is_eager=True,
            callback=_remember(JSON),
            help="Print one JSON document instead of words.",
        ),
    ):
        command = option(command)
    return command


target = column("--target", "-t", required=True, about="The column to predict.")
group = column(
    "--group",
    about="Rows with the same value belong together (a person, a machine) and are held out "
    "together, so that the figures are those for new groups.",
)
time = column("--time", about="The time of each row: rows are held out in blocks of time.")
ignore = columns("--ignore", about="A column not to be used")
use = columns(
    "--use", about="A column to be used although it looks like a row number or an identifier"
)
category = columns(
    "--category", about="A column of numbers that are codes and not quantities (postcodes, types)"
)
threads = click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    expose_value=False,
    callback=_use_threads,
    help="Processor threads to use.  [default: chosen by the size of the work]",
)
scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Work on the Dask cluster whose scheduler is at this address, like tcp://10.0.0.5:8786.",
)
workers = count(
    "--workers",
    about="Use this many processes of this machine, one thread each, as a Dask cluster.",
)


def cluster(command: Command) -> Command:
    """Who does the work, if not this process."""
    return scheduler(workers(command))


force = click.option("--force", "-f", is_flag=True, help="Replace existing files.")
seed = count("--seed", "random_state", at_least=0, default=0, about="Same seed, same result.")
strict = click.option(
    "--strict",
    is_flag=True,
    help="Refuse infinite and extreme values, words among numbers and unknown categories.  "
    "[default: predict and flag their rows]",
)


def dialect(command: Command) -> Command:
    """How a CSV file is written."""
    return encoding(delimiter(decimal(command)))


encoding = click.option(
    "--encoding", metavar="NAME", help="Text encoding of a CSV file.  [default: detected]"
)
delimiter = click.option(
    "--delimiter",
    metavar="SIGN",
    help="What separates the cells of a CSV file: , ; | tab or space.  [default: detected]",
)
decimal = click.option(
    "--decimal",
    type=click.Choice([".", ","]),
    help="The decimal mark of a CSV file.  [default: detected]",
)
by_name = click.option(
    "--by-name",
    is_flag=True,
    help="Match columns by name only: any order; further columns are ignored.",
)
coverage = share_of(
    "--coverage", default=0.95, about="Share of the values that intervals should contain."
)
