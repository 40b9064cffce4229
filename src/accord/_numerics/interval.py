"""The one primitive: the logarithm of the probability of an interval, with closed-form gradients.

Every probability of agreement with an interval rule is F((hi − μ)/σ) − F((lo − μ)/σ). It is taken
from one of three parametrisations, each of which keeps what the others would cancel:

- :func:`log_within`, a standardised centre and half-width;
- :func:`log_between`, standardised bounds, either of which may be infinite, and their distance;
- :func:`agreement_loss`, mean, variance, target and tolerance at once, as the losses need it.

Work is done in float64, also for float32 arguments, which therefore lose no digits on the way; only
the normal loss has forms of its own for float32. Largest relative error of log p against mpmath,
for |z| up to 1e4 and h from 1e-10 to 1e6 (tests/_numerics/test_accuracy.py):

    normal      4e-13 in float64; 6e-8 in float32, and 1e-5 for the loss, where 1 − p < 1e-20
    Laplace     6e-14
    logistic    6e-14
    Student-t   3e-13 up to 200 degrees of freedom, 1e-12 up to 1,000

Of many intervals, :func:`log_at_least` gives the probability that enough of them hold.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from accord._numerics.kernel import Kernel, Partials
from accord._numerics.single import Loss, single_loss

if TYPE_CHECKING:
    from accord._numerics.family import StandardFamily

# Half-width of an interval relative to its centre, below which it counts, not the ends.
CLOSE = 0.01
BLOCK = 32_000  # elements: few enough for a cache, and for torch not to call for more threads

Compute = Callable[..., Sequence[Tensor]]
"""(*tensors, wanted=…) → the value, then the derivative by each tensor whose ``wanted`` is true."""
_NEVER = -1e30  # in place of −inf, whose gradients would be NaN
_SURE = -1e-12  # above this log-probability, a failure is as good as impossible


def log_within(family: "StandardFamily", z: Tensor, h: Tensor, *, density: bool = False) -> Tensor:
    """log[F(z + h) − F(z − h)], differentiable in both; where ``density``, less log 2h.

    The density form is the log-density at z of the family convolved with Uniform(−h, h); it is
    log f(z) at h = 0.
    """
    z, h = torch.broadcast_tensors(z, h)  # type: ignore[no-untyped-call]
    return _elementwise(partial(_within, family.kernel, density), z, h)


def log_between(family: "StandardFamily", a: Tensor, b: Tensor, h: Tensor | None = None) -> Tensor:
    """log[F(b) − F(a)] for a ≤ b, either of which may be infinite; differentiable in all.

    ``h`` is (b − a)/2 as known before the bounds were standardised: from bounds that agree in most
    of their digits it would have few left.
    """
    if h is None:
        h = 0.5 * torch.where(a == b, 0.0, b - a)
    a, b, h = torch.broadcast_tensors(a, b, h)  # type: ignore[no-untyped-call]
    return _elementwise(partial(_between, family.kernel), a, b, h)


def agreement_loss(
    family: "StandardFamily", mu: Tensor, var: Tensor, t: Tensor, eps: Tensor, *, density: bool
) -> Tensor:
    """−log P(|ŷ − t| ≤ ε) for ŷ of mean μ and variance var > 0; where ``density``, plus log 2ε.

    Elements with ε = 0 are in density form always: it is the negative log-likelihood, where −log P
    is infinite.
    """
    tensors = torch.broadcast_tensors(mu, var, t, eps)  # type: ignore[no-untyped-call]
    return _elementwise(partial(_agreement, family.kernel, density), *tensors)


class AgreementSlopes(NamedTuple):
    """An agreement loss and its derivatives by μ, var and ε; that by t is −mu."""

    loss: Tensor
    mu: Tensor
    var: Tensor
    eps: Tensor | None


def agreement_slopes(
    family: "StandardFamily",
    mu: Tensor,
    var: Tensor,
    t: Tensor,
    eps: Tensor,
    *,
    density: bool,
    by_eps: bool = False,
) -> AgreementSlopes:
    """:func:`agreement_loss` with its derivatives, for a training step that needs no autograd.

    **Shape**: all of one shape; ``eps`` may also be a single number.
    """
    kernel, inputs, wanted = family.kernel, (mu, var, t, eps), (True, True, False, by_eps)
    if _is_single(kernel, mu) and mu.numel() <= BLOCK:
        results = single_loss(inputs, density, wanted, double_loss=_double_loss(kernel))
    else:
        results = _in_blocks(partial(_agreement, kernel, density), inputs, wanted)
    loss, by_mu, by_var, *more = results
    return AgreementSlopes(loss, by_mu, by_var, more[0] if more else None)


def _agreement(
    kernel: Kernel, density: bool, *inputs: Tensor, wanted: Sequence[bool]
) -> Sequence[Tensor]:
    if _is_single(kernel, inputs[0]):
        return single_loss(inputs, density, wanted, double_loss=_double_loss(kernel))
    return _in_double(kernel, inputs, density, wanted)


def _is_single(kernel: Kernel, mu: Tensor) -> bool:
    return kernel.has_single_form and mu.dtype == torch.float32 and not mu.is_mps


@cache
def _double_loss(kernel: Kernel) -> Loss:
    return partial(_in_double, kernel)


def _in_double(
    kernel: Kernel, inputs: Sequence[Tensor], density: bool, wanted: Sequence[bool]
) -> list[Tensor]:
    mu, var, t, eps = inputs
    kind = _working(mu)
    eps = eps.to(kind)
    error, rate = t.to(kind, copy=True).sub_(mu), var.to(kind, copy=True).rsqrt_()
    rate.mul_(math.sqrt(kernel.variance))  # one over the scale of the kernel
    if mu.dtype == kind:
        z, h, a, b = _standardised(t, mu, error, eps, rate)
    else:
        z, h = error.mul_(rate), rate * eps
        a, b = z - h, z + h
    out = kernel.partials(z, h, a, b, single=mu.dtype != torch.float64)
    results = [_log_probability(out, eps, rate, density=density).neg_()]
    if wanted[0] or wanted[2]:
        by_mu = out.dz.mul_(rate)
        results += [by_mu] if wanted[0] else []
    if wanted[1]:
        results += [out.ds.mul_(rate).mul_(rate).mul_(0.5 / kernel.variance)]
    if wanted[2]:
        results += [-by_mu]
    if wanted[3]:
        results += [_width_slope(out, eps, rate, density=density).neg_()]
    return results


def _within(
    kernel: Kernel, density: bool, z: Tensor, h: Tensor, *, wanted: Sequence[bool]
) -> tuple[Tensor, ...]:
    x, y = (v.expand_as(z).to(_working(z)) for v in (z, h))
    u = 1 / kernel.unit
    out = kernel.partials(u * x, u * y, u * (x - y), u * (x + y), single=z.dtype != torch.float64)
    rate = torch.full_like(x, u)
    value = _log_probability(out, y, rate, density=density)
    slopes = [out.dz.mul_(u), _width_slope(out, y, rate, density=density)]
    if not density:
        value, *slopes = _nothing_where(y == 0, value, *slopes)
    return (value, *(s for s, w in zip(slopes, wanted, strict=True) if w))


def _between(
    kernel: Kernel, a: Tensor, b: Tensor, h: Tensor, *, wanted: Sequence[bool]
) -> tuple[Tensor, ...]:
    u = 1 / kernel.unit
    lower, upper, half = (u * x.expand_as(a).to(_working(a)) for x in (a, b, h))
    z = (0.5 * (lower + upper)).nan_to_num_(0.0, torch.inf, -torch.inf)
    # where the bounds all but agree, half their distance has digits that their difference lost
    close = half < CLOSE * z.abs()
    lower, upper = torch.where(close, z - half, lower), torch.where(close, z + half, upper)
    out = kernel.partials(z, half, lower, upper, single=a.dtype != torch.float64)
    one = torch.ones_like(half)
    value = _log_probability(out, half, one, density=False)
    slopes = out.dz, _width_slope(out, half, one, density=False)
    value, dz, dh = _nothing_where(half == 0, value, *slopes)
    # as much of a slope by the bounds as does not cancel between them
    rest, by_half = torch.where(close, 0.0, dh), torch.where(close, dh, 0.0)
    ends = (dz - rest).mul_(0.5 * u), (dz + rest).mul_(0.5 * u), by_half.mul_(u)
    return (value, *(s for s, w in zip(ends, wanted, strict=True) if w))


def _standardised(
    t: Tensor, mu: Tensor, error: Tensor, eps: Tensor, rate: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """z, h, z − h and z + h, each with its own digits, from t − μ as it was rounded.

    What rounding took from t − μ (Knuth's two-sum) counts where it all but equals ±ε and both are
    many times σ.
    """
    back = error - t
    lost = ((t - (error - back)) - (mu + back)).nan_to_num_(0.0, 0.0, 0.0)
    most = torch.finfo(error.dtype).max ** 0.52  # its square overflows, but little else does
    a = (error - eps).add_(lost).mul_(rate).clamp_(-most, most)
    b = (error + eps).add_(lost).mul_(rate).clamp_(-most, most)
    return error.mul_(rate).clamp_(-most, most), (rate * eps).clamp_(max=most), a, b


def _log_probability(out: Partials, eps: Tensor, rate: Tensor, *, density: bool) -> Tensor:
    """log P, or log(P/2ε), from the kernel's log p and log(p/2h), h = rate · ε.

    Elements with ε = 0 are left in density form.
    """
    value = out.value
    if out.narrow is None:
        return value - torch.log(2 * eps) if density else value
    value = torch.where(out.narrow, value + torch.log(rate), value)
    change = ~out.narrow if density else out.narrow & (eps > 0)
    # log 1 where nothing changes: log 0 takes five times as long
    log_width = torch.log(torch.where(change, 2 * eps, 1.0))
    return value - log_width if density else value + log_width


def _width_slope(out: Partials, eps: Tensor, rate: Tensor, *, density: bool) -> Tensor:
    """The derivative of :func:`_log_probability` by ε."""
    slope = out.dh * rate
    if out.narrow is None:
        return slope - 1 / eps if density else slope
    change = ~out.narrow if density else out.narrow & (eps > 0)
    return torch.where(change, slope + (-1 if density else 1) / eps, slope)


def _nothing_where(
    empty: Tensor, value: Tensor, dz: Tensor, dh: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """log 0 where the interval is a point: no shift changes that, and any width would."""
    return (
        torch.where(empty, -torch.inf, value),
        torch.where(empty, 0.0, dz),
        torch.where(empty, torch.inf, dh),
    )


def _working(x: Tensor) -> torch.dtype:
    return torch.float32 if x.is_mps else torch.float64


# --- elementwise functions with derivatives of their own, for autograd and torch.func -------------
#
# A function is given as one that returns its value and derivatives together. It sees plain flat
# tensors, a cache-sized block at a time, so it may branch on values; torch.func.vmap only adds an
# axis.


def _elementwise(compute: Compute, *tensors: Tensor) -> Tensor:
    """The value of ``compute`` on tensors of one shape, differentiable once in each of them."""
    transformed = any(torch._C._functorch.is_functorch_wrapped_tensor(x) for x in tensors)
    if transformed:
        wanted = (True,) * len(tensors)
        outputs = _Transformable.apply(compute, wanted, *tensors)  # type: ignore[no-untyped-call]
        return outputs[0]  # type: ignore[no-any-return]
    wanted = tuple(x.requires_grad for x in tensors)
    return _Direct.apply(compute, wanted, *tensors)  # type: ignore[no-untyped-call, no-any-return]


def _in_blocks(compute: Compute, tensors: Sequence[Tensor], wanted: Sequence[bool]) -> list[Tensor]:
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
        value, *slopes = _in_blocks(compute, tensors, wanted)
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
        return tuple(_in_blocks(compute, tensors, wanted))

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


def log_at_least(log_p: Tensor, failures: Tensor | int) -> Tensor:
    """log P(at most so many trials fail), of independent trials with log-probabilities to succeed.

    By the recurrence over the trials: after each, P(j failures) is a sum of two positive terms, so
    that nothing is lost however improbable the event. −inf, with gradient 0, where it is
    impossible. Computed in float64.

    Args:
        log_p: log-probabilities of success, (..., N).
        failures: how many are allowed: for all alike, or (...).

    Example: two fair coins, at least one head.

        >>> log_at_least(torch.tensor([0.5, 0.5]).log(), 1).exp()
        tensor(0.7500)
    """
    own = log_p.double()
    log_q = torch.log(-torch.expm1(own.clamp(max=_SURE)))
    allowed = torch.as_tensor(failures, device=own.device)
    width = int(allowed.max()) + 1
    state = own.new_full((*own.shape[:-1], width), _NEVER)
    state[..., 0] = 0.0
    never = torch.full_like(state[..., :1], _NEVER)
    for succeeds, fails in zip(own.unbind(-1), log_q.unbind(-1), strict=True):
        one_more = torch.cat([never, state[..., :-1]], -1)
        state = torch.logaddexp(state + succeeds[..., None], one_more + fails[..., None])
    counts = torch.arange(width, device=own.device)
    total = torch.where(counts <= allowed[..., None], state, _NEVER).logsumexp(-1)
    return torch.where(total > _NEVER / 2, total, -torch.inf).to(log_p.dtype)
