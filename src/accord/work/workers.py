"""Who does units of work, and what is kept of them: a run that was stopped goes on from there.

A file is found only by the key of the very same unit: a digest of its data, its settings and the
code. It appears whole or not at all, so that a run may be killed at any moment; one that is damaged
all the same counts as absent. Like model files, these hold numbers and text, and no code.
"""

import hashlib
import importlib
import multiprocessing
import os
import shutil
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, final

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from accord import persistence
from accord._processes import available, server_of, start_server
from accord._wording import quoted
from accord.work.cluster import Calls, OnCluster, Outcomes, Unit, is_near

if TYPE_CHECKING:
    from distributed import Client

_ENDING = ".unit"
_FILES = ".files"
Value = TypeVar("Value")


@final
class Checkpoint:
    """Finished units in a folder, which is made when the first one is kept.

    Attributes:
        folder: Where the files are.
        found: How many units of an earlier run were used again.

    Example:
        >>> import tempfile
        >>> kept = Checkpoint(Path(tempfile.mkdtemp()) / "unfinished")
        >>> kept.put(digest("a", 1), {"loss": 0.5})
        >>> kept.get(digest("a", 1), dict), kept.get(digest("a", 2), dict)
        ({'loss': 0.5}, None)
        >>> kept.clear()
        >>> kept.folder.exists()
        False
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.found = 0
        self._writable = True
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(
                f"checkpoint must be a folder, got the file {quoted(self.folder)}. Give another "
                "name."
            )

    def get(self, key: str, kind: type[Value]) -> Value | None:
        """The value of a unit that was finished; None if there is no whole one."""
        try:
            value = persistence.load(self._path(key), dict)["value"]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        if not isinstance(value, kind):
            return None
        self.found += 1
        return value

    def put(self, key: str, value: Any) -> None:
        """Keep a value. Where there is no room for it, the run goes on without."""
        if not self._writable:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            persistence.save({"value": value}, self._path(key))
        except OSError as error:
            self._writable = False
            warnings.warn(
                f"what this run has finished cannot be kept in {quoted(self.folder, limit=200)} "
                f"({error.strerror}): if it is stopped, it begins anew.",
                RuntimeWarning,
                stacklevel=2,
            )

    def place(self, key: str) -> Path:
        """A folder for files of the run's own, which are removed with what was kept."""
        return self.folder / f"{key}{_FILES}"

    def clear(self) -> None:
        """Remove what was kept, and the folder if nothing else is in it."""
        for path in self.folder.glob(f"*{_ENDING}"):  # also what a kill left half written
            path.unlink(missing_ok=True)
        for path in self.folder.glob(f"*{_FILES}"):
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # not there, or it holds something that is not ours
            self.folder.rmdir()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_ENDING}"


@contextmanager
def kept_in(place: "str | Path | Checkpoint | None") -> Iterator[Checkpoint | None]:
    """A checkpoint that is cleared when the work is done; one that is given is its owner's."""
    if place is None or isinstance(place, Checkpoint):
        yield place
        return
    checkpoint = Checkpoint(place)
    yield checkpoint
    checkpoint.clear()


def digest(*values: Any) -> str:
    """A name for values: numbers, text, arrays, and lists, dictionaries and dataclasses of them.

    >>> digest(np.arange(3), "a") == digest(np.arange(3), "a")
    True
    >>> digest(np.arange(3)) == digest(np.arange(3.0))
    False
    """
    total = hashlib.sha256()
    for part in _described(values):
        total.update(f"{len(part)}:".encode())
        total.update(part)
    return total.hexdigest()[:40]


