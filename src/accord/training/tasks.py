"""What is trained, and how: tasks, settings, scales; interfaces of objective and networks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accord._types import Floats

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
    memory_budget: int = 2 * 2**30


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
    elapsed: float


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
