"""Independent references for the probability of an interval, in mpmath at 50 digits."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

DIGITS = 50
Function = Callable[[mpf], mpf]


class Exact(NamedTuple):
    """Numbers to twice the digits of a double: head + rest."""

    head: np.ndarray
    rest: np.ndarray

    def error_of(self, got: np.ndarray, scale: np.ndarray, tiny: float) -> np.ndarray:
        """|got − exact| over the scale; where that is below ``tiny``, whether it is above it."""
        error = np.abs((got.astype(np.float64) - self.head) - self.rest)
        judged = np.abs(scale) >= tiny
        return np.where(judged, error / np.where(judged, np.abs(scale), 1.0), error > tiny)


class Reference(NamedTuple):
    """log p for p = F(z + h) − F(z − h), and its derivatives."""

    value: Exact
    dz: Exact
    dh: Exact
    ds: Exact  # z dz + h dh
    terms: Exact  # |a| f(a)/p + |b| f(b)/p, the size of the terms of ds
    density: Exact  # log(p/2h)
    density_dh: Exact


class Law(NamedTuple):
    """A symmetric standard density and its upper tail, for x ≥ 0."""

    pdf: Function
    tail: Function


def student(df: float) -> Law:
    nu = mpf(df)
    with mp.workdps(DIGITS):
        height = mp.gamma((nu + 1) / 2) / mp.gamma(nu / 2) / mp.sqrt(nu * mp.pi)

    def pdf(x: mpf) -> mpf:
        return height * (1 + x * x / nu) ** (-(nu + 1) / 2)

    def tail(x: mpf) -> mpf:
        if x < 1:
            return mpf(1) / 2 - height * x * mp.hyp2f1(0.5, (nu + 1) / 2, 1.5, -x * x / nu)
        u = nu / (nu + x * x)
        lead = u ** (nu / 2) * mp.sqrt(1 - u) / (nu * mp.beta(nu / 2, 0.5))
        return lead * mp.hyp2f1((nu + 1) / 2, 1, nu / 2 + 1, u)

    return Law(pdf, tail)


LAWS: dict[str, Law] = {
    "normal": Law(
        lambda x: mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi), lambda x: mp.erfc(x / mp.sqrt(2)) / 2
    ),
    "laplace": Law(lambda x: mp.exp(-abs(x)) / 2, lambda x: mp.exp(-x) / 2),
    "logistic": Law(
        lambda x: mp.exp(-abs(x)) / (1 + mp.exp(-abs(x))) ** 2, lambda x: 1 / (1 + mp.exp(x))
    ),
    **{f"student-t({df:g})": student(df) for df in (0.5, 1, 3, 4.5, 30, 200)},
}


def interval(law: Law, z: mpf, h: mpf) -> tuple[mpf, ...]:
    """The reference for one element."""
    a, b = abs(z) - h, abs(z) + h
    if a > 0:
        p = law.tail(a) - law.tail(b)
        value = mp.log(p)
    else:
        outside = law.tail(-a) + law.tail(b)
        p, value = 1 - outside, mp.log1p(-outside)
    ra, rb = law.pdf(a) / p, law.pdf(b) / p
    sign = 1 if z >= 0 else -1
    return (
        value,
        sign * (rb - ra),
        rb + ra,
        b * rb - a * ra,
        abs(a) * ra + b * rb,
        value - mp.log(2 * h),
        rb + ra - 1 / h,
    )


def collected(rows: Sequence[tuple[mpf, ...]]) -> Reference:
    """The columns of a table of mpmath numbers."""
    with mp.workdps(DIGITS):
        heads = np.array([[float(x) for x in row] for row in rows])
        rests = np.array(
            [
                [float(x - mpf(head)) for x, head in zip(row, known, strict=True)]
                for row, known in zip(rows, heads.tolist(), strict=True)
            ]
        )
    return Reference(*(Exact(*pair) for pair in zip(heads.T, rests.T, strict=True)))


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """z over 0 … ±1e4 and h over 1e-10 … 1e6 on a logarithmic scale, as float32 has them.

    In a fifth of them a bound is near 0 or in the tail beyond it, where both are far apart.
    """
    rng = np.random.default_rng(0)
    z = 10 ** rng.uniform(-8, 4, n) * rng.choice([-1.0, 1.0], n)
    h = 10 ** rng.uniform(-10, 6, n)
    z[: n // 50] = 0.0
    meeting = slice(n // 50, n // 5)
    h[meeting] = np.clip(np.abs(z[meeting]) + rng.uniform(-12, 40, h[meeting].shape), 1e-10, 1e6)
    return tuple(x.astype(np.float32).astype(np.float64) for x in (z, h))


@cache
def reference_within(name: str, n: int) -> Reference:
    """The reference for :func:`points`."""
    z, h = points(n)
    with mp.workdps(DIGITS):
        return collected([interval(LAWS[name], mpf(x), mpf(y)) for x, y in zip(z, h, strict=True)])
