"""Early stopping: each member keeps its best state on its own held-out rows."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from accord._types import Floats
from accord.training.tasks import Networks, Objective, Settings, StoppingRows, Task


class EarlyStopping:
    """Watches the held-out loss of every member, each with its own patience."""

    def __init__(
        self,
        stack: Networks,
        held_out: Sequence[tuple[slice, StoppingRows]],
        objective: Objective,
        patience: int,
    ) -> None:
        self.stack, self.held_out = stack, held_out
        self.objective, self.patience = objective, patience
        self.best = [block.clone() for block in self._state]
        self.best_loss = torch.full((stack.n_members,), math.inf)
        self.best_epoch = torch.zeros(stack.n_members, dtype=torch.long)
        self.losses: list[Tensor] = []

    @staticmethod
    def of(
        stack: Networks, tasks: Sequence[Task], objective: Objective, settings: Settings
    ) -> "EarlyStopping | None":
        """A watcher if ``settings`` ask for one, else None."""
        if settings.patience is None:
            return None
        held_out, start = [], 0
        for task in tasks:
            if task.held_out is None:
                raise ValueError("early stopping needs held-out rows for every task, got none.")
            held_out.append((slice(start, start + len(task.seeds)), task.held_out))
            start += len(task.seeds)
        return EarlyStopping(stack, held_out, objective, settings.patience)

    @property
    def _state(self) -> list[Tensor]:
        """Everything that training changes, each with M rows."""
        return [*self.stack.blocks, self.stack.extra, *self.stack.buffers]

    def all_stopped(self, epoch: int) -> bool:
        """Note the state after ``epoch`` (from 0); True when no member has patience left."""
        loss = torch.cat([self._loss(members, rows) for members, rows in self.held_out]).cpu()
        self.losses.append(loss)
        # a member that ran out of patience is settled, even if it would improve later
        better = (loss < self.best_loss) & (epoch - self.best_epoch < self.patience)
        self.best_loss = torch.where(better, loss, self.best_loss)
        self.best_epoch[better] = epoch + 1
        for kept, block in zip(self.best, self._state, strict=True):
            kept[better] = block[better]
        return bool((epoch + 1 - self.best_epoch >= self.patience).all())

    def _loss(self, members: slice, rows: StoppingRows) -> Tensor:
        like = self.stack.parameters
        raw = self.stack.outputs(members, rows.x.to(like))
        columns = {
            name: column.to(like).expand(len(raw), *column.shape)
            for name, column in rows.columns.items()
        }
        extra = self.stack.extra[members]
        loss, _, _ = self.objective(raw, columns, raw.new_ones(*raw.shape[:2], 1), extra)
        loss = loss.sum(2)
        if rows.weight is None or not rows.weight.any():
            return loss.mean(1)
        return loss @ (rows.weight / rows.weight.sum()).to(loss)

    def restore(self) -> None:
        """Give every member its best state back."""
        for kept, block in zip(self.best, self._state, strict=True):
            block.copy_(kept)

    def curve(self, members: slice) -> Floats:
        """Held-out loss per epoch, (epochs, members)."""
        if not self.losses:
            return np.empty((0, members.stop - members.start))
        return torch.stack(self.losses)[:, members].double().numpy()
