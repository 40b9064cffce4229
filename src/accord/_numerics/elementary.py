"""Elementary functions that keep their precision near 0 and towards infinity."""

import math

import torch
from torch import Tensor


def log1mexp(x: Tensor) -> Tensor:
    """log(1 − e^{−x}) for x ≥ 0."""
    return torch.where(x < math.log(2), torch.log(-torch.expm1(-x)), torch.log1p(-torch.exp(-x)))


def log_sinhc(x: Tensor) -> Tensor:
    """log(sinh(x)/x) for x ≥ 0."""
    u = x * x
    series = u * (1 / 6 - u * (1 / 180 - u * (1 / 2835 - u * (1 / 37800 - u / 467775))))
    return torch.where(x < 0.1, series, x + log1mexp(2 * x) - torch.log(2 * x))


def langevin(x: Tensor) -> Tensor:
    """coth(x) − 1/x for x ≥ 0."""
    u = x * x
    series = x * (1 / 3 - u * (1 / 45 - u * (2 / 945 - u * (1 / 4725 - u * 2 / 93555))))
    return torch.where(x < 0.1, series, (1 + torch.exp(-2 * x)) / -torch.expm1(-2 * x) - 1 / x)


def exp_remainder(x: Tensor) -> Tensor:
    """e^{−x} − 1 + x for x ≥ 0."""
    series = torch.zeros_like(x)
    for k in range(11, 1, -1):
        series = (1 - series) * x / k
    return torch.where(x < 0.2, x * series, torch.expm1(-x) + x)
