"""What is trained, on which rows, and how: tasks, settings, scales, batches, interfaces."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accord._types import Bools, Floats

Optimizer = Literal["adam", "adamw"]
Schedule = Literal["constant", "cosine"]
Columns = dict[str, Tensor]


class Objective(Protocol):
    """What is minimised, as a function of the networks' raw outputs."""

    @property
    def n_extra(self) -> int:
        """Trained scalars per member besides the network's parameters."""

    def __call__(
        self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Losses, and the gradients of Σ weight · loss by raw outputs and by ``extra``.

        **Shape**: raw (M, B, n_outputs), columns and losses (M, B, T), weight (M, B, 1),
        extra (M, n_extra).
        """


class Networks(Protocol):
    """M independent networks in training, the member axis first.

    ``parameters`` and ``gradients`` are flat buffers of everything that the optimiser changes, the
    objective's own scalars ``extra`` last. ``blocks`` are views of the networks' part of it,
    ``buffers`` what else they keep and change (the running means of a batch normalisation).
    """

    n_members: int
    parameters: Tensor
    gradients: Tensor
    extra: Tensor
    extra_grads: Tensor
    weights: list[Tensor]
    weight_grads: list[Tensor]

    @property
    def blocks(self) -> list[Tensor]:
        """The networks' parameters, each with M rows."""

    @property
    def buffers(self) -> list[Tensor]:
        """What else networks keep, each with M rows."""

    def member_views(self, flat: Tensor) -> list[Tensor]:
        """All blocks of a flat buffer laid out like ``parameters``, each with M rows."""

    def initialise(self, seeds: Sequence[int]) -> None:
        """Draw the first weights of each member from its own seed."""

    def forward(self, x: Tensor, masks: Sequence[Tensor | None], weight: Tensor) -> Tensor:
        """Raw outputs in training; keeps what :meth:`backward` needs.

        ``masks`` are the loop's own dropout masks; rows of ``weight`` 0 are padding.

        **Shape**: x (M, B, d), weight (M, B, 1) → (M, B, n_outputs).
        """

    def backward(self, grad: Tensor, *, input_gradient: bool = False) -> Tensor | None:
        """Write the parameters' gradients for ``grad`` = ∂loss/∂output; the inputs' on request."""

    def outputs(self, members: slice, x: Tensor) -> Tensor:
        """Raw outputs of some members for the same rows, as in prediction.

        **Shape**: x (N, d) → (members, N, n_outputs).
        """


class Design(Protocol):
    """What all members have in common, before they are made."""

    @property
    def n_parameters(self) -> int:
        """Numbers that are trained in one member."""

    @property
    def n_activations(self) -> int:
        """Numbers per row that a forward pass keeps, about."""

    @property
    def largest_product(self) -> int:
        """Multiplications per row in the largest operation."""

    @property
    def dropout(self) -> float:
        """Share of units that the loop's masks drop."""

    @property
    def dropped_sizes(self) -> tuple[int, ...]:
        """Width of each layer's input that the loop's masks apply to; 0 where they do not."""

    def networks(self, n_members: int, settings: "Settings", n_extra: int) -> Networks:
        """A stack of such networks, not yet initialised."""


@dataclass(frozen=True)
class Settings:
    """How a stack is trained; shared by all its members."""

    epochs: int = 40
    batch_size: int = 32
    optimizer: Optimizer = "adam"
    learning_rate: float = 3e-3
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    clip_norm: float | None = None
    patience: int | None = (
        None  # epochs without improvement on the held-out rows; None: no stopping
    )
    # tasks of different length train together, in as many steps as the longest takes
    dealt: bool = False
    device: str = "cpu"
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class StoppingRows:
    """Rows that decide when a member stops."""

    x: Tensor
    columns: Columns
    weight: Tensor | None = None


@dataclass(frozen=True)
class Task:
    """The rows of one ensemble, scaled, and a seed per member.

    Tasks may share one ``x``, of which ``rows`` are a task's own: folds of a table do. Where rows
    come from a stream, ``x`` and ``columns`` are empty.

    **Shape**: x (N, d), or (any, d) with ``rows`` (N,); each column (N, T); weight (N,).
    """

    x: Tensor
    columns: Columns
    seeds: tuple[int, ...]
    weight: Tensor | None = None
    held_out: StoppingRows | None = None
    initial: Sequence[NDArray[Any]] | None = None  # parameters to start from (warm start)
    extra: tuple[float, ...] = ()  # start of the objective's own parameters
    penalty: float = 0.0  # L2 penalty on weights, half of it times their squared norm
    adversarial_step: Tensor | None = None  # (d,): fast-gradient-sign step per feature
    dropout: float | None = None  # in place of the architecture's rate
    rows: Tensor | None = None

    @property
    def n_rows(self) -> int:
        return len(self.x if self.rows is None else self.rows)


@dataclass(frozen=True)
class Trained:
    """The members of one task after training, as numpy arrays.

    **Shape**: parameters: (M, in, out) and (M, 1, out) per layer, weights first; extra
    (M, n_extra); history (epochs, M); held_out_history likewise or empty.
    """

    parameters: list[NDArray[Any]]
    extra: NDArray[Any]
    history: NDArray[Any]
    held_out_history: NDArray[Any]
    n_epochs: NDArray[Any]  # epoch whose state each member has
    restarts: NDArray[Any]  # how often each member was started again
    interrupted: bool = False
    buffers: list[NDArray[Any]] = field(default_factory=list)  # what networks keep besides


@dataclass(frozen=True)
class EpochReport:
    """What a listener receives after each epoch."""

    epoch: int
    n_epochs: int
    n_members: int
    loss: float


Listener = Callable[[EpochReport], None]


@dataclass(frozen=True)
class Scaling:
    """An affine map of columns, value = shift + scale · scaled.

    **Shape**: shift and scale (d,).
    """

    shift: Floats
    scale: Floats

    @staticmethod
    def standard(values: Floats) -> "Scaling":
        """To mean 0 and standard deviation 1; constant columns are only shifted."""
        deviation = values.std(axis=0)
        size = np.abs(values).max(axis=0, initial=0.0)
        constant = deviation <= 10 * np.finfo(float).eps * size
        return Scaling(values.mean(axis=0), np.where(constant, 1.0, deviation))

    @staticmethod
    def range(values: Floats) -> "Scaling":
        """To [0, 1]; constant columns are only shifted."""
        width = np.ptp(values, axis=0)
        return Scaling(values.min(axis=0), np.where(width > 0, width, 1.0))

    @staticmethod
    def none(values: Floats) -> "Scaling":
        """As they are."""
        return Scaling(np.zeros(values.shape[1:]), np.ones(values.shape[1:]))

    def scaled(self, values: Floats) -> Floats:
        return (values - self.shift) / self.scale


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
