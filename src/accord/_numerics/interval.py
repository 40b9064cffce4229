"""The one primitive: the logarithm of the probability of an interval, with closed-form gradients.

Every probability of agreement with an interval rule is F((hi − μ)/σ) − F((lo − μ)/σ). Its logarithm is
computed here, and nowhere else, from one of three parametrisations: the standardised centre and
half-width (:func:`log_within`), the standardised bounds (:func:`log_between`), or location, variance, centre
and half-width at once (:func:`log_agreement`), which is what the losses need.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from accord._numerics.kernel import Kernel


def log_within(family: Kernel, z: Tensor, h: Tensor, *, density: bool = False) -> Tensor:
    """log[F(z + h) − F(z − h)], differentiable in both; where ``density``, less log 2h.

    The density form is the log-density at z of the family convolved with Uniform(−h, h); it is
    log f(z) at h = 0.
    """
    z, h = torch.broadcast_tensors(z, h)
    value: Tensor = _Within.apply(z, h, family, density)[0]  # type: ignore[no-untyped-call]
    return value


def log_between(family: Kernel, a: Tensor, b: Tensor) -> Tensor:
    """log[F(b) − F(a)] for a ≤ b, either of which may be infinite; differentiable in both."""
    a, b = torch.broadcast_tensors(a, b)
    value: Tensor = _Between.apply(a, b, family)[0]  # type: ignore[no-untyped-call]
    return value


def log_agreement(
    family: Kernel, mu: Tensor, var: Tensor, t: Tensor, eps: Tensor, *, density: bool
) -> Tensor:
    """log P(|ŷ − t| ≤ ε) for ŷ with mean μ and variance var; where ``density``, less log 2ε.

    Elements with ε = 0 are in density form always: there log P is −∞, and the density is the likelihood.
    """
    mu, var, t, eps = torch.broadcast_tensors(mu, var, t, eps)
    value: Tensor = _Agreement.apply(mu, var, t, eps, family, density)[0]  # type: ignore[no-untyped-call]
    return value


class _Elementwise(torch.autograd.Function):
    """A function of tensors of one shape that returns its value and then its partial derivatives."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.n_options = len(inputs) - len(output) + 1

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        slopes = [None if grads[0] is None else grads[0] * s for s in ctx.saved_tensors]
        return (*slopes, *(None,) * ctx.n_options)

    @classmethod
    def batched(cls, in_dims: tuple[int | None, ...], inputs: tuple[Any, ...]) -> Any:
        """The rule for vmap: the batch axis goes first, and the function stays elementwise."""
        tensors = [
            (x.unsqueeze(0) if d is None else x.movedim(d, 0)) if isinstance(x, Tensor) else x
            for x, d in zip(inputs, in_dims, strict=True)
        ]
        shape = torch.broadcast_shapes(*(x.shape for x in tensors if isinstance(x, Tensor)))
        tensors = [x.expand(shape) if isinstance(x, Tensor) else x for x in tensors]
        outputs = cls.apply(*tensors)  # type: ignore[no-untyped-call]
        return outputs, (0,) * len(outputs)


class _Within(_Elementwise):
    @staticmethod
    def forward(z: Tensor, h: Tensor, family: Kernel, density: bool) -> tuple[Tensor, ...]:
        x = z.abs().to(_working(z))
        y = h.to(x.dtype)
        out = family.partials(x, y, x - y, x + y, density=density)
        dz = torch.where(z < 0, -out.dz, out.dz)
        return out.value.to(z.dtype), dz.to(z.dtype), out.dh.to(z.dtype)

    @staticmethod
    def vmap(_: Any, in_dims: Any, *inputs: Any) -> Any:
        return _Within.batched(in_dims, inputs)


class _Between(_Elementwise):
    @staticmethod
    def forward(a: Tensor, b: Tensor, family: Kernel) -> tuple[Tensor, ...]:
        kind = _working(a)
        lo, hi = a.to(kind), b.to(kind)
        flip = hi < -lo
        lo, hi = torch.where(flip, -hi, lo), torch.where(flip, -lo, hi)
        out = family.partials(0.5 * (lo + hi), 0.5 * (hi - lo), lo, hi, density=False)
        near, beyond = 0.5 * (out.dz - out.dh), 0.5 * (out.dz + out.dh)
        da, db = torch.where(flip, -beyond, near), torch.where(flip, -near, beyond)
        return out.value.to(a.dtype), da.to(a.dtype), db.to(a.dtype)

    @staticmethod
    def vmap(_: Any, in_dims: Any, *inputs: Any) -> Any:
        return _Between.batched(in_dims, inputs)


class _Agreement(_Elementwise):
    @staticmethod
    def forward(
        mu: Tensor, var: Tensor, t: Tensor, eps: Tensor, family: Kernel, density: bool
    ) -> tuple[Tensor, ...]:
        kind = _working(mu)
        d, v, e = t.to(kind) - mu.to(kind), var.to(kind), eps.to(kind)
        sigma = torch.sqrt(v / family.variance)
        x, y = d.abs() / sigma, e / sigma
        a = (d.abs() - e) / sigma
        exact = e == 0
        out = family.partials(x, y, a, x + y, density=density)
        value, dh = out.value, out.dh / sigma
        if density:
            value = value - torch.log(sigma)
        elif bool(exact.any()):
            limit = family.partials(x, y, a, x + y, density=True)
            value = torch.where(exact, limit.value - torch.log(sigma), value)
            dh = torch.where(exact, limit.dh / sigma, dh)
        dmu = -torch.sign(d) * out.dz / sigma
        dvar = -0.5 * out.ds / v
        return tuple(x.to(mu.dtype) for x in (value, dmu, dvar, -dmu, dh))

    @staticmethod
    def vmap(_: Any, in_dims: Any, *inputs: Any) -> Any:
        return _Agreement.batched(in_dims, inputs)


def _working(x: Tensor) -> torch.dtype:
    """float64 wherever the device has it: a cell of float32 then never loses digits inside."""
    return torch.float32 if x.device.type == "mps" else torch.float64
