"""The one way in which files are written: whole or not at all, and never over an input.

Content goes to a temporary file beside its target, from there to the disk, and then takes the
target's name in one step. Somebody who reads, at any moment, sees the old file or the new one.
"""

import errno
import importlib.util
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from accord._wording import printable

STANDARD_STREAM = Path("-")
_PART = ".part"
_LOCKS = importlib.util.find_spec("fcntl") is not None  # Windows has none
# A part whose owner cannot be asked (no locks on this system) is taken for abandoned after an hour.
_ABANDONED_SECONDS = 3600.0
# Between the making of a part and its lock lies a moment in which nobody seems to own it.
_YOUNG_SECONDS = 1.0


class OptionError(ValueError):
    """What was asked for does not fit: a column that is not there, a file that already exists."""


# --- checks before any long work ---------------------------------------------------------------


def check_inputs(paths: Iterable[str | Path]) -> None:
    """Refuse files that are not there; ``-`` is standard input, which can be read once."""
    files = [Path(path) for path in paths]
    for path in files:
        if path == STANDARD_STREAM:
            continue
        if not path.exists():
            raise OptionError(f"{_shown(path)} does not exist. Check the path.")
        if path.is_dir() and not any(path.glob("*.parquet")):
            raise OptionError(
                f"{_shown(path)} is a folder without Parquet files. Give a file, or a folder of "
                "Parquet files."
            )
    if sum(path == STANDARD_STREAM for path in files) > 1:
        raise OptionError("only one input can be -, standard input. Give files for the others.")


def check_output(
    path: str | Path, *, inputs: Iterable[str | Path] = (), force: bool = False
) -> Path:
    """Refuse, before any long work, a file that must not or cannot be written.

    Args:
        path: The file to write; ``-`` is standard output. A symbolic link is followed.
        inputs: Files that are read. None of them may be written to, with ``force`` or without,
            whatever links lead there; nor may anything be written into a folder that is read.
        force: Whether a file that exists may be replaced.
    """
    path = Path(path)
    if path == STANDARD_STREAM:
        return path
    shown, target = _shown(path), _target(path)
    if target.is_dir():
        raise OptionError(f"{shown} is a folder. Give the name of a file in it.")
    for given in inputs:
        if Path(given).is_dir() and target.resolve().parent == Path(given).resolve():
            raise OptionError(
                f"{shown} is in the folder {_shown(Path(given))}, which is read as one table. "
                "Write it elsewhere."
            )
        if _is_same_file(target, Path(given)):
            raise OptionError(
                f"{shown} is the input {_shown(Path(given))}, which must not be overwritten. "
                "Give another name for the output."
            )
    if target.exists() and not target.is_file():
        raise OptionError(
            f"{shown} is not a regular file (a pipe or a device). Give the name of a file, "
            "or - for standard output."
        )
    if target.exists() and not force:
        raise OptionError(
            f"{shown} already exists. Pass force (--force) to replace it, or another name."
        )
    _check_folder(target.parent)
    return path


def check_outputs(
    paths: Sequence[str | Path], *, inputs: Iterable[str | Path] = (), force: bool = False
) -> list[Path]:
    """:func:`check_output` for files that are written together; they must differ."""
    inputs = list(inputs)
    checked = [check_output(path, inputs=inputs, force=force) for path in paths]
    targets = [_target(path) for path in checked]
    for place, target in enumerate(targets):
        for earlier in targets[:place]:
            if target == earlier or _is_same_file(target, earlier):
                raise OptionError(
                    f"each output needs a file of its own, got {_shown(checked[place])} twice. "
                    "Give different names."
                )
    return checked


def _check_folder(folder: Path) -> None:
    shown = _shown(folder)
    if not folder.is_dir():
        raise OptionError(f"the folder {shown} does not exist. Create it, or give another path.")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot write to {_shown(folder.absolute())} ({error.strerror}). "
            "Give a path in a folder that you can write to.",
        ) from error


def _target(path: Path) -> Path:
    """The file that a path leads to, through symbolic links."""
    if path == STANDARD_STREAM or not path.is_symlink():
        return path
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        raise OptionError(
            f"{_shown(path)} is a symbolic link that leads nowhere. Remove it, or give another "
            "path."
        ) from None


def _is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, by symbolic or hard links too."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # at least one of them does not exist
        return False


def _shown(path: Path) -> str:
    return printable(path, limit=300)


# --- writing -----------------------------------------------------------------------------------


