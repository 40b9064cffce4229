"""The optimiser of a stack: one fused kernel over one flat buffer."""

import torch

from accord.networks import StackedMLP
from accord.training.tasks import Settings


class FusedAdam:
    """Adam or AdamW on the flat buffer, by the kernel of ``torch.optim.Adam(fused=True)``.

    The kernel is called directly: for small stacks the optimiser class spends several times the
    kernel's own time on per-step bookkeeping.
    """

    def __init__(self, stack: StackedMLP, settings: Settings) -> None:
        self.stack = stack
        self.clip_norm = settings.clip_norm
        self.kernel = {"adam": torch._fused_adam_, "adamw": torch._fused_adamw_}[settings.optimizer]
        self.count = torch.zeros((), device=settings.device)
        self.rate = settings.learning_rate
        moments = [torch.zeros_like(stack.parameters) for _ in range(2)]
        buffers = [stack.parameters, stack.gradients, *moments]
        self.parts = [(buffers, settings.weight_decay)]
        if settings.weight_decay and stack.extra.numel():
            # the objective's own scalars are no weights, and 0 is no better place for them
            end = len(stack.parameters) - stack.extra.numel()
            weights, extra = [b[:end] for b in buffers], [b[end:] for b in buffers]
            self.parts = [(weights, settings.weight_decay), (extra, 0.0)]

    def set_rate(self, rate: float) -> None:
        self.rate = rate

    def step(self) -> None:
        if self.clip_norm is not None:
            self._clip(self.clip_norm)
        self.count += 1
        for (parameters, gradients, first, second), decay in self.parts:
            self.kernel(
                [parameters],
                [gradients],
                [first],
                [second],
                [],
                [self.count],
                lr=self.rate,
                beta1=0.9,
                beta2=0.999,
                weight_decay=decay,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            )

    def _clip(self, limit: float) -> None:
        """Scale each member's gradient to a norm of at most ``limit``."""
        blocks = self.stack.member_views(self.stack.gradients)
        norm = torch.stack([b.square().flatten(1).sum(1) for b in blocks]).sum(0).sqrt()
        factor = (limit / norm.clamp(min=1e-12)).clamp(max=1)
        for block in blocks:
            block.mul_(factor.view(-1, *(1,) * (block.ndim - 1)))
