"""How long work says how far it is: one callback, passed down and divided on the way."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Protocol


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