@contextmanager
def atomic_output(
    path: str | Path, *, inputs: Iterable[str | Path] = (), force: bool = False
) -> Iterator[Path]:
    """A temporary path that takes the place of ``path`` when the block ends well.

    Whatever goes wrong in the block, Ctrl-C included, leaves neither a partial file nor a changed
    old one. A file that is replaced hands on its permissions. What is written for ``-`` goes to
    standard output at the end.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_output(folder / "a.txt") as part:
    ...     _ = part.write_text("whole")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    with atomic_outputs([path], inputs=inputs, force=force) as (part,):
        yield part


@contextmanager
def atomic_outputs(
    paths: Sequence[str | Path], *, inputs: Iterable[str | Path] = (), force: bool = False
) -> Iterator[tuple[Path, ...]]:
    """Temporary paths that take the places of several files in one step, the first one first.

    If a later file cannot be put in place, the earlier ones get their old content back. Only a
    kill between two renames can part them: then the first files are new and the others old.
    """
    checked = check_outputs(paths, inputs=inputs, force=force)
    targets = [_target(path) for path in checked]
    parts: list[_Part] = []
    try:
        for target in targets:
            parts.append(_Part(target))
        yield tuple(part.path for part in parts)
        for part in parts:
            part.to_disk()
        _commit(parts, force=force)
    finally:
        for part in parts:
            part.discard()


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` as the file ``path``, new or in place of the old; make its folder.

    >>> folder = Path(tempfile.mkdtemp())
    >>> write_whole(folder / "results" / "a.txt", "all of it")
    >>> (folder / "results" / "a.txt").read_text()
    'all of it'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(path, force=True) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Let no other process into such a block for a file of this folder: a file is changed whole.

    The folder itself is locked, so that no further file is left there. Systems without such locks
    go on without one.
    """
    if not _LOCKS:
        yield
        return
    import fcntl

    handle = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a network drive without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class _Part:
    """A hidden temporary file beside its target, locked while its owner lives."""

    def __init__(self, target: Path) -> None:
        self.target = target
        if target == STANDARD_STREAM:
            handle, name = tempfile.mkstemp(suffix=".csv")
            self.path, self._handle = Path(name), handle
            return
        _sweep(target)
        self.path = _part_name(target)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        self._handle = os.open(self.path, flags, 0o666 if mode is None else mode)
        if mode is not None:
            os.chmod(self.path, mode)  # the mask of the process took rights from the new file
        _lock(self._handle)

    def to_disk(self) -> None:
        # A writer may have made the file anew under its name, so it is opened again.
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())

    def discard(self) -> None:
        with suppress(OSError):
            os.close(self._handle)
        self.path.unlink(missing_ok=True)


def _part_name(target: Path) -> Path:
    """A hidden name in the same folder, with the same suffix: some writers go by it."""
    return target.with_name(f".{target.stem}.{secrets.token_hex(6)}{_PART}{target.suffix}")


def _commit(parts: list[_Part], *, force: bool) -> None:
    old: list[Path | None] = []
    done: list[_Part] = []
    try:
        for part in parts:
            old.append(_second_name(part.target) if len(parts) > 1 else None)
            _put_in_place(part, force=force)
            done.append(part)
    except BaseException:
        for part, kept in zip(done, old, strict=False):
            _take_back(part.target, kept)
        raise
    finally:
        for kept in old:
            if kept is not None:
                kept.unlink(missing_ok=True)
    for folder in {part.target.parent for part in parts if part.target != STANDARD_STREAM}:
        _flush_folder(folder)


def _put_in_place(part: _Part, *, force: bool) -> None:
    if part.target == STANDARD_STREAM:
        _to_standard_output(part.path)
    elif force:
        part.path.replace(part.target)
    else:
        _link(part.path, part.target)


def _to_standard_output(path: Path) -> None:
    try:
        with path.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # whoever read it has seen enough
    except OSError as error:
        message = f"cannot write to standard output ({error.strerror}). What is there is not whole."
        # Not the number of a full disk: files may well be written.
        raise OSError(errno.EIO, message) from error


def _take_back(target: Path, old: Path | None) -> None:
    if old is not None:
        old.replace(target)
    elif target != STANDARD_STREAM:
        target.unlink(missing_ok=True)


def _link(part: Path, target: Path) -> None:
    try:
        os.link(part, target)  # unlike a rename, fails if somebody made the file in the meantime
    except FileExistsError:
        raise OptionError(
            f"{_shown(target)} was created meanwhile. Pass force (--force) to replace it."
        ) from None
    except OSError:  # a file system without hard links
        part.replace(target)


def _second_name(target: Path) -> Path | None:
    """An old file under a further name, so that it outlives its replacement."""
    if target == STANDARD_STREAM or not target.exists():
        return None
    name = _part_name(target)
    try:
        os.link(target, name)
    except OSError:  # a file system without hard links
        shutil.copy2(target, name)
    return name


def _flush_folder(folder: Path) -> None:
    """A rename is safe from a power cut once the folder itself is on the disk."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    except OSError:  # some file systems do not flush folders
        pass
    finally:
        os.close(handle)


# --- what killed runs leave behind -------------------------------------------------------------


def _sweep(target: Path) -> None:
    """Remove the parts of this target whose owners are gone."""
    pattern = f".{_escaped(target.stem)}.{'[0-9a-f]' * 12}{_PART}{_escaped(target.suffix)}"
    for part in target.parent.glob(pattern):
        with suppress(OSError):
            if _is_abandoned(part):
                part.unlink(missing_ok=True)


def _escaped(text: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


def _is_abandoned(part: Path) -> bool:
    age = time.time() - part.stat().st_mtime
    if not _LOCKS:
        return age > _ABANDONED_SECONDS
    if age < _YOUNG_SECONDS:
        return False
    import fcntl

    handle = os.open(part, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # somebody is writing it
    finally:
        os.close(handle)
    return True


def _lock(handle: int) -> None:
    if _LOCKS:
        import fcntl

        with suppress(OSError):  # a network drive without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
