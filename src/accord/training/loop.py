"""The one training loop over one stack of networks.

With held-out rows, each member stops early: it keeps its best state on its own.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from accord._types import Floats
from accord.training.stack import FusedAdam
from accord.training.tasks import (
    Batches,
    Columns,
    Design,
    EpochReport,
    Listener,
    Networks,
    Objective,
    RowSource,
    Settings,
    StackedRows,
    StoppingRows,
    Task,
    Trained,
)


def members_of(tasks: Sequence[Task]) -> list[slice]:
    """Where each task's members are in the stack."""
    ends = accumulate((len(task.seeds) for task in tasks), initial=0)
    return [slice(start, stop) for start, stop in pairwise(ends)]


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
        held_out = []
        for task, members in zip(tasks, members_of(tasks), strict=True):
            if task.held_out is None:
                raise ValueError("early stopping needs held-out rows for every task, got none.")
            held_out.append((members, task.held_out))
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


@dataclass
class Loop:
    """One stack in training, on the tasks' own rows unless others are given.

    ``after_epoch`` is called with the loop, for instance to keep its :attr:`state`.
    """

    tasks: Sequence[Task]
    design: Design
    objective: Objective
    settings: Settings
    listener: Listener | None
    source: RowSource | None = None
    after_epoch: "Callable[[Loop], None] | None" = None
    interrupted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        tasks, settings = self.tasks, self.settings
        seeds = [seed for task in tasks for seed in task.seeds]
        self.stack = self.design.networks(len(seeds), settings, self.objective.n_extra)
        self.stack.initialise(seeds)
        self._continue_from_initial()
        # Streams of dropout per member, other than that of its initial weights.
        layers = range(len(self.design.dropped_sizes))
        self.dropouts = [_dropout_streams(seeds, layer) for layer in layers]
        rates = [self.design.dropout if t.dropout is None else t.dropout for t in tasks]
        kept = [1 - p for t, p in zip(tasks, rates, strict=True) for _ in t.seeds]
        self.kept = torch.tensor(kept, dtype=torch.float32).view(-1, 1, 1, 1)
        self.rows = self.source or StackedRows.stacked(tasks, settings)
        self.optimizer = FusedAdam(self.stack, settings)
        self.penalties = self._per_member([task.penalty for task in tasks])
        self.history: list[Tensor] = []
        self.stopping = EarlyStopping.of(self.stack, tasks, self.objective, settings)

    def _continue_from_initial(self) -> None:
        for task, members in zip(self.tasks, members_of(self.tasks), strict=True):
            if task.extra:
                self.stack.extra[members] = torch.tensor(task.extra, dtype=self.settings.dtype)
            if task.initial is not None:
                for block, values in zip(self.stack.blocks, task.initial, strict=True):
                    block[members] = torch.as_tensor(values).to(block)

    def _per_member(self, values: Sequence[float]) -> Tensor | None:
        if not any(values):
            return None
        repeated = [v for task, v in zip(self.tasks, values, strict=True) for _ in task.seeds]
        return torch.tensor(repeated, dtype=self.settings.dtype).view(-1, 1, 1)

    @torch.inference_mode()  # a third quicker than no_grad, where operations are this small
    def run(self) -> None:
        try:
            for epoch in range(len(self.history), self.settings.epochs):
                self.optimizer.rate = _rate(self.settings, epoch)
                self.history.append(self._epoch(epoch))
                if self.listener is not None:
                    loss = float(self.history[-1].nanmean())
                    self.listener(
                        EpochReport(epoch + 1, self.settings.epochs, self.stack.n_members, loss)
                    )
                if self.after_epoch is not None:
                    self.after_epoch(self)
                if self.stopping is not None and self.stopping.all_stopped(epoch):
                    break
        except KeyboardInterrupt:
            self.interrupted = True
            warnings.warn(
                f"training was interrupted after {len(self.history)} of {self.settings.epochs} "
                "epochs; the model keeps what it has learnt so far.",
                RuntimeWarning,
                stacklevel=3,
            )
        if self.stopping is not None:
            self.stopping.restore()

    def _epoch(self, epoch: int) -> Tensor:
        members, n_steps = self.stack.n_members, 0
        total = torch.zeros(members, dtype=self.settings.dtype, device=self.settings.device)
        for batches in self.rows.batches(epoch):
            total += self._steps(batches)
            n_steps += len(batches.weight)
        return total / max(n_steps, 1)

    def _steps(self, batches: Batches) -> Tensor:
        """Train on some batches; the sum of their mean losses per member."""
        n_steps, _, batch, _ = batches.weight.shape
        names = list(batches.columns)
        losses = []
        # everything that can be cut up beforehand is, since a step on small networks is short
        for x, w, mask, *row in zip(
            batches.x.unbind(),
            batches.weight.unbind(),
            self._dropout_masks(n_steps, batch),
            *(column.unbind() for column in batches.columns.values()),
            strict=True,
        ):
            losses.append(self._step(x, dict(zip(names, row, strict=True)), w, mask))
        return (torch.stack(losses) * batches.weight).sum((0, 2, 3))

    def _step(
        self, x: Tensor, columns: Columns, weight: Tensor, masks: Sequence[Tensor | None]
    ) -> Tensor:
        stack = self.stack
        adversarial = self.tasks[0].adversarial_step
        loss, grad, grad_extra = self.objective(
            stack.forward(x, masks, weight), columns, weight, stack.extra
        )
        grad_x = stack.backward(grad, input_gradient=adversarial is not None)
        if grad_extra is not None:
            stack.extra_grads.copy_(grad_extra)
        if grad_x is not None:
            self._add_adversarial(x, grad_x, columns, weight, masks)
        if self.penalties is not None:
            for weights, grads in zip(stack.weights, stack.weight_grads, strict=True):
                grads.addcmul_(weights, self.penalties)
        self.optimizer.step()
        return loss

    def _add_adversarial(
        self,
        x: Tensor,
        grad_x: Tensor,
        columns: Columns,
        weight: Tensor,
        masks: Sequence[Tensor | None],
    ) -> None:
        """Average the gradient with the one at the fast-gradient-sign neighbours of the rows."""
        clean = self.stack.gradients.clone()
        steps = torch.cat(
            [
                task.adversarial_step.to(x).expand(len(task.seeds), 1, -1)
                for task in self.tasks
                if task.adversarial_step is not None
            ]
        )
        raw = self.stack.forward(x + steps * grad_x.sign(), masks, weight)
        _, grad, grad_extra = self.objective(raw, columns, weight, self.stack.extra)
        self.stack.backward(grad)
        if grad_extra is not None:
            self.stack.extra_grads.copy_(grad_extra)
        self.stack.gradients.add_(clean).mul_(0.5)

    def _dropout_masks(self, n_steps: int, batch: int) -> list[tuple[Tensor | None, ...]]:
        """For each of some steps, scaled masks per layer, from each member's own streams.

        **Shape**: each mask (M, B, width).
        """
        masks: list[Sequence[Tensor | None]] = []
        for width, streams in zip(self.design.dropped_sizes, self.dropouts, strict=True):
            if not width:
                masks.append([None] * n_steps)
                continue
            draws = np.empty((len(streams), n_steps, batch, width), np.float32)
            for own, generator in zip(draws, streams, strict=True):
                generator.random(out=own, dtype=np.float32)
            mask = torch.from_numpy(draws).lt_(self.kept).div_(self.kept)
            mask = mask.transpose(0, 1).contiguous()
            mask = mask.to(dtype=self.settings.dtype, device=self.settings.device)
            masks.append(mask.unbind())
        return list(zip(*masks, strict=True))

    @property
    def state(self) -> dict[str, Any]:
        """All that training has changed after whole epochs, but for the rows' own shuffles."""
        return {
            "numbers": [block.clone().numpy() for block in self._changing],
            "dropouts": self.dropouts,
            "history": [losses.clone().numpy() for losses in self.history],
        }

    def go_on_from(self, state: dict[str, Any]) -> None:
        """Take over a :attr:`state` of the same stack."""
        for block, values in zip(self._changing, state["numbers"], strict=True):
            block.copy_(torch.from_numpy(values))
        self.dropouts = state["dropouts"]
        self.history = [torch.from_numpy(losses) for losses in state["history"]]

    @property
    def _changing(self) -> list[Tensor]:
        optimizer = self.optimizer
        return [self.stack.parameters, *self.stack.buffers, *optimizer.moments, optimizer.count]

    def results(self) -> list[Trained]:
        """What each task's members have become."""
        return [self._result(members) for members in members_of(self.tasks)]

    def _result(self, members: slice) -> Trained:
        n_members = members.stop - members.start
        history = [epoch[members].double().cpu().numpy() for epoch in self.history]
        n_epochs = np.full(n_members, len(self.history))
        held_out_history = np.empty((0, n_members))
        if self.stopping is not None:
            n_epochs = self.stopping.best_epoch[members].numpy().copy()
            held_out_history = self.stopping.curve(members)
        return Trained(
            parameters=[block[members].cpu().numpy().copy() for block in self.stack.blocks],
            extra=self.stack.extra[members].cpu().numpy().copy(),
            history=np.array(history).reshape(-1, n_members),
            held_out_history=held_out_history,
            n_epochs=n_epochs,
            restarts=np.zeros(n_members, int),
            interrupted=self.interrupted,
            buffers=[block[members].cpu().numpy().copy() for block in self.stack.buffers],
        )


def _dropout_streams(seeds: Sequence[int], layer: int) -> list[np.random.Generator]:
    """A stream per member for one layer, so that masks do not depend on how steps are grouped.

    numpy's SFC64 is five times as fast as torch's generator, and a mask needs a number per unit.
    """
    return [np.random.Generator(np.random.SFC64([seed, layer])) for seed in seeds]


def _rate(settings: Settings, epoch: int) -> float:
    if settings.schedule == "constant":
        return settings.learning_rate
    return settings.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / settings.epochs))
