"""What is trained, and how: tasks, settings, results, and the objective's interface."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

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

    **Shape**: x (N, d); each column (N, T); weight (N,).
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

    @property
    def n_rows(self) -> int:
        return self.x.shape[0]


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


@dataclass(frozen=True)
class EpochReport:
    """What a listener receives after each epoch."""

    epoch: int
    n_epochs: int
    n_members: int
    loss: float
    elapsed: float


Listener = Callable[[EpochReport], None]
