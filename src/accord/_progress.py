"""How long work says how far it is: one callback, passed down and divided on the way."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import import_module
from itertools import accumulate, pairwise
from shutil import get_terminal_size
from typing import Any, Protocol, final

from accord._wording import duration

# Seconds before a bar is shown at all, and between two changes of it.
_PATIENCE, _PACE = 1.0, 0.5


class Progress(Protocol):
    """Called with the share of the work that is done, from 0 to 1, and what is being done.

    Whoever receives one reports 1 only when nothing is left to do.
    """

    def __call__(self, share: float, what: str = "") -> None: ...


def silent(share: float, what: str = "") -> None:
    """Reports to nobody."""


def parts(progress: Progress, weights: Sequence[float]) -> Iterator[Progress]:
    """One progress per part of the work, in proportion to what each part is expected to cost.

    >>> seen = []
    >>> first, second = parts(lambda share, what="": seen.append(share), [1, 3])
    >>> first(0.5); first(1.0); second(0.5)
    >>> seen
    [0.125, 0.25, 0.625]
    """
    ends = [0.0, *accumulate(weight / sum(weights) for weight in weights)]
    for start, end in pairwise(ends):
        yield _part(progress, start, end)


def _part(progress: Progress, start: float, end: float) -> Progress:
    def report(share: float, what: str = "") -> None:
        progress(start + min(max(share, 0.0), 1.0) * (end - start), what)

    return report


def shown(progress: Progress | bool | None) -> Progress:
    """Whom to report to: a callback, a bar (True) or nobody (False).

    None is a bar in a notebook, where nobody sees otherwise that work goes on, and nobody
    elsewhere. On a terminal the bar is a line of standard error.
    """
    if callable(progress):
        return progress
    notebook = _notebook_display()
    if notebook is not None and progress is not False:
        return Bar(notebook, as_html)
    return Bar(_rewrite_line, as_line) if progress else silent


def lines(write: Callable[[str], Any]) -> Progress:
    """A line for each new kind of work, for logs.

    >>> report = lines(print)
    >>> report(0.0, "Reading"); report(0.1, "Training"); report(0.2, "Training")
    Reading …
    Training …
    """
    last = ""

    def report(share: float, what: str = "") -> None:
        nonlocal last
        if what and what != last:
            write(f"{what} …")
            last = what

    return report


@final
class Bar:
    """A bar that appears when work takes longer than a moment, and goes when it is finished.

    What is reported after that is new work, which has its own time.

    ``show`` replaces what was shown before by what ``write`` makes of the share, the kind of work
    and the seconds so far; an empty text removes it.
    """

    def __init__(
        self, show: Callable[[str], None], write: Callable[[float, str, float], str]
    ) -> None:
        self._show, self._write = show, write
        self._what = ""
        self._begin()

    def _begin(self) -> None:
        self._start, self._last = time.monotonic(), 0.0

    def __call__(self, share: float, what: str = "") -> None:
        seconds = time.monotonic() - self._start
        self._what = what or self._what
        if share >= 1:
            if self._last:
                self._show("")
            self._begin()
        elif seconds > _PATIENCE and seconds - self._last > _PACE:
            self._last = seconds
            self._show(self._write(share, self._what, seconds))


def as_line(share: float, what: str, seconds: float) -> str:
    """A bar of text.

    >>> as_line(0.25, "Training", 10.0)
    'Training  ━━━━━━━━────────────────────────  25 %  10 s, about 30 s left'
    """
    full = round(32 * share)
    return f"{what}  {'━' * full}{'─' * (32 - full)}  {_times(share, seconds)}"


def as_html(share: float, what: str, seconds: float) -> str:
    """A bar for a notebook, in its own colours."""
    return (
        f'<label style="display:flex;gap:.8em;align-items:center">{escape(what)} '
        f'<progress value="{share:.3f}" max="1" style="width:20em"></progress> '
        f"{_times(share, seconds).replace('  ', ' · ')}</label>"
    )


def _times(share: float, seconds: float) -> str:
    """The share, the time so far, and once something is known about it the time left."""
    rest = round(seconds * (1 - share) / max(share, 1e-9))
    words = f"{rest} s" if rest < 60 else duration(rest)
    left = f", about {words} left" if share > 0.02 else ""
    return f"{100 * share:.0f} %  {duration(seconds)}{left}"


_CLEAR = "\r\x1b[K"


def _rewrite_line(text: str) -> None:
    if sys.stderr.isatty():  # a line that is cut can be written over
        sys.stderr.write(f"{_CLEAR}{text[: get_terminal_size().columns - 1]}")
    elif text:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def say(text: str) -> None:
    """A line on standard error; a bar that stands there goes on below it."""
    sys.stderr.write(f"{_CLEAR if sys.stderr.isatty() else ''}{text}\n")
    sys.stderr.flush()


def _notebook_display() -> Callable[[str], None] | None:
    """What replaces one HTML text by another in a notebook's output; None elsewhere."""
    session = sys.modules.get("IPython")
    shell: Any = session.get_ipython() if session is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    page: Any = import_module("IPython.display")
    place: Any = None

    def show(text: str) -> None:
        nonlocal place
        if place is None:
            place = page.display(page.HTML(text), display_id=True)
        else:
            place.update(page.HTML(text))

    return show
