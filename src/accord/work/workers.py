"""Who does units of work, and how all units of a kind are carried out, kept or not."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

from accord.work.checkpoint import Checkpoint
from accord.work.cluster import OnCluster

if TYPE_CHECKING:
    from distributed import Client

Arguments = tuple[Any, ...]


class Done(NamedTuple):
    """The end of a unit: its place in the order of the calls, and its value or its error.

    ``again`` says that the value was kept by an earlier run.
    """

    number: int
    value: Any
    error: Exception | None = None
    again: bool = False


class Workers(Protocol):
    """Those who do units of work."""

    @property
    def count(self) -> int:
        """How many units are done at a time, now."""

    @property
    def in_process(self) -> bool:
        """Whether units run in this process, where they can say how far they are."""

    def share(self, value: Any) -> Any:
        """Something large that many units read: given to units in its place, moved once."""

    def run(
        self,
        unit: Callable[..., Any],
        calls: Iterable[Arguments],
        *,
        ahead: int | None = None,
    ) -> Iterator[tuple[int, Any, Exception | None]]:
        """Number, value and error of each call, as they are done.

        A call is taken from ``calls`` only when somebody is free for it, and none that is more
        than ``ahead`` after the first unfinished one.
        """


@final
class Here:
    """This process, one unit after the other.

    >>> list(Here().run(divmod, [(7, 2), (9, 4)]))
    [(0, (3, 1), None), (1, (2, 1), None)]
    """

    count = 1
    in_process = True

    def share(self, value: Any) -> Any:
        return value

    def run(
        self,
        unit: Callable[..., Any],
        calls: Iterable[Arguments],
        *,
        ahead: int | None = None,
    ) -> Iterator[tuple[int, Any, Exception | None]]:
        for number, arguments in enumerate(calls):
            try:
                value, error = unit(*arguments), None
            except Exception as raised:  # what it means is the caller's to say
                value, error = None, raised
            yield number, value, error


def workers_of(client: "Client | None") -> Workers:
    """The workers of a Dask client, or this process."""
    return Here() if client is None else OnCluster(client)


def carry_out(
    unit: Callable[..., Any],
    keys: Sequence[str],
    begin: Callable[[int], Arguments | None],
    *,
    workers: Workers,
    checkpoint: Checkpoint | None = None,
    kind: type[Any] = object,
) -> Iterator[Done]:
    """Do all units that have not been done before, and keep what they give.

    Args:
        unit: The function that is called.
        keys: What tells each unit from all others, in the order in which they are begun.
        begin: Gives the arguments of a unit when it is about to begin; None leaves it out.
        workers: Those who do it.
        checkpoint: Where values are kept, and looked for first.
        kind: The type of a value; anything else that was kept is done again.

    Yields those that were kept first, and then the others as they are done.

    >>> here = Here()
    >>> [done.value for done in carry_out(pow, ["a", "b"], lambda i: (2, i), workers=here)]
    [1, 2]
    """
    waiting: list[int] = []
    for number, key in enumerate(keys):
        kept = None if checkpoint is None else checkpoint.get(key, kind)
        if kept is None:
            waiting.append(number)
        else:
            yield Done(number, kept, again=True)
    begun: list[int] = []

    def calls() -> Iterator[Arguments]:
        for number in waiting:
            arguments = begin(number)
            if arguments is not None:
                begun.append(number)
                yield arguments

    for place, value, error in workers.run(unit, calls()):
        number = begun[place]
        if checkpoint is not None and error is None:
            checkpoint.put(keys[number], value)
        yield Done(number, value, error)
