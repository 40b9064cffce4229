"""What can be wrong with a table, in words that name the columns and the remedy."""

from collections.abc import Iterable, Sequence

from accord._files import OptionError, printable, quoted
from accord._wording import listed, near_matches


class TableError(ValueError):
    """The table's content cannot be used."""


def check_present(
    roles: Iterable[tuple[str, str | None]], names: Sequence[str], *, source: str
) -> None:
    """Refuse a column that was named for a role and is not in the table; None names none."""
    for role, name in roles:
        if name is None or name in names:
            continue
        near = near_matches(name, names)
        remedy = (
            f"Did you mean {' or '.join(map(quoted, near))}?"
            if near
            else f"Its columns are {listed(names, limit=8)}."
        )
        raise OptionError(f"{role} column {quoted(name)} is not in {source}. {remedy}")


def check_names(source: str, names: list[str]) -> None:
    """Refuse a table without columns or with two of the same name."""
    if not names:
        raise TableError(f"{source} has no columns. Give a file with a header line and data rows.")
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise TableError(
            f"column names must be unique, but {source} has {listed(twice)} more than once. "
            "Rename or remove the copies."
        )


def reason(error: Exception) -> str:
    """The first line of a reader's complaint, fit to stand in brackets."""
    lines = str(error).strip().splitlines()
    return printable(lines[0], limit=160).rstrip(".") if lines else type(error).__name__
