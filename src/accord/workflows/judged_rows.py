"""Held-out rows one by one, why so wide, and what other levels of coverage would bring."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accord._types import Bools, Floats, Indices
from accord.portfolio import HeldOut
from accord.tabular import Assessment, TableRegressor, cell_text, held_out_receipts

# Rows that a page lists: the widest, those that are furthest off, and others drawn at random.
_WIDEST, _FURTHEST, _LISTED = 100, 100, 500
_WITH_RECEIPT = 12
_PARTS = ("noise", "disagreement", "distance")
_STATED = tuple(round(share / 100, 2) for share in range(50, 100))
# Mean widths are known well enough from so many rows.
_ROWS = 1_000


@dataclass(frozen=True)
class JudgedRow:
    """A row that was held out: its prediction, what was observed, and its main cells.

    ``noise``, ``disagreement`` and ``distance`` are shares of its variance; ``unusual`` says
    whether it is unlike the rows that the predicting models had seen.
    """

    row: int
    observed: float
    mean: float
    lower: float
    upper: float
    noise: float
    disagreement: float
    distance: float
    unusual: bool
    cells: tuple[str, ...]

    @property
    def inside(self) -> bool:
        return self.lower <= self.observed <= self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def error(self) -> float:
        return self.observed - self.mean

    @property
    def mainly(self) -> tuple[str, float]:
        """The largest part of the variance, and its share."""
        return max(((name, getattr(self, name)) for name in _PARTS), key=lambda part: part[1])

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "inside": self.inside, "width": self.width, "error": self.error}


@dataclass(frozen=True)
class WideRow:
    """One of the rows with the widest intervals, and the sentences that say why."""

    judged: JudgedRow
    receipt: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {**self.judged.to_json(), "receipt": list(self.receipt)}


def listed_rows(model: TableRegressor, columns: Sequence[str]) -> tuple[JudgedRow, ...]:
    """Some of the held-out rows, all if they are few, in their order; with these columns."""
    found = model.held_out_
    if len(found) <= _LISTED:
        return _judged_rows(model, columns, np.arange(len(found)))
    width, off = found.upper - found.lower, np.abs(found.y - found.mean)
    off /= np.maximum(found.std, np.finfo(float).tiny)
    chosen = [np.argsort(-width, kind="stable")[:_WIDEST], np.argsort(-off)[:_FURTHEST]]
    others = np.setdiff1d(np.arange(len(found)), np.concatenate(chosen))
    room = _LISTED - (len(found) - len(others))
    chosen.append(np.random.default_rng(0).permutation(others)[:room])
    return _judged_rows(model, columns, np.unique(np.concatenate(chosen)))


def widest_rows(model: TableRegressor, columns: Sequence[str]) -> tuple[WideRow, ...]:
    """The held-out rows with the widest intervals, the widest first, each with its receipt."""
    found = model.held_out_
    order = np.argsort(found.lower - found.upper, kind="stable")[:_WITH_RECEIPT]
    receipts = _receipts(model, found.rows[order])
    judged = _judged_rows(model, columns, order)
    return tuple(WideRow(one, receipts[one.row]) for one in judged)


def _judged_rows(
    model: TableRegressor, columns: Sequence[str], lines: Indices
) -> tuple[JudgedRow, ...]:
    found = model.held_out_[lines]
    places = np.searchsorted(model.training_.rows, found.rows)
    cells = model.training_.X.iloc[places][list(columns)]
    unusual = _unusual(model)
    variance = np.square(np.stack([getattr(found, name) for name in _PARTS]))
    shares = variance / np.maximum(variance.sum(axis=0), np.finfo(float).tiny)
    return tuple(
        JudgedRow(
            row=int(found.rows[line]),
            observed=float(found.y[line]),
            mean=float(found.mean[line]),
            lower=float(found.lower[line]),
            upper=float(found.upper[line]),
            noise=float(shares[0, line]),
            disagreement=float(shares[1, line]),
            distance=float(shares[2, line]),
            unusual=bool(unusual[places[line]]),
            cells=tuple(cell_text(cell) for cell in cells.iloc[line]),
        )
        for line in range(len(found))
    )


def _unusual(model: TableRegressor) -> Bools:
    """Which training rows are unlike those that their models had seen, (N,)."""
    flags = np.zeros(len(model.training_.y), bool)
    for part in model.engine_.judged_:
        flags[part.rows] = part.unusual
    return flags


def _receipts(model: TableRegressor, numbers: Indices) -> dict[int, tuple[str, ...]]:
    """The receipt of each of these rows of the table, in sentences."""
    found: dict[int, tuple[str, ...]] = {}
    for part in model.engine_.judged_:
        found |= _of_part(model, part, numbers)
    return found


def _of_part(model: TableRegressor, part: HeldOut, numbers: Indices) -> dict[int, tuple[str, ...]]:
    own = model.training_.rows[part.rows]
    lines = np.flatnonzero(np.isin(own, numbers))
    if not len(lines):
        return {}
    receipts = held_out_receipts(
        model.engine_.proximity_,
        model.preprocessor_,
        model.profile_,
        model.training_.X,
        held_out=part,
        lines=lines,
        reference_numbers=model.reference_rows_,
        coverage=model.coverage,
    )
    return {
        int(number): tuple(receipts.text(place).splitlines())
        for place, number in enumerate(own[lines])
    }


@dataclass(frozen=True)
class LevelCurve:
    """Stated coverages, and for each the share of rows inside and the mean width.

    ``without_model`` is the width of the interval that holds as many of the target's own values.

    **Shape**: all (L,).
    """

    rows: int
    stated: Floats
    covered: Floats
    width: Floats
    without_model: Floats

    def to_json(self) -> dict[str, Any]:
        return vars(self)


def level_curve(found: Assessment, parts: Sequence[HeldOut]) -> LevelCurve:
    """Coverage and width of the rows of ``found``, whose distributions are in ``parts``."""
    stated = np.array(sorted({*_STATED, found.coverage}))
    if not len(found):
        nothing = np.full(len(stated), np.nan)
        return LevelCurve(0, stated, nothing, nothing, nothing)
    width = _mean_widths(stated, parts)
    width[stated == found.coverage] = found.mean_width
    low, high = np.quantile(found.y, [0.5 - stated / 2, 0.5 + stated / 2])
    return LevelCurve(
        rows=len(found),
        stated=stated,
        covered=np.array([found.covered_at(level) for level in stated]),
        width=width,
        without_model=high - low,
    )


def _mean_widths(stated: Floats, parts: Sequence[HeldOut]) -> Floats:
    """Mean widths at each level, from at most ``_ROWS`` rows."""
    step = max(1, sum(len(part.rows) for part in parts) // _ROWS)
    tails = np.concatenate([0.5 - stated / 2, 0.5 + stated / 2])
    ends = [np.asarray(part.dist[::step].quantile(tails)) for part in parts]
    low, high = np.split(np.concatenate(ends), 2, axis=1)
    return np.asarray((high - low).mean(axis=0))
