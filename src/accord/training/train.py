"""Train tasks as stacks: grouped by length, cut to the byte budget, diverged members restarted."""

import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._processes import threads_for
from accord._types import Bools
from accord.training.loop import Loop
from accord.training.tasks import (
    Chunk,
    Design,
    EpochReport,
    Listener,
    Objective,
    Settings,
    StreamedRows,
    Task,
    Trained,
)

# A stack is no larger than this, unless a single task is.
_STACK_BYTES = 2 * 2**30
# A member whose loss or weights stop being finite is trained again, at most this often.
_MAX_RESTARTS = 3
_RESTART_FACTOR = 0.1
# Between two states of a training that are kept.
_KEEP_SECONDS = 60.0
# torch has no error of its own for memory on the CPU.
_MEMORY = re.compile("allocate|out of memory|storage size", re.IGNORECASE)


class DivergedError(ValueError):
    """Networks that reach no finite loss, whatever the learning rate."""


def train(
    tasks: Sequence[Task],
    design: Design,
    objective: Objective,
    settings: Settings,
    *,
    listener: Listener | None = None,
) -> list[Trained]:
    """Train all members of all tasks together; one result per task, in order.

    Tasks with equally many steps per epoch share a stack, as far as memory should hold it; with
    ``settings.dealt`` all do, and the rows of shorter ones are dealt out evenly over the steps of
    the longest. Members that diverge are started again with a tenth of the rate, and a warning says
    how many. Ctrl-C during the last stack ends training after the running step, and the members
    keep what they have learnt so far; earlier it is passed on.
    """
    results: dict[int, Trained] = {}
    stacks = _stacks(tasks, design, settings)
    for done, numbers in enumerate(stacks):
        group = [tasks[i] for i in numbers]
        with _enough_memory(), threads_for(_largest_product(group, design, settings)):
            loop = Loop(group, design, objective, settings, _share(listener, done, len(stacks)))
            loop.run()
        if loop.interrupted and done + 1 < len(stacks):
            raise KeyboardInterrupt
        trained = _without_diverged(group, loop.results(), design, objective, settings)
        results.update(zip(numbers, trained, strict=True))
    return [results[i] for i in range(len(tasks))]


def train_on_stream(
    tasks: Sequence[Task],
    chunk: Callable[[int], Chunk],
    design: Design,
    objective: Objective,
    settings: Settings,
    *,
    listener: Listener | None = None,
    state: dict[str, Any] | None = None,
    keep: Callable[[dict[str, Any]], None] | None = None,
) -> list[Trained]:
    """Train all members as one stack on rows that come in chunks, one for each epoch.

    ``keep`` is given the state of training now and then; with it as ``state`` the same call goes
    on from there, and ends at the same bits. Members that diverge are an error: there is no way
    back in a stream.
    """
    kept_at = time.monotonic()

    def after_epoch(loop: Loop) -> None:
        nonlocal kept_at
        if keep is not None and time.monotonic() - kept_at >= _KEEP_SECONDS:
            keep(loop.state)
            kept_at = time.monotonic()

    rows = StreamedRows(chunk, tasks, settings)
    with _enough_memory(), threads_for(_largest_product(tasks, design, settings)):
        loop = Loop(tasks, design, objective, settings, listener, rows, after_epoch)
        if state is not None:
            loop.go_on_from(state)
        loop.run()
    results = loop.results()
    if not all(_is_finite(result).all() for result in results):
        raise DivergedError(
            "training must reach a finite loss, but networks diverged on the stream of rows. Check "
            "the data for extreme values."
        )
    return results


@contextmanager
def _enough_memory() -> Iterator[None]:
    """What torch says about memory, as the error that Python has for it."""
    try:
        yield
    except RuntimeError as error:
        if not _MEMORY.search(str(error)):
            raise
        raise MemoryError(
            "the networks must fit in memory, got more than there is. Use smaller layers (hidden), "
            "fewer members or a smaller batch_size."
        ) from error


def _share(listener: Listener | None, done: int, n_stacks: int) -> Listener | None:
    """A listener to one stack that reports its epochs as a part of one long run."""
    if listener is None or n_stacks == 1:
        return listener

    def report(progress: EpochReport) -> None:
        total = progress.n_epochs * n_stacks
        epoch = progress.epoch + done * progress.n_epochs
        listener(replace(progress, epoch=epoch, n_epochs=total))

    return report


