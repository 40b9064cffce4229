"""Whether files can be read and written: checked before long work, without heavy imports."""

import os
from collections.abc import Iterable
from pathlib import Path


def path_problem(
    inputs: Iterable[Path | str], outputs: Iterable[Path | str], *, force: bool = False
) -> str | None:
    """What is wrong with the files of a job, in a sentence; None if nothing is.

    No output may be one of the inputs, through links or not, even with ``force``.
    """
    read, written = [Path(path) for path in inputs], [Path(path) for path in outputs]
    for path in read:
        if not path.exists():
            return f"{path} does not exist. Check the path."
        if path.is_dir():
            return f"{path} is a folder. Give a file."
    for place, path in enumerate(written):
        for other in read:
            if _same(path, other):
                return f"the output {path} is also an input. Give the output another name."
        if any(_same(path, other) for other in written[:place]):
            return f"{path} is named for two outputs. Give each a name of its own."
        if problem := _output_problem(path, force):
            return problem
    return None


def _output_problem(path: Path, force: bool) -> str | None:
    if path.is_dir():
        return f"{path} is a folder. Give the name of a file in it."
    if path.exists() and not force:
        return f"{path} already exists. Pass --force to replace it, or another name."
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist. Create it, or give another path."
    return None


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file; hard links count, and files not there yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)