def _described(value: Any) -> Iterator[bytes | memoryview]:
    """The value as bytes that no other value has."""
    if isinstance(value, np.ndarray):
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).data.cast("B") if value.size else b""
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"object {type(value).__name__}".encode()
        for field in fields(value):
            yield field.name.encode()
            yield from _described(getattr(value, field.name))
    elif isinstance(value, list | tuple | dict):
        items = list(value.items()) if isinstance(value, dict) else value
        yield f"{type(value).__name__} {len(items)}".encode()
        for item in items:
            yield from _described(item)
    elif value is None or isinstance(value, str | int | float):
        yield f"{type(value).__name__} {value!r}".encode()
    else:
        raise TypeError(
            f"a unit of work must be described by numbers, text and arrays, got a "
            f"{type(value).__name__}. Pass what it was made of."
        )


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

    def run(self, unit: Unit, calls: Calls, *, ahead: int | None = None) -> Outcomes:
        """Number, value and error of each call, as they are done.

        A call is taken from ``calls`` only when somebody is free for it, and none that is more
        than ``ahead`` after the first unfinished one.
        """


@final
class InProcess:
    """This process, one unit after the other.

    >>> list(InProcess().run(divmod, [(7, 2), (9, 4)]))
    [(0, (3, 1), None), (1, (2, 1), None)]
    """

    count = 1
    in_process = True

    def share(self, value: Any) -> Any:
        return value

    def run(self, unit: Unit, calls: Calls, *, ahead: int | None = None) -> Outcomes:
        for number, arguments in enumerate(calls):
            try:
                value, error = unit(*arguments), None
            except Exception as raised:  # what it means is the caller's to say
                value, error = None, raised
            yield number, value, error


@final
class Processes:
    """Processes of this machine, one thread each; used as a context, with which they end.

    ``module`` is imported at once, while this process goes on, so that the first unit need not
    wait; where the system has a fork server it does so for all of them, and for those of later
    fits. To ask it for a process is to wait until it is ready: the first units do that.
    """

    in_process = False

    def __init__(self, count: int, module: str) -> None:
        self.count = count
        served = start_server(module)
        self._pool = ProcessPoolExecutor(count, server_of(module), _begin, (module,))
        for _ in range(0 if served else count):  # the pool starts a process when none is free
            self._pool.submit(int)

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        own = list(self._pool._processes.values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in own:  # nobody waits for a unit that was begun
            process.terminate()

    def share(self, value: Any) -> Any:
        return value

    def run(self, unit: Unit, calls: Calls, *, ahead: int | None = None) -> Outcomes:
        waiting, at_work = enumerate(calls), dict[Future[Any], int]()
        more = True
        try:
            while more or at_work:
                while more and len(at_work) < self.count and is_near([*at_work.values()], ahead):
                    call = next(waiting, None)
                    more = call is not None
                    if call is not None:
                        at_work[self._pool.submit(unit, *call[1])] = call[0]
                for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool) or not isinstance(
                        error, Exception | None
                    ):
                        raise error
                    yield at_work.pop(future), None if error else future.result(), error
        except BrokenProcessPool as error:
            raise MemoryError(
                "the processes that train must live until they are done, but one was ended "
                "from outside. Is there enough memory? Use n_jobs=1 (--threads 1)."
            ) from error


def _begin(module: str) -> None:
    """A worker process: one thread; it ends with the process that asked, which alone is stopped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    importlib.import_module(module)
    torch.set_num_threads(1)
    threadpool_limits(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def local_workers(client: "Client | None", n_jobs: int | None, *, module: str) -> Iterator[Workers]:
    """The workers of a Dask client; else ``n_jobs`` processes, or this one alone.

    Args:
        client: A Dask client, or None.
        n_jobs: As in scikit-learn: None is this process, −1 as many as it may use threads.
        module: What the processes import while they start.
    """
    count = min(available(), torch.get_num_threads()) if n_jobs == -1 else n_jobs or 1
    if client is not None or count == 1:
        yield workers_of(client)
        return
    with Processes(count, module) as workers:
        yield workers


def workers_of(client: "Client | None") -> Workers:
    """The workers of a Dask client, or this process."""
    return InProcess() if client is None else OnCluster(client)


def carry_out(
    unit: Unit,
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

    >>> workers = InProcess()
    >>> [done.value for done in carry_out(pow, ["a", "b"], lambda i: (2, i), workers=workers)]
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
