"""The one training loop over one stack of networks."""

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from accord.networks import Architecture, StackedMLP
from accord.training.adam import FusedAdam
from accord.training.stopping import EarlyStopping
from accord.training.tasks import Columns, Listener, Objective, Progress, Settings, Task, Trained

# Batches are gathered ahead for as many steps as fit in this many bytes.
_GATHER_BYTES = 32 * 2**20


@dataclass
class _Rows:
    """The rows of all tasks end to end, and where each member finds its own."""

    x: Tensor
    columns: Tensor
    weight: Tensor
    slots: dict[str, slice]
    starts: list[int]
    counts: list[int]

    @staticmethod
    def stacked(tasks: Sequence[Task], settings: Settings) -> "_Rows":
        like = torch.empty(0, dtype=settings.dtype, device=settings.device)
        names = list(tasks[0].columns)
        packed = [torch.cat([task.columns[name] for name in names], 1) for task in tasks]
        slots, start = {}, 0
        for name in names:
            stop = start + tasks[0].columns[name].shape[1]
            slots[name] = slice(start, stop)
            start = stop
        # one extra row at the end, of weight 0: the padding that index matrices point to
        last = torch.cat([tasks[0].x[:1], packed[0][:1]], 1)
        width = tasks[0].x.shape[1]
        weights = [
            torch.ones(task.n_rows) if task.weight is None else task.weight for task in tasks
        ]
        ends = np.cumsum([task.n_rows for task in tasks])
        member_tasks = [i for i, task in enumerate(tasks) for _ in task.seeds]
        return _Rows(
            torch.cat([*(task.x for task in tasks), last[:, :width]]).to(like),
            torch.cat([*packed, last[:, width:]]).to(like),
            torch.cat([*weights, torch.zeros(1)]).to(like),
            slots,
            [int(ends[i]) - tasks[i].n_rows for i in member_tasks],
            [tasks[i].n_rows for i in member_tasks],
        )

    def columns_of(self, packed: Tensor) -> Columns:
        return {name: packed[..., slot] for name, slot in self.slots.items()}


