"""How long work tells how far it is."""

from typing import Protocol


class Progress(Protocol):
    """Told about stages, each with a weight in proportion to its expected cost."""

    def plan(self, total: float) -> None:
        """The weights of all stages add up to ``total``."""

    def stage(self, name: str, *, weight: float) -> None:
        """A stage begins, and the one before it is over."""

    def advance(self, share: float) -> None:
        """So much of the running stage is done, from 0 to 1."""


class Silent:
    """Listens and says nothing."""

    def plan(self, total: float) -> None: ...
    def stage(self, name: str, *, weight: float) -> None: ...
    def advance(self, share: float) -> None: ...