def _largest_product(tasks: Sequence[Task], design: Design, settings: Settings) -> float:
    """Multiplications in the largest product of a step."""
    members = sum(len(task.seeds) for task in tasks)
    return float(members * settings.batch_size * design.largest_product)


def _stacks(tasks: Sequence[Task], design: Design, settings: Settings) -> list[list[int]]:
    """Numbers of the tasks that train together.

    Equal steps per epoch, so that a member takes exactly the steps it would take alone, unless
    tasks are dealt out.
    """
    by_steps: dict[int, list[int]] = {}
    for number, task in enumerate(tasks):
        n_steps = 1 if settings.dealt else math.ceil(task.n_rows / settings.batch_size)
        by_steps.setdefault(n_steps, []).append(number)
    stacks: list[list[int]] = []
    for numbers in by_steps.values():
        used = math.inf
        for number in numbers:
            size = _bytes(tasks[number], design, settings)
            if used + size > _STACK_BYTES:
                stacks.append([])
                used = 0.0
            stacks[-1].append(number)
            used += size
    return stacks


def _bytes(task: Task, design: Design, settings: Settings) -> int:
    """Rows, parameters with gradient and optimiser state, and the activations of one batch."""
    width = task.x.shape[1] + sum(column.shape[1] for column in task.columns.values()) + 1
    member = 5 * design.n_parameters + 4 * settings.batch_size * design.n_activations
    return settings.dtype.itemsize * (task.n_rows * width + len(task.seeds) * member)


def _without_diverged(
    tasks: Sequence[Task],
    results: list[Trained],
    design: Design,
    objective: Objective,
    settings: Settings,
) -> list[Trained]:
    """Replace members whose training diverged by ones trained with a smaller rate."""
    rate = settings.learning_rate
    bad = {i: ~_is_finite(result) for i, result in enumerate(results)}
    for _ in range(_MAX_RESTARTS):
        bad = {i: members for i, members in bad.items() if members.any()}
        if not bad:
            return results
        rate *= _RESTART_FACTOR
        warnings.warn(
            f"{sum(int(members.sum()) for members in bad.values())} networks diverged; starting "
            f"them again with learning rate {rate:g}.",
            RuntimeWarning,
            stacklevel=3,
        )
        again = [_only(tasks[i], members) for i, members in bad.items()]
        retry = Loop(again, design, objective, replace(settings, learning_rate=rate), None)
        retry.run()
        for (i, members), fresh in zip(bad.items(), retry.results(), strict=True):
            results[i] = _replaced(results[i], members, fresh)
            bad[i] = members.copy()
            bad[i][members] = ~_is_finite(fresh)
    if not any(members.any() for members in bad.values()):
        return results
    raise DivergedError(
        f"training must reach a finite loss, but networks diverged at every rate down to {rate:g}. "
        "Check the data for extreme values, or lower learning_rate."
    )


def _is_finite(result: Trained) -> Bools:
    finite = np.ones(len(result.parameters[0]), bool)
    for block in (*result.parameters, *result.history[-1:]):
        finite &= np.isfinite(block).reshape(len(finite), -1).all(1)
    return finite


def _only(task: Task, members: Bools) -> Task:
    seeds = tuple(seed for seed, kept in zip(task.seeds, members, strict=True) if kept)
    return replace(task, seeds=seeds, initial=None)


def _replaced(old: Trained, members: Bools, fresh: Trained) -> Trained:
    """``old`` with some members' state and curves taken from ``fresh``."""
    pairs = zip(old.parameters, fresh.parameters, strict=True)
    history, held_out = old.history.copy(), old.held_out_history.copy()
    for into, values in ((history, fresh.history), (held_out, fresh.held_out_history)):
        into[:, members] = np.nan  # the runs may differ in length
        into[: len(values), members] = values[: len(into)]
    return replace(
        old,
        parameters=[_put(block, members, values) for block, values in pairs],
        extra=_put(old.extra, members, fresh.extra),
        buffers=[
            _put(block, members, values)
            for block, values in zip(old.buffers, fresh.buffers, strict=True)
        ],
        history=history,
        held_out_history=held_out,
        n_epochs=_put(old.n_epochs, members, fresh.n_epochs),
        restarts=_put(old.restarts, members, old.restarts[members] + 1),
    )


def _put(
    into: NDArray[np.generic], members: Bools, values: NDArray[np.generic]
) -> NDArray[np.generic]:
    into = into.copy()
    into[members] = values
    return into
