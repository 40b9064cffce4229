"""Progress of a long run: what is done, what is at work, how long it will still take."""

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from accord.experiments.plan import Stack

__all__ = ["Listener", "Silent", "TerminalProgress", "duration"]


class Listener(Protocol):
    """Told what a run does."""

    def planned(self, stacks: list[Stack], *, done: int, jobs: int) -> None:
        """Before the first stack: those to do, and how many were done in earlier runs."""

    def started(self, stack: Stack) -> None:
        """A stack is handed to a worker."""

    def finished(self, stack: Stack, *, seconds: float, networks: int) -> None:
        """A stack's records are on disk."""

    def failed(self, stack: Stack, reason: str) -> None:
        """A stack gave an error; the others go on."""

    def said(self, message: str) -> None:
        """Something for the user to read."""


class Silent:
    """Says nothing."""

    def planned(self, stacks: list[Stack], *, done: int, jobs: int) -> None: ...
    def started(self, stack: Stack) -> None: ...
    def finished(self, stack: Stack, *, seconds: float, networks: int) -> None: ...
    def failed(self, stack: Stack, reason: str) -> None: ...
    def said(self, message: str) -> None: ...


class TerminalProgress:
    """A bar with the time left on a terminal; a line per stack elsewhere.

    The time left comes from the stacks' estimated costs, corrected by how long those done so far
    have really taken.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task("", total=1.0, count="", left="", start=False)
        self._total = self._spent = self._done_cost = 0.0
        self._n = self._n_done = 0
        self._jobs = 1
        self._at_work: dict[str, None] = {}  # ordered; a stack tried again is there once

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def planned(self, stacks: list[Stack], *, done: int, jobs: int) -> None:
        self._total, self._n, self._jobs = sum(s.cost for s in stacks), len(stacks), jobs
        again = f", {done} done before" if done else ""
        self.said(f"{self._n} stacks of networks to train{again}, {jobs} at a time.")
        self._bar.start_task(self._task)
        self._show()

    def started(self, stack: Stack) -> None:
        self._at_work[stack.label] = None
        self._show()

    def finished(self, stack: Stack, *, seconds: float, networks: int) -> None:
        self._spent += seconds
        self._close(stack)
        if not self.console.is_terminal:
            self.said(
                f"[{self._n_done}/{self._n}] {stack.label}: {networks} networks in "
                f"{duration(seconds)}, {self._left()}"
            )

    def failed(self, stack: Stack, reason: str) -> None:
        self._close(stack)
        self.said(f"{stack.label} failed: {reason}")

    def said(self, message: str) -> None:
        self.console.print(message, highlight=False, markup=False, soft_wrap=True)

    def _close(self, stack: Stack) -> None:
        self._n_done += 1
        self._done_cost += stack.cost
        self._at_work.pop(stack.label, None)
        self._show()

    def _show(self) -> None:
        self._bar.update(
            self._task,
            description=", ".join(self._at_work) or "…",
            completed=self._done_cost,
            total=self._total or 1.0,
            count=f"{self._n_done}/{self._n}",
            left=self._left(),
        )

    def _left(self) -> str:
        # One stack's worth of trust in the estimates, so that the first one done does not swing it.
        prior = self._total / max(self._n, 1)
        pace = (self._spent + prior) / (self._done_cost + prior) if prior else 1.0
        seconds = (self._total - self._done_cost) * pace / self._jobs
        return f"about {duration(seconds)} left" if self._n_done < self._n else "done"


def duration(seconds: float) -> str:
    """A time for people.

    Example:
        >>> duration(42.3), duration(192), duration(7380)
        ('42 s', '3 min', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