@dataclass
class Loop:
    """One stack in training."""

    tasks: Sequence[Task]
    architecture: Architecture
    objective: Objective
    settings: Settings
    listener: Listener | None
    interrupted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        tasks, settings = self.tasks, self.settings
        seeds = [seed for task in tasks for seed in task.seeds]
        self.stack = StackedMLP(
            self.architecture,
            len(seeds),
            dtype=settings.dtype,
            device=settings.device,
            n_extra=self.objective.n_extra,
        )
        self.stack.initialise(seeds)
        self._continue_from_initial()
        # Streams of shuffles and dropout per member, apart from the one of its initial weights.
        self.shuffles = [torch.Generator().manual_seed(seed ^ 0x5DEECE66D) for seed in seeds]
        self.dropouts = [_dropout_streams(seeds, i) for i in range(len(self.stack.weights))]
        rates = [self.architecture.dropout if t.dropout is None else t.dropout for t in tasks]
        kept = [1 - p for t, p in zip(tasks, rates, strict=True) for _ in t.seeds]
        self.kept = torch.tensor(kept, dtype=torch.float32).view(-1, 1, 1, 1)
        self.rows = _Rows.stacked(tasks, settings)
        self.optimizer = FusedAdam(self.stack, settings)
        self.penalties = self._per_member([task.penalty for task in tasks])
        self.history: list[Tensor] = []
        self.stopping = EarlyStopping.of(self.stack, tasks, self.objective, settings)

    def _continue_from_initial(self) -> None:
        start = 0
        for task in self.tasks:
            members = slice(start, start + len(task.seeds))
            start = members.stop
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

    @torch.no_grad()
    def run(self) -> None:
        started = time.monotonic()
        try:
            for epoch in range(self.settings.epochs):
                self.optimizer.set_rate(_rate(self.settings, epoch))
                self.history.append(self._epoch())
                if self.listener is not None:
                    loss = float(self.history[-1].nanmean())
                    elapsed = time.monotonic() - started
                    self.listener(
                        Progress(
                            epoch + 1, self.settings.epochs, self.stack.n_members, loss, elapsed
                        )
                    )
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

    def _epoch(self) -> Tensor:
        order = self._shuffled()
        n_steps, members, batch = order.shape
        width = self.rows.x.shape[1] + self.rows.columns.shape[1] + 1
        ahead = max(1, _GATHER_BYTES // (members * batch * width * self.settings.dtype.itemsize))
        total = torch.zeros(members, dtype=self.settings.dtype, device=self.settings.device)
        for start in range(0, n_steps, ahead):
            total += self._steps(order[start : start + ahead])
        return total / n_steps

    def _shuffled(self) -> Tensor:
        """Row numbers of the epoch's batches, (steps, M, B), filled up with the padding row."""
        batch = min(self.settings.batch_size, max(self.rows.counts))
        n_steps = math.ceil(max(self.rows.counts) / batch)
        padding = self.rows.x.shape[0] - 1
        order = torch.full((len(self.shuffles), n_steps * batch), padding)
        for member, generator in enumerate(self.shuffles):
            count, start = self.rows.counts[member], self.rows.starts[member]
            order[member, :count] = torch.randperm(count, generator=generator).add_(start)
        return order.view(-1, n_steps, batch).transpose(0, 1).contiguous()

    def _steps(self, order: Tensor) -> Tensor:
        """Train on some batches; the sum of their mean losses per member."""
        flat = order.flatten().to(self.settings.device)
        x = self.rows.x.index_select(0, flat).view(*order.shape, -1)
        packed = self.rows.columns.index_select(0, flat).view(*order.shape, -1)
        weight = self.rows.weight.index_select(0, flat).view(order.shape)
        # the mean over a batch's real rows
        weight = weight / weight.sum(-1, keepdim=True).clamp(min=1e-12)
        masks = self._dropout_masks(len(order), order.shape[2])
        losses = []
        for step in range(len(order)):
            columns = self.rows.columns_of(packed[step])
            mask = [None if m is None else m[step] for m in masks]
            losses.append(self._step(x[step], columns, weight[step], mask))
        return (torch.stack(losses) * weight).sum((0, 2))

    def _step(
        self, x: Tensor, columns: Columns, weight: Tensor, masks: Sequence[Tensor | None]
    ) -> Tensor:
        stack = self.stack
        adversarial = self.tasks[0].adversarial_step
        loss, grad, grad_extra = self.objective(
            stack.forward(x, masks), columns, weight, stack.extra
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
        raw = self.stack.forward(x + steps * grad_x.sign(), masks)
        _, grad, grad_extra = self.objective(raw, columns, weight, self.stack.extra)
        self.stack.backward(grad)
        if grad_extra is not None:
            self.stack.extra_grads.copy_(grad_extra)
        self.stack.gradients.add_(clean).mul_(0.5)

    def _dropout_masks(self, n_steps: int, batch: int) -> list[Tensor | None]:
        """Scaled masks for some steps, (steps, M, B, width), from each member's own streams."""
        masks: list[Tensor | None] = []
        for width, streams in zip(self.architecture.dropped_sizes, self.dropouts, strict=True):
            if not width:
                masks.append(None)
                continue
            draws = np.empty((len(streams), n_steps, batch, width), np.float32)
            for own, generator in zip(draws, streams, strict=True):
                generator.random(out=own, dtype=np.float32)
            mask = torch.from_numpy(draws).lt_(self.kept).div_(self.kept)
            mask = mask.transpose(0, 1).contiguous()
            masks.append(mask.to(dtype=self.settings.dtype, device=self.settings.device))
        return masks

    def results(self) -> list[Trained]:
        """What each task's members have become."""
        results, start = [], 0
        for task in self.tasks:
            members = slice(start, start + len(task.seeds))
            start = members.stop
            results.append(self._result(members))
        return results

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
