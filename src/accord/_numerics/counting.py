"""The probability that enough of some independent trials succeed, with gradients, in logarithms."""

import torch
from torch import Tensor

_NEVER = -1e30  # in place of −inf, whose gradients would be NaN
_SURE = -1e-12  # above this log-probability, a failure is as good as impossible


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
