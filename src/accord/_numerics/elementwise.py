"""Elementwise functions with their own derivatives, under autograd and ``torch.func``.

A function is given as one that returns its value and derivatives together. It sees plain flat
tensors, a cache-sized block at a time, so it may branch on values; ``torch.func.vmap`` only adds an
axis.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

BLOCK = 32_000  # elements: few enough for a cache, and for torch not to call for more threads

Compute = Callable[..., Sequence[Tensor]]
"""(*tensors, wanted=…) → the value, then the derivative by each tensor whose ``wanted`` is true."""


def elementwise(compute: Compute, *tensors: Tensor) -> Tensor:
    """The value of ``compute`` on tensors of one shape, differentiable once in each of them."""
    transformed = any(torch._C._functorch.is_functorch_wrapped_tensor(x) for x in tensors)
    if transformed:
        wanted = (True,) * len(tensors)
        outputs = _Transformable.apply(compute, wanted, *tensors)  # type: ignore[no-untyped-call]
        return outputs[0]  # type: ignore[no-any-return]
    wanted = tuple(x.requires_grad for x in tensors)
    return _Direct.apply(compute, wanted, *tensors)  # type: ignore[no-untyped-call, no-any-return]


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


class _Direct(torch.autograd.Function):
    """Under autograd alone, where the function below would spend its time on the call."""

    @staticmethod
    def forward(ctx: Any, compute: Compute, wanted: Sequence[bool], *tensors: Tensor) -> Tensor:
        value, *slopes = in_blocks(compute, tensors, wanted)
        ctx.wanted = wanted
        ctx.save_for_backward(*slopes, *tensors)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *_chained(grad, ctx.saved_tensors, ctx.wanted)


class _Transformable(torch.autograd.Function):
    """Under ``torch.func``, which asks of whatever is kept for later that it be an output too."""

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
        if grads[0] is None:
            return (None, None, *(None for _ in ctx.wanted))
        return None, None, *_chained(grads[0], ctx.saved_tensors, ctx.wanted)

    @staticmethod
    def vmap(_: Any, in_dims: Sequence[Any], compute: Compute, wanted: Any, *tensors: Any) -> Any:
        lifted = [
            x.unsqueeze(0) if d is None else x.movedim(d, 0)
            for x, d in zip(tensors, in_dims[2:], strict=True)
        ]
        same = torch.broadcast_tensors(*lifted)  # type: ignore[no-untyped-call]
        outputs = _Transformable.apply(compute, wanted, *same)  # type: ignore[no-untyped-call]
        return outputs, (0,) * len(outputs)


def _chained(grad: Tensor, saved: Sequence[Tensor], wanted: Sequence[bool]) -> list[Tensor | None]:
    """The chain rule with saved derivatives, which come first; the inputs follow them."""
    n = sum(wanted)
    slopes = iter(_once(n, saved) if torch.is_grad_enabled() else saved[:n])
    return [grad * next(slopes) if want else None for want in wanted]


def _once(n: int, saved: Sequence[Tensor]) -> tuple[Tensor, ...]:
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
