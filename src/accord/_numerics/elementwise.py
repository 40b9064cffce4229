"""Elementwise functions with their own derivatives, under autograd and ``torch.func``.

A function is given as one that returns its value and derivatives together. It sees plain flat
tensors, a cache-sized block at a time, so it may branch on values; ``torch.func.vmap`` only adds an
axis.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

BLOCK = 1 << 16  # elements: few enough for a cache, enough for their overhead not to count

Compute = Callable[..., Sequence[Tensor]]
"""(*tensors, wanted=…) → the value, then the derivative by each tensor whose ``wanted`` is true."""


def elementwise(compute: Compute, *tensors: Tensor) -> Tensor:
    """The value of ``compute`` on tensors of one shape, differentiable once in each of them."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    wanted = tuple(x.requires_grad or wrapped(x) for x in tensors)
    value: Tensor = _Elementwise.apply(compute, wanted, *tensors)[0]  # type: ignore[no-untyped-call]
    return value


def in_blocks(compute: Compute, tensors: Sequence[Tensor], wanted: Sequence[bool]) -> list[Tensor]:
    """``compute`` block by block, with results in the shape and dtype of the first tensor.

    If the last tensor repeats a single number, it is handed on as that number.
    """
    first, last = tensors[0], tensors[-1]
    repeats = first.numel() > 1 and (last.numel() == 1 or not any(last.stride()))
    end = last[(0,) * last.ndim] if repeats else last.reshape(-1)
    flat = [*(x.reshape(-1) for x in tensors[:-1]), end]
    n, dtype = len(flat[0]), first.dtype
    if 0 < n <= BLOCK:
        parts = compute(*flat, wanted=wanted)
        results = [x if x.dtype == dtype else x.to(dtype) for x in parts]
    else:
        results = [torch.empty_like(flat[0]) for _ in range(1 + sum(wanted))]
        for start in range(0, n, BLOCK):
            piece = slice(start, start + BLOCK)
            part = compute(*(x[piece] if x.ndim else x for x in flat), wanted=wanted)
            for whole, x in zip(results, part, strict=True):
                whole[piece] = x
    return results if first.ndim == 1 else [x.view(first.shape) for x in results]


class _Elementwise(torch.autograd.Function):
    """The derivatives are outputs too, as ``torch.func`` asks of whatever is kept for later."""

    @staticmethod
    def forward(compute: Compute, wanted: Sequence[bool], *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(in_blocks(compute, tensors, wanted))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, ctx.wanted, *tensors = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*output[1:], *tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        grad, n = grads[0], sum(ctx.wanted)
        if grad is None:
            return (None, None, *(None for _ in ctx.wanted))
        saved = ctx.saved_tensors
        slopes = iter(_constant(n, saved) if torch.is_grad_enabled() else saved[:n])
        return (None, None, *(grad * next(slopes) if w else None for w in ctx.wanted))

    @staticmethod
    def vmap(_: Any, in_dims: Sequence[Any], compute: Compute, wanted: Any, *tensors: Any) -> Any:
        lifted = [
            x.unsqueeze(0) if d is None else x.movedim(d, 0)
            for x, d in zip(tensors, in_dims[2:], strict=True)
        ]
        same = torch.broadcast_tensors(*lifted)  # type: ignore[no-untyped-call]
        outputs = _Elementwise.apply(compute, wanted, *same)  # type: ignore[no-untyped-call]
        return outputs, (0,) * len(outputs)


def _constant(n: int, saved: Sequence[Tensor]) -> tuple[Tensor, ...]:
    slopes: tuple[Tensor, ...] = _OnceDifferentiable.apply(n, *saved)  # type: ignore[no-untyped-call]
    return slopes


class _OnceDifferentiable(torch.autograd.Function):
    """Passes derivatives on, and keeps a second derivative from taking them for constants."""

    generate_vmap_rule = True

    @staticmethod
    def forward(n: int, *saved: Tensor) -> tuple[Tensor, ...]:
        return tuple(x.view_as(x) for x in saved[:n])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[None, ...]:
        raise NotImplementedError(
            "a probability of agreement can be differentiated once, got a second derivative. "
            "Leave out create_graph=True, or use finite differences of the gradient."
        )
