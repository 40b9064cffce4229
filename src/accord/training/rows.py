"""Where the rows of a stack's batches come from: tensors in memory, or a stream of chunks."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
import torch
from torch import Tensor

from accord._types import Bools
from accord.training.tasks import Columns, Settings, Task

# Batches are gathered ahead for as many steps as fit in this many bytes. They, and the masks of
# dropout beside them, are there several times over for a moment, and are read from the cache.
_GATHER_BYTES = 8 * 2**20


@dataclass(frozen=True)
class Batches:
    """The batches of S steps; rows of weight 0 are padding.

    **Shape**: x (S, M, B, d), each column (S, M, B, T), weight (S, M, B, 1).
    """

    x: Tensor
    columns: Columns
    weight: Tensor


class RowSource(Protocol):
    """What a stack is trained on."""

    def batches(self, epoch: int) -> Iterator[Batches]:
        """The batches of an epoch, counted from 0, some steps at a time."""


@final
@dataclass
class StackedRows:
    """The rows of all tasks end to end, and where each member finds its own.

    Of inputs, which are wide, each table is there once: ``place`` says where in ``x`` a row is.
    Every epoch is a new permutation of each member's rows, from the member's own generator.
    """

    x: Tensor
    place: Tensor
    columns: Columns
    weight: Tensor
    starts: list[int]
    counts: list[int]
    shuffles: list[torch.Generator]
    settings: Settings

    @staticmethod
    def stacked(tasks: Sequence[Task], settings: Settings) -> "StackedRows":
        like = torch.empty(0, dtype=settings.dtype, device=settings.device)

        def end_to_end(parts: Sequence[Tensor]) -> Tensor:
            # one extra row at the end, of weight 0: the padding that index matrices point to
            return torch.cat([*parts, parts[0][:1]]).to(like)

        weight = end_to_end([_relative_weight(task) for task in tasks])
        weight[-1] = 0
        ends = np.cumsum([task.n_rows for task in tasks])
        member_tasks = [i for i, task in enumerate(tasks) for _ in task.seeds]
        seeds = [seed for task in tasks for seed in task.seeds]
        tables, place = _shared_inputs(tasks)
        return StackedRows(
            torch.cat(tables).to(like) if len(tables) > 1 else tables[0].to(like),
            place.to(settings.device),
            {n: end_to_end([task.columns[n] for task in tasks]) for n in tasks[0].columns},
            weight.unsqueeze(1),
            [int(ends[i]) - tasks[i].n_rows for i in member_tasks],
            [tasks[i].n_rows for i in member_tasks],
            # a stream other than that of the member's initial weights
            [torch.Generator().manual_seed(seed ^ 0x5DEECE66D) for seed in seeds],
            settings,
        )

    def batches(self, epoch: int) -> Iterator[Batches]:
        order = self._shuffled()
        n_steps, members, batch = order.shape
        width = sum(part.shape[1] for part in (self.x, self.weight, *self.columns.values()))
        ahead = _steps_ahead(members * batch * width, self.settings)
        for start in range(0, n_steps, ahead):
            yield self._gathered(order[start : start + ahead])

    def _shuffled(self) -> Tensor:
        """Row numbers of the epoch's batches, (steps, M, B), filled up with the padding row.

        The rows of a member that would need fewer steps are dealt out over all of them, as cards
        are: its batches are smaller, and about equal.
        """
        batch = min(self.settings.batch_size, max(self.counts))
        n_steps = math.ceil(max(self.counts) / batch)
        order = torch.full((len(self.counts), n_steps * batch), len(self.weight) - 1)
        members = zip(order, self.counts, self.starts, self.shuffles, strict=True)
        for own, count, start, generator in members:
            place = torch.arange(count)
            if count <= (n_steps - 1) * batch:
                place = place % n_steps * batch + place // n_steps
            own[place] = torch.randperm(count, generator=generator) + start
        return order.view(-1, n_steps, batch).transpose(0, 1).contiguous()

    def _gathered(self, order: Tensor) -> Batches:
        flat = order.flatten().to(self.settings.device)

        def gathered(rows: Tensor, at: Tensor = flat) -> Tensor:
            return rows.index_select(0, at).view(*order.shape, -1)

        weight = gathered(self.weight)
        weight /= _real(order < len(self.weight) - 1).to(weight)
        columns = {name: gathered(column) for name, column in self.columns.items()}
        return Batches(gathered(self.x, self.place[flat]), columns, weight)


@final
@dataclass(frozen=True)
class Chunk:
    """Some rows of a stream, in the order in which they are learnt from.

    ``encoded`` gives the inputs of some of them, which are wide; ``seen`` says which rows each
    task may learn from.

    **Shape**: each column (n, T), weight (n,), seen (tasks, n); encoded → (rows, d).
    """

    encoded: Callable[[slice], Tensor]
    columns: Columns
    weight: Tensor
    seen: Bools


@final
@dataclass(frozen=True)
class StreamedRows:
    """Rows that come in chunks, one for each epoch, and are then forgotten.

    All members learn from the same batches, but for rows that are kept from a task: these have
    weight 0. A chunk is cut into batches of about equal size. What an epoch brings depends on its
    number alone, so that training can go on after any of them.
    """

    chunk: Callable[[int], Chunk]
    tasks: Sequence[Task]
    settings: Settings

    def batches(self, epoch: int) -> Iterator[Batches]:
        chunk = self.chunk(epoch)
        n = len(chunk.weight)
        if not n:
            return
        size = math.ceil(n / max(1, round(n / self.settings.batch_size)))
        n_steps = math.ceil(n / size)
        width = chunk.encoded(slice(0, 1)).shape[1] + len(chunk.columns) + len(chunk.seen)
        ahead = _steps_ahead(size * width, self.settings)
        for start in range(0, n_steps, ahead):
            steps = min(ahead, n_steps - start)
            yield self._cut(chunk, slice(start * size, (start + steps) * size), steps, size)

    def _cut(self, chunk: Chunk, own: slice, steps: int, size: int) -> Batches:
        settings = self.settings
        like = torch.empty(0, dtype=settings.dtype, device=settings.device)
        member_tasks = [i for i, task in enumerate(self.tasks) for _ in task.seeds]

        def shared(rows: Tensor) -> Tensor:
            rows = torch.nn.functional.pad(rows.to(like), (0, 0, 0, steps * size - len(rows)))
            return rows.view(steps, 1, size, -1).expand(-1, len(member_tasks), -1, -1)

        seen = shared(torch.from_numpy(chunk.seen[:, own].T.copy()))  # (S, M, B, tasks)
        seen = torch.stack([seen[:, i, :, task] for i, task in enumerate(member_tasks)], 1)
        weight = shared(chunk.weight[own].unsqueeze(1)) * seen.unsqueeze(3)
        weight /= _real(seen > 0).to(weight)
        columns = {name: shared(column[own]) for name, column in chunk.columns.items()}
        return Batches(shared(chunk.encoded(own)), columns, weight)


def _steps_ahead(numbers_per_step: int, settings: Settings) -> int:
    return max(1, _GATHER_BYTES // (numbers_per_step * settings.dtype.itemsize))


def _real(is_real: Tensor) -> Tensor:
    """What a batch's mean is taken over: its real rows, of which there is one at least."""
    return is_real.sum(2, keepdim=True).clamp_(min=1).unsqueeze(3)


def _shared_inputs(tasks: Sequence[Task]) -> tuple[list[Tensor], Tensor]:
    """Each table of inputs once, and where in them the tasks' rows are, the padding row last."""
    tables = list({id(task.x): task.x for task in tasks}.values())
    sizes = np.cumsum([0, *(len(table) for table in tables)]).tolist()
    starts = {id(table): start for table, start in zip(tables, sizes, strict=False)}
    own = [torch.arange(task.n_rows) if task.rows is None else task.rows for task in tasks]
    places = [rows + starts[id(task.x)] for rows, task in zip(own, tasks, strict=True)]
    return tables, torch.cat([*places, torch.zeros(1, dtype=torch.long)])


def _relative_weight(task: Task) -> Tensor:
    """Weights whose mean is 1, so that a row counts the same whatever else is in its batch."""
    if task.weight is None:
        return torch.ones(task.n_rows)
    return task.weight / task.weight.mean().clamp(min=torch.finfo(task.weight.dtype).tiny)
