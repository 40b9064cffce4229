"""The tail of Student's t, T(x) = 1 − F(x) for x ≥ 0, by quadrature.

With n degrees of freedom, x = √n tan θ and u = n/(n + x²) = cos² θ,

    T(x) = 1/2 − f(0) √n ∫₀^θ cosⁿ⁻¹ φ dφ
         = f(0) u^{n/2}/√n · ∫₀^∞ e^{−y} (1 − u e^{−2y/n})^{−1/2} dy.

The first is smooth up to where T is a few per cent, for Gauss and Legendre's rule; from there on
the second factor of the other varies little, for Gauss and Laguerre's, and T may be as small as it
likes, since its logarithm is what is computed. Below one degree of freedom the first integrand has
a pole nearby; there SciPy's incomplete beta function takes its place.
"""

import math
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from accord._numerics.kernel import amend

_Nodes = tuple[Tensor, Tensor]


def _rules(n_legendre: int, n_laguerre: int) -> tuple[_Nodes, _Nodes]:
    """Nodes in (0, 1) and weights that add to 1; nodes in (0, ∞) and weights that do."""
    s, weight = np.polynomial.legendre.leggauss(n_legendre)
    y, decay = np.polynomial.laguerre.laggauss(n_laguerre)
    return (
        (torch.tensor(0.5 + 0.5 * s)[:, None], torch.tensor(0.5 * weight)),
        (torch.tensor(y)[:, None], torch.tensor(decay)),
    )


EXACT, SINGLE = _rules(20, 40), _rules(12, 16)  # T to 1e-13, and to 1e-9


@final
class StudentTTail:
    """The logarithm of the tail for fixed degrees of freedom."""

    def __init__(self, df: float) -> None:
        self.df = df
        self.log_height = log_gamma_step(0.5 * df) - 0.5 * math.log(math.pi * df)
        self.border = math.sqrt(df * math.expm1(4 / df)) if df > 0.01 else math.inf

    def log(self, x: Tensor, *, single: bool = False) -> Tensor:
        """log T(x), elementwise; ``single`` asks for the digits of float32 only."""
        legendre, laguerre = SINGLE if single else EXACT
        flat = x.reshape(-1)
        out = torch.empty_like(flat)
        near = flat < self.border
        amend((out,), near, lambda y: (self._log_near(y, legendre),), flat)
        amend((out,), ~near, lambda y: (self._log_far(y, laguerre),), flat)
        return out.view(x.shape)

    def log_spread(self, x: Tensor) -> Tensor:
        """log(1 + x²/n), also where x² overflows."""
        q = x.abs() / math.sqrt(self.df)
        return torch.where(q < 1e9, torch.log1p(q * q), 2 * torch.log(q))

    def _log_near(self, x: Tensor, rule: _Nodes) -> Tensor:
        n = self.df
        if n < 1:
            return torch.log(through_numpy(self._by_scipy, x))
        node, weight = (r.to(x) for r in rule)
        theta = torch.atan(x / math.sqrt(n))
        powers = torch.sin(node * theta).square_().neg_().log1p_().mul_(0.5 * (n - 1)).exp_()
        inside = theta * (weight @ powers) * (math.exp(self.log_height) * math.sqrt(n))
        return torch.log(0.5 - inside)

    def _log_far(self, x: Tensor, rule: _Nodes) -> Tensor:
        node, weight = (r.to(x) for r in rule)
        log_u = -self.log_spread(x)
        factors = torch.exp(log_u - 2 / self.df * node).neg_().add_(1.0).rsqrt_()
        log_scale = self.log_height - 0.5 * math.log(self.df)
        return torch.log(weight @ factors) + 0.5 * self.df * log_u + log_scale

    def _by_scipy(self, x: NDArray[Any]) -> NDArray[Any]:
        """½ I_u(n/2, ½) = ½ − ½ I_v(½, n/2), by the smaller of u and v = 1 − u."""
        n = self.df
        v = x * x / (n + x * x)
        inner = 0.5 - 0.5 * special.betainc(0.5, 0.5 * n, np.minimum(v, 0.5))
        outer = 0.5 * special.betainc(0.5 * n, 0.5, np.minimum(n / (n + x * x), 0.5))
        return np.asarray(np.where(v < 0.5, inner, outer))


def log_gamma_step(x: float) -> float:
    """log Γ(x + 1/2)/Γ(x), by its asymptotic series at an argument of 25 or more.

    From there down by the recurrence: a difference of two values of lgamma would cancel.
    """
    down = 0.0
    while x < 25:
        down += math.log1p(-0.5 / (x + 0.5))  # x/(x + 1/2)
        x += 1
    u = 1 / (x * x)
    series = -1 / 8 + u * (1 / 192 + u * (-1 / 640 + u * (17 / 14336 - u * 31 / 18432)))
    return 0.5 * math.log(x) + series / x + down


def through_numpy(function: Any, x: Tensor) -> Tensor:
    """A function of NumPy arrays on a tensor, without its gradient."""
    return torch.as_tensor(function(x.detach().cpu().numpy()), dtype=x.dtype, device=x.device)
